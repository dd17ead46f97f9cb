import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { readRemoteMcpCache, updateRemoteMcpCache, withEntry } from "../../../src/config/remote-mcp-cache.ts";
import { environment } from "../../config/environments.ts";
import { entry, found, MUTABLE, registration, tool } from "../../mcp/federation/found.ts";
import { SourceRelay } from "../source-relay.ts";

const SCIENCE = ["--cluster", "local", "--name", "science"] as const;

let relay: SourceRelay;
beforeAll(async () => {
  relay = new SourceRelay();
  await relay.ok("init");
});
afterAll(async () => {
  await relay?.[Symbol.asyncDispose]();
});

const register = (...args: string[]) => ["remote-mcp", "register", ...SCIENCE, "--command", "science-mcp", ...args];
const reasonOf = ({ stderr }: { readonly stderr: string }): string => (JSON.parse(stderr) as { reason: string }).reason;
const refused = async (...args: string[]): Promise<readonly [number, string]> => {
  const result = await relay.run([...args, "--json"]);
  return [result.code, reasonOf(result)];
};

const files = () => ({ remoteMcpCacheFile: path.join(relay.home, "state", "remote-mcp-cache.json"), runDir: path.join(relay.home, "run") });

/** Put down what a refresh would have found of what is registered now. */
async function known(tools: readonly ReturnType<typeof tool>[], more: Parameters<typeof found>[3] = {}): Promise<void> {
  const its = await relay.json<ReturnType<typeof entry> & { route_revision: string }>("cluster", "show", "local");
  const of = entry("local", its.remote_mcp_servers);
  const dates = { discovered_at: new Date().toISOString(), expires_at: new Date(Date.now() + 3_600_000).toISOString() };
  await updateRemoteMcpCache(files(), environment(), (entries) => withEntry(entries, found(of, "science", tools, { ...dates, ...more })));
}

test("a registration is written down, kept through changes of its cluster, and replaced only when that is said", async () => {
  const first = await relay.json<Record<string, unknown>>(
    ...register("--arg=-v", "--env-from", "TOKEN_FILE=HOME", "--allow-tool", "inspect", "--profile", "user"),
  );
  expect(first).toMatchObject({
    ...{ cluster: "local", server_name: "science", cache_reusable: false, reload_semantics: "refresh" },
    registration: registration({ args: ["-v"], env_from: { TOKEN_FILE: "HOME" }, allow_tools: ["inspect"] }),
  });
  expect(await refused(...register("--allow-tool", "other"))).toEqual([7, "state_conflict"]);
  await relay.ok("cluster", "add", "local", "--agent-commands");
  expect(await relay.json("cluster", "show", "local")).toMatchObject({
    agent_commands: true,
    remote_mcp_servers: { science: first["registration"] },
  });
  const file = path.join(relay.home, "config", "clusters.json");
  expect(fs.statSync(file).mode & 0o777).toBe(0o600);
  await relay.ok(...register("--allow-tool", "inspect", "--profile", "user", "--replace", "--reuse"));
  const { servers } = await relay.json<{ servers: unknown[] }>("remote-mcp", "list");
  expect(servers).toMatchObject([
    { server_name: "science", hidden: "not_discovered", discovery: null, registration: { args: [], reuse: { idle_seconds: 300 } } },
  ]);
  // Whoever can write the file decides what is run on the cluster.
  fs.chmodSync(file, 0o620);
  expect(await refused("remote-mcp", "list")).toEqual([2, "configuration_error"]);
  fs.chmodSync(file, 0o600);
});

test.each<[string, readonly string[]]>([
  ["a secret of the relay's", ["--env-from", "X=CLIO_RELAY_API_TOKEN"]],
  ["a variable that is to look like one", ["--env-from", "CLIO_RELAY_STCP_SECRET=HOME"]],
  ["a value in place of a name", ["--env-from", "X=a b"]],
  ["one variable twice", ["--env-from", "X=A", "--env-from", "X=B"]],
  ["two states", ["--enabled", "--disabled"]],
  ["a namespace of other characters", ["--namespace", "a/b"]],
  ["limits of what is not kept", ["--reuse-max-calls", "3"]],
  ["an argument that is too long", [`--arg=${"x".repeat(4_097)}`]],
  ["more arguments than there may be", Array.from({ length: 257 }, () => "--arg=x")],
])("%s is refused", async (_what, args) => {
  expect(await refused(...register("--replace", ...args))).toEqual([2, "usage"]);
});

test("what a refresh has found is shown as agents are shown it; a change of the command hides it, others do not", async () => {
  await relay.ok(...register("--replace", "--allow-tool", "inspect", "--profile", "user"));
  await known([tool("inspect"), tool("other")]);
  const shown = async (profile: string) => {
    const { tools, issues } = await relay.json<{ tools: { name: string }[]; issues: { reason: string }[] }>(
      "remote-mcp",
      "reload",
      "--profile",
      profile,
    );
    return [tools.map(({ name }) => name), issues.map(({ reason }) => reason)];
  };
  expect(await shown("user")).toEqual([["remote_science_inspect"], []]);
  const changed = await relay.json(...register("--replace", "--allow-tool", "*", "--profile", "user", "--namespace", "lab"));
  expect(changed).toMatchObject({ cache_reusable: true, reload_semantics: "next_list" });
  expect(await shown("user")).toEqual([["remote_lab_inspect", "remote_lab_other"], []]);
  await known([tool("inspect")], { provenance: { ...found(entry("local"), "science", []).provenance, server_artifact: MUTABLE } });
  expect(await shown("user")).toEqual([[], ["mutable_server_artifact"]]);
  expect(await shown("admin")).toEqual([["remote_lab_inspect"], []]);
  await relay.ok(...register("--replace", "--allow-tool", "*", "--arg", "new"));
  expect(await shown("admin")).toEqual([[], ["execution_changed"]]);
});

test("whoever looks for tools where they are not is told where they are, and which of those that were allowed there are none of", async () => {
  await relay.ok(...register("--replace", "--allow-tool", "inspect"));
  await known([tool("inspect")]);
  const again = await relay.run(register("--replace", "--allow-tool", "inspect", "--allow-tool", "inspekt"));
  expect([again.code, again.stderr]).toEqual([0, "notice: inspekt: the server had no such tool\n"]);
  const reload = await relay.run(["remote-mcp", "reload"]);
  expect([reload.stdout, reload.stderr]).toEqual([
    "",
    "notice: the profile user is shown none; admin is shown 1: clio-relay remote-mcp reload --profile admin\n",
  ]);
});

test("what is not shown is told on a line each, whatever its server calls it, and of very much the beginning", async () => {
  await relay.ok(...register("--replace", "--allow-tool", "*"));
  const odd = { inputSchema: "none" };
  await known([tool("a\nnotice: forged\u001b[31m", odd), ...Array.from({ length: 60 }, (_, n) => tool(`t${n}`, odd))]);
  const { stderr } = await relay.run(["remote-mcp", "reload", "--profile", "admin"]);
  const lines = stderr.trimEnd().split("\n");
  expect([lines.length, lines.at(-1)]).toEqual([51, "notice: 11 more; --json has all"]);
  expect(lines[0]).toStartWith("notice: local science a\\nnotice: forged");
  expect(stderr).not.toContain("\u001b");
});

test("what is registered no longer is forgotten with what was accepted of it", async () => {
  await relay.ok(...register("--replace", "--allow-tool", "*"));
  await known([tool("inspect")]);
  expect(await relay.json("remote-mcp", "unregister", ...SCIENCE)).toMatchObject({
    server_name: "science",
    registration: { allow_tools: ["*"] },
  });
  expect(readRemoteMcpCache(files(), environment()).entries).toEqual([]);
  expect((await relay.json<{ remote_mcp_servers?: unknown }>("cluster", "show", "local")).remote_mcp_servers).toBeUndefined();
  expect(await refused("remote-mcp", "unregister", ...SCIENCE)).toEqual([3, "not_found"]);
  expect(await refused("remote-mcp", "refresh", ...SCIENCE)).toEqual([3, "not_found"]);
  expect(await refused("remote-mcp", "refresh", "--cluster", "far", "--name", "science")).toEqual([3, "cluster_not_found"]);
});
