import type { NewArtifact } from "../domain/artifact.ts";
import type { OutputIssue } from "./output-issue.ts";

export interface CollectOptions {
  /** The job's working directory: no output lies outside. */
  readonly workdir: string;
  /** Declared patterns, as in CommandSpec.outputs. */
  readonly patterns: readonly string[];
  /** The job's directory in the spool; copies go to its `artifacts`. */
  readonly jobDir: string;
  /** Files up to this size are copied; larger ones are referenced in place. */
  readonly storeMaxBytes: number;
  /** Free bytes that must remain on the spool's file system; where they would not, files are referenced in place. */
  readonly minFreeBytes: number;
  /** At most this many files. */
  readonly maxFiles: number;
  readonly attempt: number;
  readonly signal?: AbortSignal;
}

export interface Collected {
  /** kind execution_output, in the order of their names. */
  readonly artifacts: readonly NewArtifact[];
  readonly issues: readonly OutputIssue[];
}

/** Make artifacts of the files that a job declared as outputs. Failures of single files are issues; the rest goes on. */
export declare function collectOutputs(options: CollectOptions): Promise<Collected>;
