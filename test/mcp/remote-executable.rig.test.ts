import { expect, test } from "bun:test";
import { EXECUTABLE, Relay } from "../runner/relay.ts";
import { Agent } from "./agent.ts";

const INNER = ["--cluster", "local", "--name", "inner"] as const;
/** What the server is offered for: it asks nobody. */
const TOOL = "relay_remote_mcp_context";

interface Refreshed {
  readonly cache_entry: { readonly provenance: { readonly server_artifact: { readonly immutable: boolean; readonly kind: string } } };
  readonly profiles: {
    readonly user: { readonly virtual_tools: readonly { readonly name: string }[]; readonly issues: readonly object[] };
  };
}

// The executable is a program that nobody can change unnoticed, and an MCP server, too.
test("everybody's agents are offered a tool of a program that stays what it is, and it is called on the cluster", async () => {
  await using relay = new Relay();
  const ok = async (...args: string[]) => {
    const result = await relay.run(args);
    expect([args, result.code, result.stderr]).toEqual([args, 0, expect.any(String)]);
    return result;
  };
  await ok("init");
  await ok("worker", "start");
  const command = ["--command", EXECUTABLE, "--arg", "mcp-server", "--allow-tool", TOOL, "--profile", "user", "--contract", "clio-relay"];
  await ok("remote-mcp", "register", ...INNER, ...command);
  const found = (await ok("remote-mcp", "refresh", ...INNER, "--json")).json<Refreshed>();
  expect(found.cache_entry.provenance.server_artifact).toMatchObject({ immutable: true, kind: "executable" });
  expect(found.profiles.user).toMatchObject({ virtual_tools: [{ name: `remote_inner_${TOOL}` }], issues: [] });
  await using agent = await Agent.of(relay, { program: [EXECUTABLE] });
  const { tools } = await agent.client.listTools();
  expect(tools.find(({ name }) => name === `remote_inner_${TOOL}`)?.annotations).toMatchObject({ readOnlyHint: true });
  const answer = await agent.ok(`remote_inner_${TOOL}`, { cluster: "local" });
  // That there is nothing registered there is what the server said, and not what is known here.
  expect(answer).toMatchObject({
    ...{ state: "succeeded", kind: "mcp_call" },
    mcp_result: { delivery: "inline", is_error: false, structured_result: { context: { profile: "user", tools: 0 } } },
  });
  const { job } = (await ok("job", "status", String(answer["job_id"]), "--json")).json<{ job: { lane: string } }>();
  expect(job.lane).toBe("control");
});
