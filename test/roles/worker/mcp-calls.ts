import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import type { Artifact } from "../../../src/domain/artifact.ts";
import type { JobReceipt, JobSubmissionInput } from "../../../src/domain/job.ts";
import { McpResult } from "../../../src/domain/mcp-call.ts";
import { processesMarked } from "../../runner/leftovers.ts";
import { eventually } from "../../runner/wait.ts";
import type { WorkerHarness } from "./harness.ts";

export const BAD_SERVER = path.resolve(import.meta.dir, "../../execution/mcp-call/server-process.ts");

/** Calls of MCP servers as jobs of a worker. */
export class McpCalls {
  constructor(private readonly worker: WorkerHarness) {}

  submit(spec: Record<string, unknown>): Promise<JobReceipt> {
    return this.worker.client.submit({ cluster: "local", kind: "mcp_call", spec } as JobSubmissionInput);
  }

  /** A call of the test server that behaves so; see server-process.ts. */
  call(behaviour: string, argument = "", spec: Record<string, unknown> = {}): Promise<JobReceipt> {
    const server = { server: process.execPath, server_args: [BAD_SERVER, behaviour, argument] };
    return this.submit({ ...server, operation: "tools/call", tool: "echo", ...spec });
  }

  list(behaviour: string, argument = "", spec: Record<string, unknown> = {}): Promise<JobReceipt> {
    return this.call(behaviour, argument, { operation: "tools/list", tool: null, ...spec });
  }

  async artifacts(jobId: string): Promise<Artifact[]> {
    const { artifacts } = await this.worker.client.artifacts(jobId, { limit: 100 });
    return [...artifacts];
  }

  async artifact(jobId: string, kind: Artifact["kind"]): Promise<{ readonly artifact: Artifact; readonly text: string }> {
    const artifact = (await this.artifacts(jobId)).find((one) => one.kind === kind);
    if (artifact === undefined) throw new Error(`no ${kind}: ${JSON.stringify((await this.worker.client.status(jobId)).job.outcome)}`);
    return { artifact, text: fs.readFileSync(path.join(this.worker.spoolDir, jobId, "artifacts", artifact.artifact_id), "utf8") };
  }

  /** What a job that has ended left. */
  async result(jobId: string): Promise<McpResult> {
    await this.worker.ended(jobId);
    return v.parse(McpResult, JSON.parse((await this.artifact(jobId, "mcp_result")).text));
  }

  /** The text of its result. */
  async text(jobId: string): Promise<string> {
    const { answer } = await this.result(jobId);
    if (answer.kind !== "result") throw new Error(JSON.stringify(answer));
    return (answer.result as { content: { text: string }[] }).content[0]!.text;
  }

  /** Wait until nothing of the job runs. */
  async nothingLeft(jobId: string): Promise<void> {
    await eventually(() => processesMarked("CLIO_RELAY_ATTEMPT", `${jobId}/1`).length === 0, { what: "nothing of it left" });
  }
}
