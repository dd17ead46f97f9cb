import type { ContentKey, InputRecord, NewInputArtifact, Upload, UploadKey } from "../domain/input.ts";

/** Files that clients hand over; docs/staging.md. */
export interface InputServices {
  /** What one request may carry as base64, in bytes of content. */
  readonly inlineMaxBytes: number;
  /** How much of each content is there. */
  stand(keys: readonly UploadKey[]): Promise<Upload[]>;
  /** Nothing is begun, and it stays absent, under a provisional name where a content may be it that is there. @throws RelayError storage_admission_refused */
  begin(key: UploadKey): Promise<{ readonly upload: Upload; readonly begun: boolean }>;
  /**
   * @param read gives the piece; called when those before it are there
   * @throws RelayError input_ingest_conflict, input_ingest_refused, input_ingest_unavailable, storage_admission_refused; what `read` throws
   */
  piece(key: UploadKey, offset: number, read: () => Promise<Uint8Array>): Promise<Upload>;
  giveUp(key: UploadKey): Promise<Upload>;
  /**
   * What came under a provisional name is this content.
   *
   * @throws RelayError input_ingest_conflict where not all has come, input_ingest_refused where it has another digest, input_ingest_unavailable
   */
  complete(name: string, key: ContentKey): Promise<Upload>;
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
