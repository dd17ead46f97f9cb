import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type SourceRelay, withWorker } from "../source-relay.ts";

const SERVER = path.resolve(import.meta.dir, "../../mcp/science-server-process.ts");

interface Answered {
  readonly operation: string;
  readonly tool: string | null;
  readonly answer: { readonly kind: string; readonly is_error?: boolean; readonly result?: unknown; readonly tools?: { name: string }[] };
}

let relay: SourceRelay;
let science: readonly string[];
beforeAll(async () => {
  relay = await withWorker();
  const words = path.join(relay.directory, "words");
  fs.writeFileSync(words, "Inspects.");
  science = ["--server", process.execPath, `--server-arg=${SERVER}`, `--server-arg=${words}`];
});
afterAll(async () => {
  await relay?.[Symbol.asyncDispose]();
});

/** What a call's job kept of the server's answer. */
const answered = async (job: string): Promise<Answered> =>
  JSON.parse(await relay.ok("job", "read-artifact", job, "mcp-result.json", "-o", "-")) as Answered;

const refused = async (...args: string[]): Promise<readonly [number, string]> => {
  const { code, stderr } = await relay.run([...args, "--json"]);
  return [code, (JSON.parse(stderr) as { reason: string }).reason];
};

test("a server is asked for its tools, and one of them is called, with arguments as given and from a file", async () => {
  const listed = await relay.ok("mcp-call", ...science, "--operation", "tools/list", "--wait");
  expect((await answered(listed)).answer.tools?.map(({ name }) => name)).toContain("inspect");
  const inspect = ["mcp-call", ...science, "--tool", "inspect", "--wait"];
  const job = await relay.ok(...inspect, "--arguments-json", '{"path": "/data/a"}');
  expect(await answered(job)).toMatchObject({
    tool: "inspect",
    answer: { kind: "result", is_error: false, result: { structuredContent: { given: { path: "/data/a" } } } },
  });
  fs.writeFileSync(path.join(relay.directory, "arguments.json"), '{"path": "/data/b"}');
  const same = [...inspect, "--arguments-json-file", "arguments.json", "--idempotency-key", "k"];
  const first = await relay.ok(...same);
  expect(await answered(first)).toMatchObject({ answer: { result: { structuredContent: { given: { path: "/data/b" } } } } });
  const again = await relay.run(same);
  expect([again.code, again.stdout.trim()]).toEqual([0, first]);
  expect(again.stderr).toContain(`existing job ${first}`);
  // Without a key each call is a new one.
  const one = await relay.json<{ job_id: string }>("mcp-call", ...science, "--tool", "inspect");
  const other = await relay.json<{ job_id: string }>("mcp-call", ...science, "--tool", "inspect");
  expect(one.job_id).not.toBe(other.job_id);
  const failing = await relay.run(["mcp-call", ...science, "--tool", "fails", "--wait"]);
  expect([failing.code, (await answered(failing.stdout.trim())).answer]).toEqual([10, expect.objectContaining({ is_error: true })]);
});

test("a program that is not the expected one is not called", async () => {
  const { code, stdout } = await relay.run([
    ...["mcp-call", ...science, "--tool", "inspect", "--wait"],
    ...["--expected-server-artifact-digest", "0".repeat(64)],
  ]);
  expect(code).toBe(10);
  expect((await answered(stdout.trim())).answer).toMatchObject({ kind: "failure", reason: "server_artifact_changed" });
});

test.each<[string, string, readonly string[]]>([
  ["a call of no tool", "usage", []],
  ["a list of one tool", "usage", ["--operation", "tools/list", "--tool", "a"]],
  ["arguments twice", "usage", ["--tool", "a", "--arguments-json", "{}", "--arguments-json-file", "f"]],
  ["arguments that are no object", "usage", ["--tool", "a", "--arguments-json", "[]"]],
  ["an argument that would be rounded", "usage", ["--tool", "a", "--arguments-json", '{"id": 9007199254740993}']],
  ["a variable twice", "usage", ["--tool", "a", "--env-from", "X=HOME", "--env-from", "X=PATH"]],
  ["a secret of the relay's", "request_validation_failed", ["--tool", "a", "--env-from", "X=CLIO_RELAY_API_TOKEN"]],
  ["a digest that is none", "usage", ["--tool", "a", "--expected-server-artifact-digest", "abc"]],
  ["an empty key", "usage", ["--tool", "a", "--idempotency-key", ""]],
])("%s is refused", async (_what, reason, args) => {
  expect((await refused("mcp-call", "--server", "/none", ...args))[1]).toBe(reason);
});

test("the server of JARVIS-CD is the one that is registered, and its tools are what a refresh finds", async () => {
  expect(await refused("jarvis-mcp-call", "--tool", "jarvis_describe")).toEqual([1, "engine_unavailable"]);
  expect(await refused("jarvis-mcp-refresh", "--cluster", "local")).toEqual([3, "not_found"]);
  const [, program, ...args] = science;
  const command = ["--command", program!, ...args.map((arg) => arg.replace("--server-arg", "--arg")), "--allow-tool", "*"];
  await relay.ok("remote-mcp", "register", "--cluster", "local", "--name", "jarvis", ...command);
  const refreshed = await relay.json("jarvis-mcp-refresh", "--cluster", "local", "--poll-seconds", "1");
  expect(refreshed).toMatchObject({ cache_entry: { server: "jarvis", cluster: "local" }, mcp_server_restart_required: false });
  const job = await relay.ok("jarvis-mcp-call", "--tool", "jarvis_describe", "--arguments-json", '{"path": "/p"}', "--wait");
  expect((await answered(job)).answer).toMatchObject({ result: { structuredContent: { given: { path: "/p" } } } });
  expect(await relay.json("jarvis-mcp-call", "--operation", "tools/list", "--wait")).toMatchObject({ state: "succeeded" });
});
