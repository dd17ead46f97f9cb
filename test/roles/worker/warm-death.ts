import type { JobSubmissionInput } from "../../../src/domain/job.ts";
import { eventually } from "../../runner/wait.ts";
import type { WorkerHarness } from "./harness.ts";
import { BAD_SERVER } from "./mcp-calls.ts";

/** A call of a kept server that appends an x to a file, and answers once `<file>.hold` is not there. The same submission each time. */
export const countingCall = (file: string): JobSubmissionInput =>
  ({
    cluster: "local",
    kind: "mcp_call",
    idempotency_key: "once",
    spec: { server: process.execPath, server_args: [BAD_SERVER, "counts", file], operation: "tools/call", tool: "echo", reuse: {} },
  }) as JobSubmissionInput;

/** Submit to a worker that dies over it; the answer may get lost with it. Resolves to what ended it. */
export async function diesOver(submission: JobSubmissionInput, dying: WorkerHarness): Promise<Bun.Subprocess["signalCode"]> {
  const child = dying.spawn();
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  await eventually(async () => hasEnded() || (await dying.client.submit(submission)), { what: "a worker to submit to" });
  await eventually(hasEnded, { what: "its death" });
  return child.signalCode;
}
