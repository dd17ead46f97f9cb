import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { kindSlotsOf } from "../../../src/domain/endpoint.ts";
import type { InputRecord } from "../../../src/domain/input.ts";
import type { JobReceipt, JobSubmissionInput } from "../../../src/domain/job.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { processesMarked } from "../../runner/leftovers.ts";
import { eventually } from "../../runner/wait.ts";
import { WorkerHarness } from "./harness.ts";

/** An agent that does what its prompt, a shell script, says. */
const AGENT = `#!/bin/sh
exec /bin/sh "$CLIO_RELAY_AGENT_PROMPT"
`;

type Agent = "codex" | "generic";

class AgentRuns {
  /** The worker's own, which goes with it. */
  readonly place = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-worker-"));
  readonly worker: WorkerHarness;

  constructor(adapter: Agent, options: Record<string, unknown> = {}, args: readonly string[] = ["{prompt_path}"]) {
    const program = path.join(this.place, "agent");
    fs.writeFileSync(program, AGENT, { mode: 0o755 });
    this.worker = new WorkerHarness({ agent: { program, adapter, args }, ...options }, this.place);
  }

  /** Submit a run of the script. */
  run(script: string, spec: Record<string, unknown> = {}): Promise<JobReceipt> {
    const prompt = path.join(this.place, `${crypto.randomUUID()}.md`);
    fs.writeFileSync(prompt, script);
    const submission = { cluster: "local", kind: "remote_agent", spec: { prompt_path: prompt, ...spec } };
    return this.worker.client.submit(submission as JobSubmissionInput);
  }

  async taskEvents(jobId: string) {
    const { tasks } = await this.worker.client.tasks(jobId, { limit: 10 });
    return (await this.worker.client.taskEvents(tasks[0]!.task_id, { limit: LIMITS.pageMax })).events;
  }

  async refusals(jobId: string): Promise<string[]> {
    const events = await this.worker.events(jobId);
    return events.filter(({ event_type }) => event_type === "emit.refused").map(({ payload }) => String(payload["reason"]));
  }

  async lastMessage(jobId: string): Promise<string | null> {
    const { artifacts } = await this.worker.client.artifacts(jobId, { limit: 100 });
    const found = artifacts.find(({ kind }) => kind === "agent_last_message");
    if (found === undefined) return null;
    const file = path.join(this.worker.spoolDir, found.job_id, "artifacts", found.artifact_id);
    return fs.readFileSync(file, "utf8");
  }
}

const codexLines = (...lines: unknown[]): string => lines.map((line) => `cat <<'END'\n${JSON.stringify(line)}\nEND\n`).join("");
const message = (text: string) => ({ type: "item.completed", item: { id: "m", type: "agent_message", text } });

describe("an agent that speaks codex' lines", () => {
  const runs = new AgentRuns("codex");
  const { worker } = runs;
  beforeAll(async () => void (await worker.start()));
  afterAll(() => worker[Symbol.asyncDispose]());

  test("is on its task's timeline, and leaves its last message", async () => {
    const plan = {
      type: "item.updated",
      item: { id: "p", type: "todo_list", items: [{ text: "look", completed: true }, { text: "fix" }] },
    };
    const script = `${codexLines({ type: "thread.started", thread_id: "t" }, plan, message("found it"))}printf done > "$CLIO_RELAY_AGENT_OUTPUT"`;
    const { job_id } = await runs.run(script);
    const { job, progress } = await worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason: "completed", exit_code: 0 });
    expect((await runs.taskEvents(job_id)).map(({ event_type, summary }) => [event_type, summary])).toEqual([
      ["agent.thread", "thread t"],
      ["agent.message", "found it"],
    ]);
    expect(progress).toMatchObject([{ label: "plan", current: 1, total: 2, message: "fix" }]);
    expect(await runs.lastMessage(job_id)).toBe("done");
  });

  test("and writes what is none is told so a hundred times, and still read", async () => {
    const { job_id } = await runs.run(
      `i=0; while [ $i -lt 300 ]; do echo "no { json $i"; i=$((i+1)); done\n${codexLines(message("after"))}exit 3`,
    );
    const { job } = await worker.ended(job_id);
    expect(job.outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 3 });
    expect(await runs.refusals(job_id)).toHaveLength(100);
    expect((await runs.taskEvents(job_id)).map(({ summary }) => summary)).toEqual(["after"]);
    expect(await runs.lastMessage(job_id)).toBeNull();
  });

  test("and floods is read up to a bound, lines of any length", async () => {
    const { job_id } = await runs.run(
      `head -c ${LIMITS.emitBytes + 1024 * 1024} /dev/zero | tr '\\0' x; echo; yes '{"type":"turn.started"}' | head -n 500000`,
    );
    await worker.ended(job_id);
    const reasons = await runs.refusals(job_id);
    expect(reasons).toHaveLength(2);
    expect(reasons[0]).toContain("longer than");
    expect(reasons[1]).toContain("the rest is not");
    expect((await runs.taskEvents(job_id)).length).toBe(0);
  });

  test("and is followed by another worker is told of once", async () => {
    const go = path.join(runs.place, "go");
    const { job_id } = await runs.run(
      `${codexLines(message("one"))}while [ ! -e '${go}' ]; do sleep 0.1; done\n${codexLines(message("two"))}`,
    );
    await eventually(async () => (await runs.taskEvents(job_id)).length === 1);
    await worker.kill();
    fs.writeFileSync(go, "");
    await worker.start();
    expect((await worker.ended(job_id)).job.outcome!.reason).toBe("completed");
    expect((await runs.taskEvents(job_id)).map(({ summary }) => summary)).toEqual(["one", "two"]);
  });

  test("gets the servers of its MCP configuration as options, unless others could read a secret there", async () => {
    const file = path.join(runs.place, "agent.toml");
    fs.writeFileSync(file, '[mcp_servers.own]\ncommand = "serve"\nargs = ["-x"]\n');
    const { job_id } = await runs.run("true", { mcp_config_path: file });
    await worker.ended(job_id);
    const { argv } = JSON.parse(fs.readFileSync(path.join(worker.attemptDir(job_id), "spec.json"), "utf8")) as { argv: string[] };
    expect(argv).toContain('mcp_servers.own.command="serve"');
    fs.appendFileSync(file, '[mcp_servers.own.env]\nAPI_KEY = "geheim"\n');
    const refusal = await runs.run("true", { mcp_config_path: file }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "agent_submission_refused", data: { cause: "mcp_config" } });
    expect((refusal as Error).message).not.toContain("geheim");
  });
});

describe("an agent that speaks the relay's own lines", () => {
  const runs = new AgentRuns("generic", { capacity: { concurrency: 3 }, limits: { cancelGraceSeconds: 0 } });
  const { worker } = runs;
  beforeAll(async () => void (await worker.start()));
  afterAll(() => worker[Symbol.asyncDispose]());

  test("may mix them with text, and its last words are what follows the last of them", async () => {
    const report = { type: "task-event", event_type: "dataset_found", label: "dataset", summary: "found", path_refs: ["/data"] };
    const { job_id } = await runs.run(`echo hello; echo '${JSON.stringify(report)}'; echo '{"type":"what"}'; echo the answer; echo is 42`);
    await worker.ended(job_id);
    expect(await runs.taskEvents(job_id)).toMatchObject([{ event_type: "dataset_found", path_refs: ["/data"] }]);
    expect(await runs.refusals(job_id)).toEqual(["type is neither progress nor task-event"]);
    expect(await runs.lastMessage(job_id)).toBe("the answer\nis 42\n");
  });

  test("leaves nothing running, whether it forks, ends itself or never does", async () => {
    const { job_id: forked } = await runs.run("sleep 600 & setsid sleep 600 & echo forked");
    expect((await worker.ended(forked)).job.outcome).toMatchObject({ reason: "completed", residual: [] });
    const types = (await worker.events(forked)).map(({ event_type }) => event_type);
    expect(types).toContain("execution.leftover");
    const { job_id: endless } = await runs.run("trap '' TERM; while :; do sleep 600 & wait; done", { timeout_seconds: 0.5 });
    expect((await worker.ended(endless)).job.outcome).toMatchObject({ reason: "timeout", residual: [] });
    for (const id of [forked, endless]) expect(processesMarked("CLIO_RELAY_ATTEMPT", `${id}/1`)).toEqual([]);
  });

  test("does not start where its prompt is gone meanwhile, and is not given what does not fit", async () => {
    const refused = async (file: string, content: string | Uint8Array) => {
      const prompt = path.join(runs.place, file);
      fs.writeFileSync(prompt, content);
      const { body } = await worker.call("POST", "/jobs/remote-agent", JSON.stringify({ cluster: "local", prompt_path: prompt }));
      return [body["reason"], body["cause"]];
    };
    expect(await refused("binary.md", new Uint8Array([0xff, 0xfe]))).toEqual(["agent_submission_refused", "prompt"]);
    expect(await refused("huge.md", "x".repeat(1024 * 1024 + 1))).toEqual(["agent_submission_refused", "prompt"]);
    const directory = await worker.call("POST", "/jobs/remote-agent", JSON.stringify({ cluster: "local", prompt_path: runs.place }));
    expect(directory.body).toMatchObject({ reason: "agent_submission_refused", cause: "prompt" });
    const first = await runs.run("sleep 600");
    await worker.running(first.job_id);
    const second = await runs.run("echo never");
    fs.rmSync(second.kind === "remote_agent" ? second.spec.prompt_path! : "");
    // The other slot is not an agent's: what came after it runs, and it does not.
    expect((await worker.ended((await worker.shell("true")).job_id)).job.state).toBe("succeeded");
    expect((await worker.client.status(second.job_id)).job.state).toBe("queued");
    await worker.client.cancel(first.job_id);
    expect((await worker.ended(first.job_id)).job.outcome!.reason).toBe("canceled");
    const { outcome } = (await worker.ended(second.job_id)).job;
    expect(outcome).toMatchObject({ reason: "spawn_failed", message: expect.stringContaining("no such file") });
  });
});

test("what was brought along is refused at the submission where it cannot be given to the agent", async () => {
  const runs = new AgentRuns("codex", {}, []);
  await using worker = runs.worker;
  await worker.start();
  const submitted = async (prompt: string, mcp_config?: string) => {
    const inputs: Record<string, string> = {};
    const used_artifact_refs: { artifact_id: string; sha256: string }[] = [];
    for (const [name, text] of Object.entries({ prompt, mcp_config })) {
      if (text === undefined) continue;
      const ingest = {
        ...{ schema_version: "clio-relay.input-artifact-ingest.v1", cluster: "local", logical_name: name, size_bytes: text.length },
        ...{ sha256: sha256Hex(text), idempotency_key: crypto.randomUUID(), data_base64: Buffer.from(text).toString("base64") },
      };
      const { artifact_id, sha256 } = (await worker.call<InputRecord>("POST", "/input-artifacts/ingest", JSON.stringify(ingest))).body
        .artifact;
      inputs[name] = artifact_id;
      used_artifact_refs.push({ artifact_id, sha256 });
    }
    const job = { cluster: "local", kind: "remote_agent", spec: { inputs }, used_artifact_refs };
    const { status, body } = await worker.call("POST", "/jobs", JSON.stringify(job));
    return [status, body["reason"], body["cause"]];
  };
  const refused = (cause: string) => [422, "agent_submission_refused", cause];
  expect(await submitted("x".repeat(128 * 1024))).toEqual(refused("prompt"));
  expect(await submitted("a\0b")).toEqual(refused("prompt"));
  expect(await submitted("ok", "no = [toml")).toEqual(refused("mcp_config"));
  expect((await worker.call("GET", "/jobs?kind=remote_agent")).body["jobs"]).toEqual([]);
  expect(await submitted("true # ".padEnd(128 * 1024 - 1, "x"))).toEqual([201, undefined, undefined]);
});

test.each([
  [{ concurrency: 2, control_query_concurrency: 1, kind_concurrency: {} }, 0],
  [{ concurrency: 4, control_query_concurrency: 1, kind_concurrency: {} }, 2],
  [{ concurrency: 4, control_query_concurrency: 1, kind_concurrency: { remote_agent: 1 } }, 1],
  [{ concurrency: 4, control_query_concurrency: 1, kind_concurrency: { remote_agent: 9 } }, 2],
])("of %j, %i slots may be agents'", (capacity, slots) => {
  expect(kindSlotsOf({ ...capacity, scheduler_jobs: 0 }, "remote_agent")).toBe(slots);
  expect(kindSlotsOf({ ...capacity, scheduler_jobs: 0 }, "command")).toBe(Number.MAX_SAFE_INTEGER);
});
