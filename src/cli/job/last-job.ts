import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { isId } from "../../domain/id.ts";
import { writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { readSmallFile } from "../../lib/files/regular-file.ts";
import type { CliIo } from "../io.ts";

/** The job that `last` means. */
export interface LastJob {
  readonly cluster: string;
  readonly job_id: string;
}

const MAX_BYTES = 4_096;

/**
 * Keep the job that a command submitted last from here. What cannot be kept is said, and `last` then means nothing rather than an earlier job: for
 * the submission it is no failure.
 */
export async function keepLastJob(io: Pick<CliIo, "stderr">, file: string, { cluster, job_id }: LastJob): Promise<void> {
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    writeFileAtomic(file, `${JSON.stringify({ cluster, job_id })}\n`, { durable: false });
  } catch (error) {
    forget(file);
    await io.stderr.write(`notice: \`last\` does not mean this job: ${error instanceof Error ? error.message : String(error)}\n`);
  }
}

function forget(file: string): void {
  try {
    fs.rmSync(file, { force: true });
  } catch {
    // Said anyway that it is not this job.
  }
}

/** @throws RelayError job_not_found where nothing is kept, or nothing that can be read */
export function lastJob(file: string): LastJob {
  const known = parsed(readSmallFile(file, MAX_BYTES));
  if (known === null) throw new RelayError("job_not_found", "no command has submitted a job from here", {}, "clio-relay job list");
  return known;
}

function parsed(text: string | null): LastJob | null {
  try {
    const { cluster, job_id } = JSON.parse(text ?? "null") as Partial<LastJob>;
    return typeof cluster === "string" && typeof job_id === "string" && isId(cluster) && isId(job_id) ? { cluster, job_id } : null;
  } catch {
    return null;
  }
}
