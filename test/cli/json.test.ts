import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import Ajv from "ajv";
import { COMMANDS } from "../../src/cli/commands.ts";
import { PRINTED } from "../../src/cli/documents/printed.ts";
import { sha256Hex } from "../../src/lib/digest.ts";
import { makeKeyPair } from "../../src/transport/session/key-pair.ts";
import { eventually } from "../runner/wait.ts";
import { Collected } from "./collected.ts";
import { printedDocuments, verbOf } from "./printed.ts";
import { type Result, SourceRelay } from "./source-relay.ts";

const listed = Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
  Object.entries(verbs)
    .filter(([, command]) => !command.alias)
    .map(([verb]) => `${noun} ${verb}`.trim()),
);

/**
 * Verbs that need something which is not here, and where they are run with `--json`: what a SourceRelay is asked for there is held against the declared schema as it is here.
 */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "cluster bootstrap": "test/cli/frp/frp-bootstrap.rig.test.ts",
  "cluster endpoint-service-status": "test/cli/cluster/bootstrap.rig.test.ts",
  "cluster install-endpoint-service": "test/cli/cluster/bootstrap.rig.test.ts",
  "cluster probe": "test/cli/cluster/bootstrap.rig.test.ts",
  "cluster remove-endpoint-service": "test/cli/cluster/bootstrap.rig.test.ts",
  "cluster restart-endpoint-service": "test/cli/cluster/bootstrap.rig.test.ts",
  "cluster rollback": "test/cli/cluster/rollback.rig.test.ts",
  "cluster uninstall": "test/cli/cluster/bootstrap.rig.test.ts",
  "job submit-pipeline": "test/cli/job/jarvis.rig.test.ts",
  "agent run": "test/cli/agent/agent.rig.test.ts",
  "remote-mcp refresh": "test/mcp/remote-servers.rig.test.ts",
  "jarvis-mcp-call": "test/cli/agent/mcp-call.test.ts",
  "jarvis-mcp-refresh": "test/cli/agent/mcp-call.test.ts",
  "relay-host service install": "test/cli/relay-host/service.rig.test.ts",
  "relay-host service uninstall": "test/cli/relay-host/service.rig.test.ts",
  "mcp-server": "test/mcp/http.test.ts",
  "scheduler status": "test/cli/job/scheduler.rig.test.ts",
  "scheduler cancel": "test/cli/job/scheduler.rig.test.ts",
  "worker bridge": "test/cli/link/bridge.rig.test.ts",
  "worker pair": "test/cli/relay/pairing.rig.test.ts",
};

const validator = new Ajv({ strict: false, allErrors: false }).addSchema(
  JSON.parse(fs.readFileSync(path.resolve(import.meta.dir, "../../docs/cli-schemas.json"), "utf8")),
  "cli",
);

/** Run every verb that can be run on this machine alone. */
class Walk {
  readonly seen = new Set<string>();

  constructor(readonly relay: SourceRelay) {}

  /** What was printed: documents of the verb's schema, as docs/cli-schemas.json has it, too. */
  check(args: readonly string[], code: number, result: Result): Record<string, unknown>[] {
    const verb = verbOf(args)!;
    this.seen.add(verb);
    expect([verb, result.code, result.stderr]).toEqual([verb, code, ""]);
    const { name, shape } = PRINTED[verb]!;
    const documents = printedDocuments(args, result.stdout) as Record<string, unknown>[];
    expect([verb, documents.length > 0]).toEqual([verb, shape !== "nothing"]);
    const valid = validator.getSchema(`cli#/$defs/${name}`);
    for (const one of documents) expect([verb, valid?.(one), valid?.errors]).toEqual([verb, true, null]);
    return documents;
  }

  async call(verb: string, code: number, ...args: string[]): Promise<Record<string, unknown>[]> {
    const line = [...verb.split(" "), "--json", ...args];
    return this.check(line, code, await this.relay.run(line));
  }

  async one<T = Record<string, unknown>>(verb: string, ...args: string[]): Promise<T> {
    const documents = await this.call(verb, 0, ...args);
    expect([verb, documents.length]).toEqual([verb, 1]);
    return documents[0] as T;
  }
}

/** Clusters, links, daemon and worker; a worker runs in the end. */
async function walkInstallation(walk: Walk): Promise<void> {
  const { relay } = walk;
  await walk.one("version");
  await walk.one("agent render-mcp-config");
  await walk.one("agent skill");
  await walk.one("init");
  for (const shell of ["bash", "zsh", "fish"]) await walk.one("completion", shell);
  await walk.one("cluster add", "extra");
  await walk.one("cluster show", "extra");
  await walk.one("cluster remove", "extra", "--yes");
  await relay.ok("cluster", "add", "--name", "far", "--ssh-host", "login");
  await walk.one("cluster show", "far");
  await walk.one("cluster pin-target", "far", "--clear");
  await walk.one("disconnect", "far");
  await relay.ok("cluster", "remove", "far", "--yes");
  const science = ["--cluster", "local", "--name", "science"];
  await walk.one("remote-mcp register", ...science, "--command", "science-mcp", "--allow-tool", "*", "--reuse");
  await walk.one("remote-mcp list");
  await walk.one("remote-mcp reload");
  await walk.one("remote-mcp unregister", ...science);
  await walk.one("link list");
  await walk.one("cluster list");
  await walk.one("desktop start");
  await walk.one("desktop status");
  await walk.one("api start", "--port", "0");
  await walk.one("api status");
  await walk.one("api rotate-token", "--yes");
  await walk.one("api stop");
  await walk.one("worker start");
  await walk.one("connect", "local");
  await walk.one("worker status");
}

async function walkJobs(walk: Walk): Promise<void> {
  const { job_id: job } = await walk.one<{ job_id: string }>("job submit", "--output", "f*", "--", "sh", "-c", "echo said | tee f");
  await walk.one("job submit", "--wait", "--", "true");
  await walk.one("mcp-call", "--server", "/none", "--operation", "tools/list");
  await walk.one("job wait", job);
  await walk.one("job status", job);
  await walk.one("job monitor", job);
  await walk.one("job attempts", job);
  await walk.one("job cancel", job);
  await walk.one("job cancel", job, "--wait");
  await walk.one("job list");
  await walk.one("job read-log", job);
  await walk.call("job read-log", 0, job, "--follow");
  await walk.call("job watch", 0, job);
  await walk.one("job record-progress", job, "--current", "1");
  await walk.one("job progress", job);
  const { tasks } = await walk.one<{ tasks: { task_id: string }[] }>("job tasks", job);
  await walk.one("job record-task-event", tasks[0]!.task_id, "--event-type", "seen", "--label", "a", "--summary", "b");
  await walk.one("job task-events", tasks[0]!.task_id);
  const { artifacts } = await walk.one<{ artifacts: { artifact_id: string; sha256: string }[] }>("job list-artifacts", job);
  const { artifact_id, sha256 } = artifacts[0]!;
  await walk.one("job read-artifact", artifact_id);
  await walk.one("job read-artifact", artifact_id, "-o", ".");
  await walk.one("job fetch", job, "-o", "fetched");
  const { job_id: consumer } = await walk.one<{ job_id: string }>(
    "job submit",
    "--used-artifact",
    `${artifact_id}=${sha256}`,
    "--",
    "true",
  );
  await walk.one("job used-artifacts", consumer);
  await walk.one("job used-by", artifact_id);
  await walk.one("job provenance", consumer);
  await walk.one("job provenance", job, "-o", "job.json");
  await walk.one("job provenance", job, "--format", "ro-crate", "-o", "crate.zip");
  await walk.one("queue list");
  await walk.one("queue audit");
  await walk.one("queue repair", "--yes");
}

async function walkKeys(walk: Walk): Promise<void> {
  const { publicLine } = makeKeyPair("ada@desk");
  const configuration = {
    schema_version: "clio-relay.worker-configuration.v1",
    cluster: "local",
    env_setup: null,
    worker_capacity: { concurrency: 3, control_query_concurrency: 1, kind_concurrency: {} },
    client_keys: [publicLine],
  };
  const line = ["worker", "configure", "--json"];
  walk.check(line, 0, await walk.relay.run(line, { stdin: JSON.stringify(configuration) }));
  const { keys } = await walk.one<{ keys: { fingerprint: string }[] }>("worker keys list");
  await walk.one("worker keys revoke", keys[0]!.fingerprint, "--yes");
  await walk.one("worker keys rotate");
}

async function walkRelayHost(walk: Walk): Promise<void> {
  const { relay } = walk;
  fs.writeFileSync(path.join(relay.directory, "token"), "a token");
  await walk.one("relay-host render-frps-config", "--token", "@token");
  await relay.ok("cluster", "add", "other", "--ssh-host", "other-login", "--frp-server-addr", "relay.example.edu");
  await walk.one("relay-host render-frpc-config", "--cluster", "other", "--local-port", "8848");
  await walk.one("relay-host render-frpc-visitor-config", "--cluster", "other", "--bind-port", "8765", "--output", "visitor.toml");
  await relay.ok("cluster", "remove", "other", "--yes");
  await walk.one("relay-host test-http-transport", "--cluster", "local");
  for (const verb of ["test-ssh-transport", "test-frpc-connection", "test-direct-transport"])
    await walk.call(`relay-host ${verb}`, 2, "--cluster", "local");
  // The digest that is given is all that is asked of it, for another system than this one.
  const program = path.join(relay.directory, "frpc");
  fs.writeFileSync(program, `\x7fELF${"x".repeat(100)}`);
  await walk.one("install-frp", "--from", program, "--sha256", sha256Hex(fs.readFileSync(program)), "--platform", "linux-riscv64");
  const line = ["relay-host", "serve", "--listen-tcp", "127.0.0.1:0", "--json"];
  const host = relay.start(line, { env: { CLIO_RELAY_HOST_TOKEN: "t".repeat(32) } });
  const met = new Collected(host);
  await eventually(() => met.stdout.includes("\n"));
  host.kill("SIGTERM");
  walk.check(line, 0, { code: await met.exited, stdout: met.stdout, stderr: "" });
}

/** What stays in the foreground, and what runs inside of a job. */
async function walkForeground(walk: Walk): Promise<void> {
  const { relay } = walk;
  await walk.call("desktop logs", 0);
  await walk.one("worker stop");
  await walk.one("desktop stop");
  const run = ["worker", "run", "--json"];
  const worker = new Collected(relay.start(run));
  await eventually(() => worker.stdout.includes("\n"));
  await relay.ok("worker", "stop");
  walk.check(run, 0, { code: await worker.exited, stdout: worker.stdout, stderr: "" });
  const background = ["desktop", "run", "--json", "--background"];
  const desktop = relay.start(background);
  await eventually(async () => (await relay.run(["desktop", "status"])).code === 0);
  await relay.ok("desktop", "stop");
  walk.check(background, 0, { code: await desktop.exited, stdout: await desktop.stdout.text(), stderr: "" });

  const events = path.join(relay.directory, "events");
  fs.mkdirSync(events);
  const inside = { env: { CLIO_RELAY_EVENTS: events } };
  const progress = ["emit", "progress", "--json", "--current", "1"];
  walk.check(progress, 0, await relay.run(progress, inside));
  const event = ["emit", "task-event", "--json", "--event-type", "seen", "--label", "a", "--summary", "b"];
  walk.check(event, 0, await relay.run(event, inside));
}

test("every verb says what it prints, and two that print one thing call it by one name", () => {
  expect(Object.keys(PRINTED).sort()).toEqual([...listed].sort());
  const named = Map.groupBy(Object.values(PRINTED), ({ name }) => name);
  for (const [name, all] of named) expect([name, new Set(all.map(({ schema }) => schema)).size]).toEqual([name, 1]);
});

test("every verb answers --json with documents of the schema that it declares, and with its exit code", async () => {
  await using relay = new SourceRelay();
  const walk = new Walk(relay);
  await walkInstallation(walk);
  await walkJobs(walk);
  await walkKeys(walk);
  await walkRelayHost(walk);
  await walkForeground(walk);
  expect([...walk.seen, ...Object.keys(ELSEWHERE)].sort()).toEqual([...listed].sort());
});

test("what is printed is held against its schema", () => {
  const version = ["version", "--json"];
  expect(printedDocuments(version, '{"version":"1","commit":"a","queue_schema":4}\n')).toEqual([
    { version: "1", commit: "a", queue_schema: 4 },
  ]);
  for (const [args, stdout, wrong] of [
    [version, '{"version":"1","queue_schema":4}\n', "no Version: commit"],
    [version, '{"version":"1","commit":"a","queue_schema":4,"more":1}\n', "no Version: more"],
    [version, '{"version":"1","commit":"a","queue_schema":4}', "line feed"],
    [version, "", "line feed"],
    [["--json", "job", "watch", "job_1"], '{"seq":1}\n', "no Event"],
    [["desktop", "run", "--json"], "{}\n", "no nothing"],
  ] as const)
    expect(() => printedDocuments(args, stdout)).toThrow(wrong);
  expect([verbOf(["worker", "keys", "list"]), verbOf(["-y", "init"]), verbOf(["queue", "cancel"]), verbOf(["nothing"])]).toEqual([
    "worker keys list",
    "init",
    null,
    null,
  ]);
});

test.each(Object.entries(ELSEWHERE))("%s is run in %s", (verb, file) => {
  expect(fs.readFileSync(path.resolve(import.meta.dir, "../..", file), "utf8")).toContain(verb.split(" ").at(-1)!);
});

test("what goes wrong is a problem document on standard error, and its exit code", async () => {
  await using relay = new SourceRelay();
  await relay.ok("init");
  const id = `job_${"0".repeat(32)}`;
  for (const [args, code, reason] of [
    [["job", "status", "--cluster", "far", id], 3, "cluster_not_found"],
    [["job", "list"], 5, "worker_not_running"],
    [["job", "list", "--limit", "0"], 2, "usage"],
    [["desktop", "run", "--background", "extra"], 2, "usage"],
  ] as const) {
    const result = await relay.run([...args, "--json"]);
    expect([args, result.code, result.stdout]).toEqual([args, code, ""]);
    expect(JSON.parse(result.stderr)).toMatchObject({ reason });
  }
});
