import type { NewArtifact } from "../domain/artifact.ts";
import type { UsedArtifact } from "../domain/job.ts";
import type { OutputIssue } from "./output-issue.ts";
import type { AttemptSpec, ExitRecord } from "./spool-records.ts";

export interface DocumentsInput {
  readonly jobDir: string;
  readonly attemptDir: string;
  readonly spec: AttemptSpec;
  readonly exit: ExitRecord;
  /** SHA-256 of a script job's text; null for others. */
  readonly scriptSha256: string | null;
  readonly outputs: readonly NewArtifact[];
  readonly issues: readonly OutputIssue[];
  readonly used: readonly UsedArtifact[];
  readonly relayVersion: string;
  readonly hostname: string;
}

/**
 * The artifacts that every ended attempt has besides its outputs: stdout, stderr, log_capture and provenance. Logs are referenced
 * in the spool; the documents are written to `artifacts`, each whole or absent.
 */
export declare function attemptDocuments(input: DocumentsInput): Promise<NewArtifact[]>;
