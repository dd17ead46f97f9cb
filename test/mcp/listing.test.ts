import { expect, test } from "bun:test";
import path from "node:path";
import { DesktopClient } from "../../src/api/client/desktop-client.ts";
import { DEFAULT_CAPACITY } from "../../src/config/cluster-entry.ts";
import { McpService } from "../../src/mcp/service.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

test("tools are listed as they were while the daemon hangs or refuses, and as they are when it answers again", async () => {
  using directory = temporaryDirectory();
  const socket = path.join(directory.path, "d.sock");
  let daemon: "answers" | "hangs" | "refuses" = "refuses";
  const clusters = [{ name: "one", mode: "local", env_setup: null, worker_capacity: DEFAULT_CAPACITY, agent_commands: true }];
  const server = Bun.serve({
    unix: socket,
    fetch: () =>
      daemon === "hangs"
        ? new Promise<Response>(() => undefined)
        : daemon === "refuses"
          ? new Response("busy", { status: 503 })
          : Response.json({ clusters }),
  });
  let clock = 0;
  const desktop = new DesktopClient({ kind: "unix", path: socket });
  const service = new McpService({ desktop, profile: "user", version: "0", now: () => clock });
  const listed = async (): Promise<{ command: boolean; clusters: unknown }> => {
    // What was read is not taken to be so for longer.
    clock += 60_000;
    const { tools } = await service.listing(new AbortController().signal);
    const taken = tools.find(({ name }) => name === "relay_list_jobs")!.inputSchema["properties"] as { cluster: { enum?: string[] } };
    return { command: tools.some(({ name }) => name === "relay_submit_command"), clusters: taken.cluster.enum };
  };
  try {
    // Nothing is known yet: no cluster is named.
    expect(await listed()).toEqual({ command: false, clusters: undefined });
    daemon = "answers";
    expect(await listed()).toEqual({ command: true, clusters: ["one"] });
    for (const state of ["refuses", "hangs"] as const) {
      daemon = state;
      expect([state, await listed()]).toEqual([state, { command: true, clusters: ["one"] }]);
    }
    daemon = "answers";
    clusters[0]!.name = "other";
    expect(await listed()).toEqual({ command: true, clusters: ["other"] });
  } finally {
    service.close();
    await server.stop(true);
  }
});
