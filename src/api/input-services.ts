import type { ContentKey, InputRecord, NewInputArtifact, Upload } from "../domain/input.ts";

/** Files that clients hand over; docs/staging.md. */
export interface InputServices {
  /** What one request may carry as base64, in bytes of content. */
  readonly inlineMaxBytes: number;
  /** How much of each content is there. */
  stand(keys: readonly ContentKey[]): Upload[];
  /** @throws RelayError storage_admission_refused */
  begin(key: ContentKey): Promise<{ readonly upload: Upload; readonly begun: boolean }>;
  /**
   * @param read gives the piece; called when those before it are there
   * @throws RelayError input_ingest_conflict, input_ingest_refused, input_ingest_unavailable, storage_admission_refused; what `read` throws
   */
  piece(key: ContentKey, offset: number, read: () => Promise<Uint8Array>): Promise<Upload>;
  giveUp(key: ContentKey): Promise<Upload>;
  /**
   * Make an artifact of content that is there, or comes with it.
   *
   * @throws RelayError input_ingest_unavailable, job_submission_conflict; with content as `piece`
   */
  record(
    request: Omit<NewInputArtifact, "schema_version">,
    content: Uint8Array | null,
  ): Promise<InputRecord & { readonly existing: boolean }>;
}
