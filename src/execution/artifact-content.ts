import type { Artifact } from "../domain/artifact.ts";

/** An artifact's file, opened and found to be the recorded one by size and time of change. */
export interface OpenArtifact {
  readonly size: number;
  /**
   * Bytes [start, end). Of the whole file, the SHA-256 is verified before the last piece is given; of a part, that the file is still
   * the recorded one. The stream fails with artifact_changed otherwise. Closes the file at its end; may be called once.
   */
  stream(range?: { readonly start: number; readonly end: number }): ReadableStream<Uint8Array>;
  /** Close without reading. */
  close(): void;
}

/**
 * Open the file behind an artifact.
 *
 * @param jobDir the job's directory in the spool
 * @throws RelayError artifact_unreadable, artifact_changed, path_escapes_root
 */
export declare function openArtifact(artifact: Artifact, jobDir: string): Promise<OpenArtifact>;
