import { expect, test } from "bun:test";
import { initialized, MAIN } from "../cli/source-relay.ts";
import { fastMcpDoes } from "../rigs/fastmcp/client.ts";
import { describeWith } from "../runner/components.ts";
import { eventually } from "../runner/wait.ts";
import { HeldJob } from "./held-job.ts";
import { HttpEndpoint, TOKEN } from "./http-endpoint.ts";
import { USER_TOOLS } from "./tool-names.ts";

interface Begun {
  readonly protocol: string;
  readonly tools: readonly string[];
  readonly clusters: { readonly clusters: readonly { readonly cluster: string }[] };
  readonly ended: Record<string, unknown>;
  readonly canceled: string;
  readonly status: string;
  readonly task: { readonly taskId: string };
}

interface Collected {
  readonly status: string;
  readonly result: Record<string, unknown>;
  readonly isError: boolean;
}

describeWith("fastmcp", "FastMCP with fastmcp-tasks", () => {
  test("lists, calls, cancels, leaves a task behind, and comes back for it by the other way, where it is asked for something first", async () => {
    await using relay = await initialized();
    await relay.ok("cluster", "add", "--name", "local", "--agent-commands", "--worker-concurrency", "8");
    await relay.ok("worker", "start", "--cluster", "local");
    await using endpoint = await HttpEndpoint.of(relay);
    const stdio = { command: process.execPath, args: [MAIN, "mcp-server"], env: relay.environment, cwd: relay.directory };
    const http = { url: endpoint.url, token: TOKEN };
    const held = [new HeldJob(relay, "echo by stdio"), new HeldJob(relay, "echo by HTTP; exit 3")] as const;

    const begun = await fastMcpDoes<[Begun, Begun]>(
      { to: stdio, do: "begin", argv: held[0].argv },
      { to: http, do: "begin", argv: held[1].argv },
    );
    for (const one of begun) {
      expect(one).toMatchObject({
        protocol: "2026-07-28",
        clusters: { clusters: [{ cluster: "local" }] },
        ended: { state: "succeeded", logs_tail: { stdout: { text: "through\n" } } },
        canceled: "cancelled",
        status: "working",
      });
      expect(one.tools.toSorted()).toEqual(USER_TOOLS.toSorted());
    }

    const [first, second] = begun.map(({ task }) => task.taskId) as [string, string];
    const { tasks } = await relay.json<{ tasks: { task_id: string }[] }>("job", "tasks", first);
    const timeline = tasks[0]!.task_id;
    const params = {
      mode: "form",
      message: "What is it called?",
      requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    };
    const metadata = JSON.stringify({ requests: { name: { method: "elicitation/create", params } } });
    const asks = ["--event-type", "mcp.input_requested", "--label", "input", "--summary", "asked", "--metadata-json", metadata];
    await relay.ok("job", "record-task-event", timeline, ...asks);
    const coming = fastMcpDoes<[Collected, Collected]>(
      { to: http, do: "collect", task: begun[0].task },
      { to: stdio, do: "collect", task: begun[1].task },
    );
    const answers = async (): Promise<unknown[]> => {
      const { events } = await relay.json<{ events: { event_type: string; metadata: Record<string, unknown> }[] }>(
        "job",
        "task-events",
        timeline,
      );
      return events.filter(({ event_type }) => event_type === "mcp.input_answered").map(({ metadata }) => metadata["responses"]);
    };
    // Whoever fails to come says why.
    await Promise.race([coming, eventually(async () => (await answers()).length > 0, { everyMs: 500 })]);
    expect(await answers()).toEqual([{ name: { action: "accept", content: { name: "by FastMCP" } } }]);
    for (const one of held) one.letGo();
    expect(await coming).toMatchObject([
      {
        status: "input_required",
        isError: false,
        result: { job_id: first, state: "succeeded", logs_tail: { stdout: { text: "by stdio\n" } } },
      },
      { isError: true, result: { job_id: second, state: "failed", outcome: { exit_code: 3 } } },
    ]);
  });
});
