import { expect, test } from "bun:test";
import { isRelayError } from "../../src/domain/errors.ts";
import { projectionOf } from "../../src/mcp/federation/projection.ts";
import { jarvisRoute } from "../../src/mcp/jarvis/route.ts";
import type { ToolCall } from "../../src/mcp/tool.ts";
import { entry, found, NOW, registration, tool } from "./federation/found.ts";

/** A call of an agent where a server is registered as jarvis, and was asked for its tools. */
function calling(allow_tools: readonly string[], tools: Parameters<typeof found>[2], more: Parameters<typeof found>[3] = {}): ToolCall {
  const cluster = entry("c", { jarvis: registration({ allow_tools: [...allow_tools] }) });
  const projection = projectionOf([cluster], { entries: [found(cluster, "jarvis", tools, more)], damaged: [] }, "user", NOW, new Set());
  const clusters = { named: () => Promise.resolve({ entry: cluster }) };
  return { clusters, profile: "user", remote: () => Promise.resolve({ projection, revision: "r" }) } as unknown as ToolCall;
}

async function refusal(call: ToolCall): Promise<readonly [unknown, string | undefined]> {
  const error: unknown = await jarvisRoute("jarvis_run", "c", call).then(
    () => null,
    (reason: unknown) => reason,
  );
  return isRelayError(error) ? [error.data["cause"], error.hint] : [error, undefined];
}

test("a tool that the registered server has is called there", async () => {
  const { server } = await jarvisRoute("jarvis_run", "c", calling(["*"], [tool("jarvis_run")]));
  expect(server?.route.server).toBe("jarvis");
});

test("why a tool cannot be called is told as it is, with what helps", async () => {
  const run = tool("jarvis_run");
  const refresh = "clio-relay remote-mcp refresh --cluster c --name jarvis";
  for (const allowed of ["*", "jarvis_run"]) expect(await refusal(calling([allowed], [tool("other")]))).toEqual(["tool_missing", refresh]);
  expect(await refusal(calling(["*"], [{ ...run, inputSchema: "none" }]))).toEqual(["invalid_schema", refresh]);
  expect(await refusal(calling(["*"], [run], { expires_at: new Date(NOW).toISOString() }))).toEqual(["expired", refresh]);
  expect(await refusal(calling(["*"], [run], { accepted: { jarvis_run: "0".repeat(64) } }))).toEqual([
    "definition_changed",
    `${refresh} --accept`,
  ]);
  const [cause, hint] = await refusal(calling(["other"], [run, tool("other")]));
  expect([cause, hint]).toEqual(["tool_not_allowed", expect.stringContaining("--allow-tool jarvis_run")]);
});
