import fs from "node:fs";
import path from "node:path";
import type { Event } from "../../../src/domain/event.ts";
import type { JobReceipt, JobSubmissionInput } from "../../../src/domain/job.ts";
import { eventually } from "../../runner/wait.ts";
import { WorkerHarness } from "./harness.ts";

type JarvisInput = Extract<JobSubmissionInput, { kind: "jarvis" }>["spec"];

/** A worker that runs pipelines with a JARVIS-CD, real or not. */
export class JarvisRuns {
  readonly worker: WorkerHarness;

  constructor(
    jarvis: { readonly program: string; readonly environment: Readonly<Record<string, string>> },
    more: Record<string, unknown> = {},
    directory?: string,
  ) {
    const environment = { ...process.env, ...jarvis.environment };
    this.worker = new WorkerHarness({ jarvis: jarvis.program, environment, ...more }, directory);
  }

  submit(spec: JarvisInput, more: Partial<JobSubmissionInput> = {}): Promise<JobReceipt> {
    return this.worker.client.submit({ cluster: "local", kind: "jarvis", spec, ...more } as JobSubmissionInput);
  }

  run(text: string): Promise<JobReceipt> {
    return this.submit({ pipeline_yaml: text });
  }

  /** Why a submission is refused: code and cause. */
  async refusal(spec: JarvisInput): Promise<unknown> {
    const { status, body } = await this.worker.call("POST", "/jobs", JSON.stringify({ cluster: "local", kind: "jarvis", spec }));
    return {
      status,
      reason: body["reason"],
      cause: body["cause"],
      ...(body["line"] === undefined ? {} : { line: body["line"], column: body["column"] }),
    };
  }

  /** The job's events once one of that type is among them. */
  until(jobId: string, type: Event["event_type"]): Promise<Event[]> {
    return eventually(
      async () => {
        const events = await this.worker.events(jobId);
        return events.some(({ event_type }) => event_type === type) && events;
      },
      { what: `${type} of ${jobId}` },
    );
  }

  async artifactText(jobId: string, name: string): Promise<string> {
    const { artifacts } = await this.worker.client.artifacts(jobId, { limit: 100 });
    const artifact = artifacts.find((one) => one.name === name);
    if (artifact === undefined) throw new Error(`no artifact ${name} among ${artifacts.map((one) => one.name).join(", ")}`);
    return (await this.worker.client.artifactContent(artifact.artifact_id)).text();
  }
}

/** What a process has in its arguments, of all processes but this one. */
export function processesWith(text: string): number[] {
  return fs
    .readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => {
      try {
        return fs.readFileSync(path.join("/proc", String(pid), "cmdline"), "utf8").includes(text);
      } catch {
        return false;
      }
    });
}
