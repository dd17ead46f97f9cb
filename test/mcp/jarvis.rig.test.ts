import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type SourceRelay, withWorker } from "../cli/source-relay.ts";
import { JarvisStandIn } from "../rigs/jarvis/stand-in.ts";
import { describeWith } from "../runner/components.ts";
import { removeTree } from "../runner/remove.ts";
import { Agent } from "./agent.ts";

const SERVER = path.join(import.meta.dir, "science-server-process.ts");

interface Started {
  readonly job_id: string;
  readonly execution_handle: { readonly pipeline_id: string; readonly execution_id: string };
}

describeWith("python3", "JARVIS-CD, for agents", () => {
  const place = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-jarvis-mcp-"));
  const jarvis = new JarvisStandIn(place).initialize();
  let relay: SourceRelay;
  beforeAll(async () => {
    relay = await withWorker({ ...jarvis.environment, CLIO_RELAY_JARVIS_BIN: jarvis.program });
    jarvis.keep("kept", { name: "kept", pkgs: [{ pkg_type: "demo.counter", pkg_name: "c1" }] });
  });
  afterAll(async () => {
    await relay?.[Symbol.asyncDispose]();
    removeTree(place);
  });

  test("a pipeline that the cluster has is run by the worker, and a run is described from what it knows", async () => {
    await using agent = await Agent.of(relay);
    const started = await agent.ok<Started>("jarvis_run", { cluster: "local", pipeline_id: "kept" });
    expect(started).toMatchObject({ served_by: "engine", kind: "jarvis", terminal: false, retry: { tool: "relay_wait" } });
    expect(await agent.ok("relay_wait", { job_id: started.job_id, timeout_seconds: 80 })).toMatchObject({ state: "succeeded" });
    const { execution_id } = started.execution_handle;
    const asked = { cluster: "local", pipeline_id: "kept", execution_id, include_service_runtimes: true };
    const answer = await agent.ok("jarvis_get_execution", { ...asked, job_id: started.job_id });
    expect(answer).toMatchObject({
      ...{ served_by: "engine", job_id: started.job_id, state: "succeeded", execution_handle: started.execution_handle },
      execution_record: { execution_id, state: "completed" },
      artifact_page: { next_cursor: null },
    });
    // Who has only the execution's id finds it among the latest.
    expect(await agent.ok("jarvis_get_execution", asked)).toMatchObject({ job_id: started.job_id });
    expect(await agent.problem("jarvis_get_execution", { ...asked, execution_id: "jarvis_0" })).toMatchObject({
      reason: "job_not_found",
    });
    expect(await agent.problem("jarvis_run", { cluster: "local", pipeline_id: "absent" })).toMatchObject({
      reason: "jarvis_submission_refused",
    });
  });

  test("files come along with a run: those that are given, and those that its settings name; what the run used is on record", async () => {
    const deck = (more: object) => ({ pkg_type: "demo.counter", ...more });
    jarvis.keep("decked", { name: "decked", pkgs: [deck({ pkg_name: "c1", deck: "in.lj" }), deck({ pkg_name: "c2", deck: "" })] });
    fs.writeFileSync(path.join(relay.directory, "in.lj"), "first");
    fs.writeFileSync(path.join(relay.directory, "other.lj"), "second");
    await using agent = await Agent.of(relay);
    const run = { cluster: "local", pipeline_id: "decked", inputs: { "c2.deck": "other.lj" } };
    const started = await agent.ok<Started>("jarvis_run", { ...run, idempotency_key: "k" });
    expect(await agent.ok("relay_wait", { job_id: started.job_id, timeout_seconds: 80 })).toMatchObject({ state: "succeeded" });
    const { used_artifacts } = await relay.json<{ used_artifacts: { sha256: string; provenance: { arg: string } }[] }>(
      ...["job", "used-artifacts", started.job_id],
    );
    const digest = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");
    expect(used_artifacts.map(({ sha256, provenance }) => [provenance.arg, sha256]).sort()).toEqual([
      ["c1.deck", digest("first")],
      ["c2.deck", digest("second")],
    ]);
    // What ran has the paths of the copies.
    const ran = JSON.parse(await relay.ok("job", "read-artifact", started.job_id, "pipeline.yaml", "-o", "-")) as {
      pkgs: { deck: string }[];
    };
    expect(ran.pkgs.map(({ deck }) => fs.readFileSync(deck, "utf8"))).toEqual(["first", "second"]);
    // The same key is the same run; a file that is another one by then is another submission.
    expect(await agent.ok("jarvis_run", { ...run, idempotency_key: "k" })).toMatchObject({ job_id: started.job_id, existing: true });
    fs.writeFileSync(path.join(relay.directory, "other.lj"), "third");
    expect(await agent.problem("jarvis_run", { ...run, idempotency_key: "k" })).toMatchObject({ reason: "job_submission_conflict" });
    const refused = async (inputs: object) => (await agent.problem("jarvis_run", { ...run, inputs }))["reason"];
    expect(await refused({ "c2.steps": "other.lj" })).toBe("request_validation_failed");
    expect(await refused({ deck: "other.lj" })).toBe("request_validation_failed");
    expect(await refused({ "c2.deck": "/etc/hostname" })).toBe("path_escapes_root");
    expect(await refused({ "c2.deck": "absent.lj" })).toBe("local_file_missing");
    fs.writeFileSync(path.join(relay.directory, "large.lj"), new Uint8Array(1024 * 1024 + 1));
    expect(await refused({ "c2.deck": "large.lj" })).toBe("payload_too_large");
    // By its name it runs as the cluster keeps it.
    await using admin = await Agent.of(relay, { args: ["--profile", "admin"] });
    const uses = used_artifacts as unknown as { artifact_id: string; sha256: string }[];
    const [{ artifact_id, sha256 }] = uses as [{ artifact_id: string; sha256: string }];
    const named = { cluster: "local", pipeline_name: "decked", inputs: { "c1.deck": artifact_id } };
    const pinned = { ...named, used_artifact_refs: [{ artifact_id, sha256 }] };
    expect(await admin.problem("relay_submit_jarvis_job", pinned)).toMatchObject({ reason: "jarvis_submission_refused", cause: "input" });
  });

  test("what only its MCP server can do is said to be missing, and comes from there where one is registered", async () => {
    const words = path.join(relay.directory, "words");
    fs.writeFileSync(words, "Inspects.");
    await using user = await Agent.of(relay);
    const missing = { reason: "engine_unavailable", cause: "jarvis_mcp_unregistered", cluster: "local" };
    expect(await user.problem("jarvis_create_pipeline", { cluster: "local", pipeline_id: "new" })).toMatchObject(missing);
    expect(await user.problem("jarvis_run", { cluster: "local", pipeline_id: "kept", execution: { nodes: 2 } })).toMatchObject(missing);
    const command = [
      "--command",
      process.execPath,
      `--arg=${SERVER}`,
      `--arg=${words}`,
      "--allow-tool",
      "jarvis_describe",
      "--allow-tool",
      "jarvis_add_step",
    ];
    await relay.ok("remote-mcp", "register", "--cluster", "local", "--name", "jarvis", ...command);
    await relay.ok("remote-mcp", "refresh", "--cluster", "local", "--name", "jarvis");
    await using admin = await Agent.of(relay, { args: ["--profile", "admin"] });
    const given = { target: "packages", page_size: 5 };
    expect(await admin.ok("jarvis_describe", { cluster: "local", ...given })).toMatchObject({
      ...{ served_by: "mcp", kind: "mcp_call", state: "succeeded" },
      mcp_result: { structured_result: { given } },
    });
    const called = { cluster: "local", tool: "jarvis_describe", arguments: given, wait_for_terminal: true };
    expect(await admin.ok("relay_call_jarvis_mcp", called)).toMatchObject({
      state: "succeeded",
      mcp_result: { structured_result: { given } },
    });
    // A file that a step's setting is declared to be comes along, and the server is told where the copy is.
    fs.writeFileSync(path.join(relay.directory, "step.lj"), "of a step");
    const step = { cluster: "local", pipeline_id: "new", package_name: "demo.counter", wait_timeout_seconds: 100 };
    interface Step {
      readonly job_id: string;
      readonly mcp_result: { readonly structured_result: { readonly given: { readonly config: Record<string, unknown> } } };
    }
    const added = await admin.ok<Step>("jarvis_add_step", { ...step, config: { deck: "step.lj", steps: 3 } });
    const { config } = added.mcp_result.structured_result.given;
    expect([fs.readFileSync(config["deck"] as string, "utf8"), config["steps"]]).toEqual(["of a step", 3]);
    const { used_artifacts } = await relay.json<{ used_artifacts: object[] }>("job", "used-artifacts", added.job_id);
    expect(used_artifacts).toMatchObject([{ provenance: { evidence: "schema-arg", arg: "deck" } }]);
    // A path of the cluster's, and what is no file, are left as they are.
    for (const given of [{ deck: "/etc/hostname" }, { steps: 4 }])
      expect((await admin.ok<Step>("jarvis_add_step", { ...step, config: given })).mcp_result.structured_result.given.config).toEqual(
        given,
      );
    expect(await admin.problem("jarvis_add_step", { ...step, config: { deck: "absent.lj" } })).toMatchObject({
      reason: "local_file_missing",
    });
    expect(await admin.problem("jarvis_add_step", { ...step, config: { deck: "../absent.lj" } })).toMatchObject({
      reason: expect.stringMatching(/^(?:path_escapes_root|local_file_missing)$/),
    });
    // One that is registered is the one that is asked, also for what it does not have.
    const without = { reason: "engine_unavailable", cause: "tool_not_allowed" };
    expect(await admin.problem("jarvis_create_pipeline", { cluster: "local", pipeline_id: "new" })).toMatchObject(without);
    // It is not there for everybody's agents.
    expect(await user.problem("jarvis_describe", { cluster: "local", ...given })).toMatchObject(missing);
  });
});
