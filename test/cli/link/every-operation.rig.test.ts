import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { makeKeyPair } from "../../../src/transport/session/key-pair.ts";
import { fingerprintOf, publicKeyFromLine } from "../../../src/transport/session/keys.ts";
import { listen } from "../../api/web-socket-client.ts";
import { describeWith } from "../../runner/components.ts";
import type { SourceRelay } from "../source-relay.ts";
import { MODES, type Reached } from "./link-modes.ts";

/** What a job is known by. */
interface Known {
  readonly job: string;
  readonly task: string;
  readonly artifact: string;
  /** Fingerprints of desktops' keys, one for each that revokes one. */
  readonly keys: readonly [string, string];
}

/** Of a job that uses nothing. */
const TRANSFORM = {
  activity_id: "run-1",
  mechanism: "none",
  environment: { tier: "declared", description: "as it was" },
  replay: "re-runnable",
  replay_reason: "nothing says otherwise",
  used_evidence: [],
};

/** A file of three bytes. */
const INPUT = { sha256: new Bun.CryptoHasher("sha256").update("abc").digest("hex"), size_bytes: 3 };
const INPUT_NAMES = { cluster: "far", logical_name: "in.lj", idempotency_key: "one" };

/** Query and body for the operations that need one. */
const REQUESTS: Readonly<Record<string, { query?: string; body?: (known: Known) => unknown; status?: number }>> = {
  submitJob: { body: () => ({ cluster: "far", kind: "command", spec: { argv: ["true"] } }), status: 201 },
  waitForJob: { query: "timeout_seconds=5" },
  cancelJob: { body: () => ({}) },
  streamEvents: { query: "stop_after_replay=true" },
  streamMonitor: { query: "stop_after_replay=true" },
  streamTaskEvents: { query: "stop_after_replay=true" },
  // What they are when they are asked for is a test of its own.
  streamEventsOverWebSocket: { status: 426 },
  streamMonitorOverWebSocket: { status: 426 },
  streamTaskEventsOverWebSocket: { status: 426 },
  // There is no engine for them.
  submitJarvis: { body: () => ({ cluster: "far", pipeline_yaml: "name: a" }), status: 422 },
  queryPipelineInputs: { body: () => ({ pipeline_yaml: "name: a" }), status: 422 },
  submitJarvisPipeline: { body: () => ({ cluster: "far", pipeline_name: "a" }), status: 422 },
  submitRemoteAgent: { body: () => ({ cluster: "far", prompt_path: "/p" }), status: 422 },
  submitMcpCall: { body: () => ({ cluster: "far", server: "s", env_from: { A: "NOT_THERE" }, operation: "tools/list" }), status: 422 },
  submitJarvisMcpCall: { body: () => ({ cluster: "far", operation: "tools/list" }), status: 422 },
  // There is no scheduler, and no job has one's id.
  observeSchedulerJob: { status: 422 },
  cancelSchedulerJob: { body: () => ({}), status: 403 },
  recordTaskEvent: { body: () => ({ event_type: "seen", label: "a", summary: "b" }), status: 201 },
  recordTransform: { body: () => TRANSFORM, status: 201 },
  recordProgress: { body: () => ({ label: "a", current: 1 }), status: 201 },
  revokeKey: { body: ({ keys }) => ({ key: keys[0] }) },
  rotateHostKey: { body: () => ({ overlap_seconds: 3_600 }) },
  queryInputContents: { body: () => ({ contents: [INPUT] }) },
  beginInputUpload: { body: () => INPUT, status: 201 },
  getInputUpload: { query: "size_bytes=3" },
  giveUpInputUpload: { query: "size_bytes=3" },
  // It has just been given up.
  putInputPiece: { query: "size_bytes=3&offset=0", body: () => "abc", status: 404 },
  completeInputUpload: { body: () => INPUT, status: 404 },
  recordInputArtifact: { body: () => ({ ...INPUT, ...INPUT_NAMES, schema_version: "clio-relay.input-artifact.v1" }), status: 404 },
  ingestInputArtifact: {
    body: () => ({ ...INPUT, ...INPUT_NAMES, schema_version: "clio-relay.input-artifact-ingest.v1", data_base64: "YWJj" }),
    status: 201,
  },
  makePairingCode: { body: () => ({ relay_host: null, key_ttl_seconds: null }) },
};

/** Operations of the daemon itself: those about links are what the other tests of this kind are about. */
const OWN =
  /^(?:desktop|stop|list(?:Links|Clusters)|putCluster|getCluster|removeCluster|connectCluster|pairCluster|disconnectCluster|answerPrompt|host[A-Z]|listener[A-Z]|(?:start|rotate)Listener)/;

/** The arguments of every verb that works on a cluster; null for those that do not, or that make or end connections. */
const VERBS: Readonly<Record<string, ((known: Known) => readonly string[]) | null>> = {
  init: null,
  connect: () => [],
  disconnect: null,
  version: null,
  "job submit": () => ["--wait", "--input", "deck=in.lj", "--", "true"],
  // There is no JARVIS-CD.
  "job submit-pipeline": null,
  // There is no agent.
  "agent run": null,
  "mcp-call": () => ["--server", "/none", "--operation", "tools/list"],
  // There is no MCP server of JARVIS-CD.
  "jarvis-mcp-call": null,
  "jarvis-mcp-refresh": null,
  "job watch": ({ job }) => [job],
  "job read-log": ({ job }) => [job, "--follow"],
  "job wait": ({ job }) => [job],
  "job status": ({ job }) => [job],
  "job monitor": ({ job }) => [job],
  "job list": () => [],
  "job cancel": ({ job }) => [job],
  "job attempts": ({ job }) => [job],
  "job progress": ({ job }) => [job],
  "job record-progress": ({ job }) => [job, "--current", "1"],
  "job tasks": ({ job }) => [job],
  "job task-events": ({ task }) => [task],
  "job record-task-event": ({ task }) => [task, "--event-type", "seen", "--label", "a", "--summary", "b"],
  "job list-artifacts": ({ job }) => [job],
  "job fetch": ({ job }) => [job, "-o", "copies"],
  "job used-artifacts": ({ job }) => [job],
  "job used-by": ({ artifact }) => [artifact],
  "job provenance": ({ job }) => [job],
  "job read-artifact": ({ artifact }) => [artifact, "-o", "copy"],
  // There is no scheduler: scheduler.rig.test.ts has them.
  "scheduler status": null,
  "scheduler cancel": null,
  "queue list": () => [],
  "queue audit": () => [],
  "queue repair": () => ["--yes"],
  "worker run": null,
  "mcp-server": null,
  "agent render-mcp-config": () => [],
  "agent skill": () => [],
  "remote-mcp register": () => ["--cluster", "far", "--name", "science", "--command", "science-mcp"],
  // There is no such server: remote-servers.rig.test.ts has one.
  "remote-mcp refresh": null,
  "remote-mcp list": () => [],
  "remote-mcp reload": () => [],
  "remote-mcp unregister": () => ["--cluster", "far", "--name", "science"],
  "worker bridge": null,
  "worker configure": null,
  "worker status": () => [],
  "worker keys list": () => [],
  "worker keys revoke": ({ keys }) => [keys[1], "--yes"],
  "worker keys rotate": () => [],
  // With a relay-host: pairing.rig.test.ts has it.
  "worker pair": null,
  "desktop start": () => [],
  "desktop stop": null,
  "desktop status": () => [],
  "desktop logs": () => [],
  "desktop run": null,
  "api start": () => ["--port", "0"],
  "api status": () => [],
  "api rotate-token": () => ["--yes"],
  "api stop": () => [],
  "cluster add": () => ["--worker-concurrency", "4"],
  "cluster list": () => [],
  "cluster show": () => [],
  "cluster pin-target": null,
  "cluster probe": () => [],
  "cluster endpoint-service-status": () => [],
  // With an installation to work on: bootstrap.rig.test.ts has them on one connection.
  "worker stop": null,
  "worker start": null,
  "cluster bootstrap": null,
  "cluster install-endpoint-service": null,
  "cluster restart-endpoint-service": null,
  "cluster remove-endpoint-service": null,
  "cluster rollback": null,
  "cluster uninstall": null,
  "cluster remove": null,
  "link list": () => [],
  "install-frp": null,
  completion: null,
  "relay-host serve": null,
  "relay-host render-frps-config": () => [],
  "relay-host test-http-transport": () => ["--cluster", "far"],
  // Of clusters that are reached so: frp.rig.test.ts has them.
  "relay-host render-frpc-config": null,
  "relay-host render-frpc-visitor-config": null,
  "relay-host test-frpc-connection": null,
  "relay-host test-direct-transport": null,
  "relay-host test-ssh-transport": null,
  "relay-host service install": null,
  "relay-host service uninstall": null,
  "emit progress": null,
  "emit task-event": null,
};
/** Verbs that name the cluster as an argument. */
const NAMED = /^(?:connect|cluster (?:add|show|probe|endpoint-service-status))$/;

for (const [name, mode] of Object.entries(MODES))
  describeWith(mode.needs, `over a link of mode ${name} that is up`, () => {
    let far: Reached;
    let relay: SourceRelay;
    let known: Known;

    beforeAll(async () => {
      far = await mode.start();
      relay = far.relay;
      fs.writeFileSync(path.join(relay.directory, "in.lj"), "units lj\n");
      const script = "echo said; mkdir -p out; echo kept > out/file";
      const job = await relay.submit("--output", "out/*", "--wait", "--", "sh", "-c", script);
      const { tasks } = await relay.json<{ tasks: { task_id: string }[] }>("job", "tasks", job);
      const { artifacts } = await relay.json<{ artifacts: { artifact_id: string }[] }>("job", "list-artifacts", job);
      const lines = [makeKeyPair("ada@desk"), makeKeyPair("bob@desk")].map(({ publicLine }) => publicLine);
      far.letIn(lines);
      const [one, other] = lines.map((line) => fingerprintOf(publicKeyFromLine(line)));
      known = { keys: [one!, other!], job, task: tasks[0]!.task_id, artifact: artifacts[0]!.artifact_id };
    });
    afterAll(async () => {
      await far[Symbol.asyncDispose]();
    });

    const fetchUnix = (route: string, init: RequestInit = {}): Promise<Response> =>
      fetch(`http://relay${route}`, { ...init, unix: path.join(relay.home, "run", "desktop.sock") } as RequestInit);

    interface Document {
      paths: Record<string, Record<string, { operationId: string }>>;
    }

    test("every operation of the worker goes without a connection of its own", async () => {
      const document = (await (await fetchUnix("/openapi.json")).json()) as Document;
      const operations = Object.entries(document.paths).flatMap(([route, methods]) =>
        Object.entries(methods).map(([method, { operationId }]) => ({ route, method, operationId })),
      );
      const forwarded = operations.filter(({ operationId }) => !OWN.test(operationId));
      expect(forwarded.length).toBeGreaterThan(25);
      for (const { route, method, operationId } of forwarded) {
        const id = /\/(?:tasks)\//.test(route) ? known.task : /\/artifacts\/\{id\}/.test(route) ? known.artifact : known.job;
        const at = route
          .replace("{name}", "far")
          .replace("{id}", id)
          .replace("{stream}", "stdout")
          .replace("{attempt}", "1")
          .replace("{sha256}", INPUT.sha256);
        expect([operationId, at]).toEqual([operationId, expect.stringMatching(/^\/clusters\/far\/[^{}]*$/)]);
        const { query, body, status = operationId === "makePairingCode" ? mode.pairing : 200 } = REQUESTS[operationId] ?? {};
        const response = await fetchUnix(`${at}${query === undefined ? "" : `?${query}`}`, {
          method: method.toUpperCase(),
          ...(body === undefined ? {} : { body: JSON.stringify(body(known)) }),
        });
        expect([operationId, response.status, await response.text()]).toEqual([operationId, status, expect.any(String)]);
      }
      await far.undisturbed();
    });

    test("WebSockets bring what event streams do", async () => {
      for (const [what, event] of [
        [`jobs/${known.job}/events`, "job.queued"],
        [`jobs/${known.job}/monitor`, "monitor"],
        [`tasks/${known.task}/events`, "terminal"],
      ] as const) {
        const heard = await listen(`ws+unix://${path.join(relay.home, "run", "desktop.sock")}:/clusters/far/${what}/ws`);
        expect([what, heard.messages.map((message) => message.event)]).toEqual([what, expect.arrayContaining([event, "terminal"])]);
        expect([heard.code, heard.reason]).toEqual([1000, "terminal"]);
      }
      const none = await listen(`ws+unix://${path.join(relay.home, "run", "desktop.sock")}:/clusters/far/jobs/job_none/events/ws`);
      expect([none.code, none.reason]).toEqual([1008, "job_not_found"]);
      await far.undisturbed();
    });

    test("and so does every verb", async () => {
      const verbs = Object.entries(COMMANDS).flatMap(([noun, all]) =>
        Object.entries(all)
          .filter(([, command]) => !command.alias)
          .map(([verb]) => `${noun} ${verb}`.trim()),
      );
      expect(Object.keys(VERBS).toSorted()).toEqual(verbs.toSorted());
      for (const [verb, args] of Object.entries(VERBS)) {
        if (args === null || mode.without?.test(verb) === true) continue;
        // What is printed as JSON is held against its schema where it is run (SourceRelay.run).
        const asked = name === "ssh" ? ["--no-input", "--json"] : ["--no-input"];
        const result = await relay.run([...verb.split(" "), ...(NAMED.test(verb) ? ["far"] : []), ...asked, ...args(known)]);
        expect([verb, result.code, result.stderr]).toEqual([verb, 0, expect.any(String)]);
      }
      expect(fs.readFileSync(path.join(relay.directory, "copy"), "utf8").length).toBeGreaterThan(0);
      await far.undisturbed();
    });
  });
