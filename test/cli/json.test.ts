import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { COMMANDS } from "../../src/cli/commands.ts";
import { makeKeyPair } from "../../src/transport/session/key-pair.ts";
import { eventually } from "../runner/wait.ts";
import { Collected } from "./collected.ts";
import { type Result, SourceRelay } from "./source-relay.ts";

const TIMEOUT = 120_000;

const listed = Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
  Object.entries(verbs)
    .filter(([, command]) => !command.alias)
    .map(([verb]) => `${noun} ${verb}`.trim()),
);

/** Verbs that need a host elsewhere, which is in bootstrap.rig.test.ts, and those that such a host runs: its documents are read by bootstrap itself. */
const ELSEWHERE = [
  // A release of frp, and a cluster that is met through one: frp-verbs.test.ts and frp.rig.test.ts have them.
  "install-frp",
  "relay-host render-frpc-config",
  "relay-host render-frpc-visitor-config",
  "cluster bootstrap",
  "cluster endpoint-service-status",
  "cluster install-endpoint-service",
  "cluster probe",
  "cluster remove-endpoint-service",
  "cluster restart-endpoint-service",
  "cluster rollback",
  "cluster uninstall",
  // The machine's systemd: relay-host/service.rig.test.ts has it.
  "relay-host service install",
  "relay-host service uninstall",
  "worker bridge",
  "worker configure",
  // A relay-host: pairing.rig.test.ts has it.
  "worker pair",
];

/** What a program reads: one document that ends with a line feed, or one object a line. */
const SHAPES = {
  document: (text: string) => {
    expect(text).toEndWith("\n");
    return [JSON.parse(text) as unknown];
  },
  lines: (text: string) => {
    expect(text).toEndWith("\n");
    return text
      .slice(0, -1)
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
  },
  nothing: (text: string) => {
    expect(text).toBe("");
    return [];
  },
};

test(
  "every verb answers --json with one document, or one object a line where it goes on, and with its exit code",
  async () => {
    await using relay = new SourceRelay();
    const seen = new Set<string>();
    const check = (verb: string, shape: keyof typeof SHAPES, code: number, result: Result): Record<string, unknown>[] => {
      seen.add(verb);
      expect([verb, result.code, result.stderr]).toEqual([verb, code, ""]);
      const documents = SHAPES[shape](result.stdout) as Record<string, unknown>[];
      for (const one of documents) expect([verb, one]).toEqual([verb, expect.objectContaining({})]);
      return documents;
    };
    const call = async (verb: string, shape: keyof typeof SHAPES, code: number, ...args: string[]) =>
      check(verb, shape, code, await relay.run([...verb.split(" "), "--json", ...args]));
    const one = async (verb: string, ...args: string[]) => (await call(verb, "document", 0, ...args))[0]!;

    await one("version");
    await one("init");
    await one("cluster add", "extra");
    await one("cluster show", "extra");
    await one("cluster remove", "extra", "--yes");
    await relay.ok("cluster", "add", "--name", "far", "--ssh-host", "login");
    await one("cluster pin-target", "far", "--clear");
    await one("disconnect", "far");
    await relay.ok("cluster", "remove", "far", "--yes");
    await one("link list");
    await one("cluster list");
    await one("desktop start");
    await one("desktop status");
    await one("worker start");
    await one("connect", "local");
    await one("worker status");
    const { job_id: job } = (await one("job submit", "--wait", "--output", "f*", "--", "sh", "-c", "echo said | tee f")) as {
      job_id: string;
    };
    await one("job status", job);
    await one("job monitor", job);
    await one("job wait", job);
    await one("job attempts", job);
    await one("job cancel", job);
    await one("job list");
    await one("job read-log", job);
    await call("job read-log", "lines", 0, job, "--follow");
    await call("job watch", "lines", 0, job);
    await one("job record-progress", job, "--current", "1");
    await one("job progress", job);
    const { tasks } = (await one("job tasks", job)) as { tasks: { task_id: string }[] };
    await one("job record-task-event", tasks[0]!.task_id, "--event-type", "seen", "--label", "a", "--summary", "b");
    await one("job task-events", tasks[0]!.task_id);
    const { artifacts } = (await one("job list-artifacts", job)) as { artifacts: { artifact_id: string }[] };
    await one("job read-artifact", artifacts[0]!.artifact_id);
    await one("job read-artifact", artifacts[0]!.artifact_id, "-o", ".");
    await one("job fetch", job, "-o", "fetched");
    await one("queue list");
    await one("queue audit");
    await one("queue repair", "--yes");
    const { publicLine } = makeKeyPair("ada@desk");
    const configuration = {
      schema_version: "clio-relay.worker-configuration.v1",
      cluster: "local",
      env_setup: null,
      worker_capacity: { concurrency: 3, control_query_concurrency: 1, kind_concurrency: {} },
      client_keys: [publicLine],
    };
    expect((await relay.run(["worker", "configure"], { stdin: JSON.stringify(configuration) })).code).toBe(0);
    const { keys } = (await one("worker keys list")) as { keys: { fingerprint: string }[] };
    await one("worker keys revoke", keys[0]!.fingerprint, "--yes");
    await one("worker keys rotate");
    fs.writeFileSync(path.join(relay.directory, "token"), "a token");
    await one("relay-host render-frps-config", "--token", "@token");
    await one("relay-host test-http-transport", "--cluster", "local");
    for (const verb of ["test-ssh-transport", "test-frpc-connection", "test-direct-transport"]) {
      await call(`relay-host ${verb}`, "document", 2, "--cluster", "local");
    }
    await call("desktop logs", "lines", 0);
    await one("worker stop");
    await one("desktop stop");

    // Those that stay in the foreground.
    const host = relay.start(["relay-host", "serve", "--listen-tcp", "127.0.0.1:0", "--json"], {
      env: { CLIO_RELAY_HOST_TOKEN: "t".repeat(32) },
    });
    const met = new Collected(host);
    await eventually(() => met.stdout.includes("\n"));
    host.kill("SIGTERM");
    check("relay-host serve", "document", 0, { code: await met.exited, stdout: met.stdout, stderr: "" });
    const worker = new Collected(relay.start(["worker", "run", "--json"]));
    await eventually(() => worker.stdout.includes("\n"));
    await relay.ok("worker", "stop");
    check("worker run", "lines", 0, { code: await worker.exited, stdout: worker.stdout, stderr: "" });
    const desktop = relay.start(["desktop", "run", "--json", "--background"]);
    await eventually(async () => (await relay.run(["desktop", "status"])).code === 0);
    await relay.ok("desktop", "stop");
    check("desktop run", "nothing", 0, { code: await desktop.exited, stdout: await desktop.stdout.text(), stderr: "" });

    const events = path.join(relay.directory, "events");
    fs.mkdirSync(events);
    const inside = { env: { CLIO_RELAY_EVENTS: events } };
    check("emit progress", "document", 0, await relay.run(["emit", "progress", "--json", "--current", "1"], inside));
    const event = ["--event-type", "seen", "--label", "a", "--summary", "b"];
    check("emit task-event", "document", 0, await relay.run(["emit", "task-event", "--json", ...event], inside));
    expect([...seen, ...ELSEWHERE].sort()).toEqual([...listed].sort());
  },
  TIMEOUT,
);

test(
  "what goes wrong is a problem document on standard error, and its exit code",
  async () => {
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
  },
  TIMEOUT,
);
