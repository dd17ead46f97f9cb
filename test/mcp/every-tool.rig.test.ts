import { afterAll, beforeAll, expect, test } from "bun:test";
import type { SourceRelay } from "../cli/source-relay.ts";
import { FarSite, farLink } from "../cli/ssh-desk.ts";
import { describeWith } from "../runner/components.ts";
import { Wire } from "./wire.ts";

interface Tool {
  readonly name: string;
  readonly inputSchema: {
    readonly required?: readonly string[];
    readonly properties?: Record<string, { readonly enum?: readonly unknown[] }>;
  };
}
interface Answer {
  readonly isError?: boolean;
  readonly content?: readonly { readonly text?: string }[];
}

/** What this cluster lacks: commands that agents may submit, agents, JARVIS-CD, servers of others. Those tools say so, over the same link. */
const LACKING = /^jarvis_|jarvis|submit_(?:command|agent|remote_agent|mcp_call)$/;

describeWith(["sshd", "ssh"], "every tool, over a link of mode ssh that is up", () => {
  let site: FarSite;
  let relay: SourceRelay;
  let wire: Wire;
  /** A value for each argument that some tool needs. */
  let known: Readonly<Record<string, unknown>>;

  beforeAll(async () => {
    site = await FarSite.start();
    site.worker.start();
    relay = await site.desk();
    await relay.ok("connect", "far");
    const job_id = await relay.submit("--output", "out", "--wait", "--", "sh", "-c", "echo said; echo left > out");
    const { tasks } = await relay.json<{ tasks: { task_id: string }[] }>("job", "tasks", job_id);
    const { artifacts } = await relay.json<{ artifacts: { artifact_id: string; name: string }[] }>("job", "list-artifacts", job_id);
    known = {
      ...{ cluster: "far", job_id, task_id: tasks[0]!.task_id, artifact_id: artifacts.find(({ name }) => name === "out")!.artifact_id },
      ...{ event_type: "stage", label: "one", summary: "what was done" },
      ...{ prompt_path: "/p", pipeline_yaml: "name: a", pipeline_name: "a", server: "/none", tool: "a" },
      ...{ pipeline_id: "a", package_name: "a", step_id: "a", execution_id: "a" },
    };
    wire = new Wire(relay, ["--profile", "admin"]);
  }, 120_000);
  afterAll(async () => {
    await wire[Symbol.asyncDispose]();
    await relay[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
  });

  test("goes without a connection of its own", async () => {
    const before = site.sshd.connections();
    const { tools } = await wire.result<{ tools: Tool[] }>("tools/list", {});
    expect(tools.length).toBeGreaterThan(30);
    for (const { name, inputSchema } of tools) {
      const { required = [], properties = {} } = inputSchema;
      const wanted = required.map((key) => [key, known[key] ?? properties[key]?.enum?.[0]] as const);
      // A tool with an argument that is not known here has to be given one.
      expect([name, wanted.filter(([, value]) => value === undefined)]).toEqual([name, []]);
      const either = name === "relay_artifact_lineage" ? { job_id: known["job_id"] } : {};
      const { isError = false, content } = await wire.result<Answer>("tools/call", {
        name,
        arguments: { ...Object.fromEntries(wanted), ...either },
      });
      if (!LACKING.test(name)) expect([name, isError, content?.[0]?.text]).toEqual([name, false, content?.[0]?.text]);
    }
    const { state, ssh_connections_since_bring_up, ledger } = await farLink(relay);
    expect([state, ssh_connections_since_bring_up, ledger.length]).toEqual(["up", 0, 1]);
    expect([before, site.sshd.connections()]).toEqual([1, 1]);
  }, 120_000);
});
