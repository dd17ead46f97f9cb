import { afterAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { JobSubmissionInput } from "../../../src/domain/job.ts";
import type { WorkerStatus } from "../../../src/domain/views.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { WorkerHarness } from "./harness.ts";

const ROOT = path.resolve(import.meta.dir, "../../..");
/** Two slots for jobs. */
const CAPACITY = { concurrency: 3, control_query_concurrency: 1, kind_concurrency: {} };

const place = temporaryDirectory();
afterAll(() => place[Symbol.dispose]());

/** Two agents, each of which waits for a job that comes after both. */
async function twoAgents(wrapper: readonly string[] = []) {
  const own = fs.mkdtempSync(path.join(place.path, "worker-"));
  const program = path.join(own, "agent");
  fs.writeFileSync(program, '#!/bin/sh\nwhile [ ! -e "$(cat "$CLIO_RELAY_AGENT_PROMPT")" ]; do sleep 0.05; done\n', { mode: 0o755 });
  const agent = { program, adapter: "exec", args: ["{prompt_path}"] };
  const worker = new WorkerHarness({ agent, capacity: CAPACITY }, own, wrapper);
  await worker.start();
  const done = ["one", "two"].map((name) => path.join(own, `${name}.done`));
  const agents: string[] = [];
  for (const file of done) {
    const prompt_path = `${file}.prompt`;
    fs.writeFileSync(prompt_path, file);
    const submission = { cluster: "local", kind: "remote_agent", spec: { prompt_path } };
    agents.push((await worker.client.submit(submission as JobSubmissionInput)).job_id);
  }
  const children: string[] = [];
  for (const file of done) children.push((await worker.submit({ argv: ["touch", file] })).job_id);
  const stateOf = async (id: string) => (await worker.client.status(id)).job.state;
  return { worker, agents, children, done, stateOf };
}

/** The worker of a source tree in which no slot is kept free of agents. */
function withoutTheRule(): string[] {
  const tree = path.join(place.path, "tree");
  fs.cpSync(path.join(ROOT, "src"), path.join(tree, "src"), { recursive: true });
  for (const name of ["worker-entry.ts", "mortal.ts", "allocation/fake-scheduler.ts"]) {
    const file = path.join("test/roles/worker", name);
    fs.mkdirSync(path.dirname(path.join(tree, file)), { recursive: true });
    fs.copyFileSync(path.join(ROOT, file), path.join(tree, file));
  }
  for (const name of ["package.json", "tsconfig.json"]) fs.copyFileSync(path.join(ROOT, name), path.join(tree, name));
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(tree, "node_modules"));
  const rule = path.join(tree, "src/domain/endpoint.ts");
  const text = fs.readFileSync(rule, "utf8");
  const changed = text.replace('slotsOf(capacity, "workload") - 1', 'slotsOf(capacity, "workload")');
  expect(changed).not.toBe(text);
  fs.writeFileSync(rule, changed);
  // In place of the harness' own entry.
  return ["/bin/sh", "-c", `exec "$1" "${path.join(tree, "test/roles/worker/worker-entry.ts")}" "$3"`, "sh"];
}

test("agents that wait for jobs of their own come to their end: one slot is never theirs", async () => {
  const { worker, agents, children } = await twoAgents();
  await using _worker = worker;
  for (const id of [...children, ...agents]) expect((await worker.ended(id)).job.state).toBe("succeeded");
});

test("without that rule the same two wait for ever: they hold every slot, and what they wait for gets none", async () => {
  const { worker, agents, children, done, stateOf } = await twoAgents(withoutTheRule());
  await using _worker = worker;
  for (const id of agents) await worker.running(id);
  const [{ active_leases_by_kind }] = (await worker.client.workers()).workers as [WorkerStatus];
  expect(active_leases_by_kind).toEqual({ remote_agent: CAPACITY.concurrency - CAPACITY.control_query_concurrency });
  for (const id of children) expect(await stateOf(id)).toBe("queued");
  // Only somebody else's help ends it.
  for (const file of done) fs.writeFileSync(file, "");
  for (const id of [...agents, ...children]) await worker.ended(id);
  await eventually(async () => (await stateOf(children[1]!)) === "succeeded");
});
