import { expect, test } from "bun:test";
import { initialized } from "../cli/source-relay.ts";
import { HttpEndpoint } from "./http-endpoint.ts";

/** As docs/mcp.md says. */
const SESSIONS = 256;

const HANDSHAKE = {
  protocolVersion: "2025-06-18",
  capabilities: {},
  clientInfo: { name: "one of many", version: "1" },
};

test("a session too many ends the one that was silent for longest, and no other; one that its client ended is gone", async () => {
  await using relay = await initialized();
  await using endpoint = await HttpEndpoint.of(relay);
  const begin = async (): Promise<string> => {
    const response = await endpoint.post(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: HANDSHAKE }));
    await response.text();
    return response.headers.get("mcp-session-id")!;
  };
  const ping = async (session: string): Promise<number> => {
    const response = await endpoint.post(JSON.stringify({ jsonrpc: "2.0", id: 2, method: "ping" }), {
      "mcp-session-id": session,
      "mcp-protocol-version": HANDSHAKE.protocolVersion,
    });
    await response.text();
    return response.status;
  };
  const sessions: string[] = [];
  for (let i = 0; i < SESSIONS; i++) sessions.push(await begin());
  expect(new Set(sessions).size).toBe(SESSIONS);
  const [first, second, third] = sessions as [string, string, string];
  // It is not the oldest that goes.
  expect(await ping(first)).toBe(200);
  const more = await begin();
  expect([await ping(second), await ping(first), await ping(third), await ping(more), await ping(sessions.at(-1)!)]).toEqual([
    404, 200, 200, 200, 200,
  ]);
  // What was never a session ends none.
  for (const body of [
    { jsonrpc: "2.0", id: 1, method: "initialize", params: {} },
    { jsonrpc: "2.0", id: 1, method: "initialize", params: 5 },
  ])
    await (await endpoint.post(JSON.stringify(body))).text();
  expect(await ping(sessions[3]!)).toBe(200);
  const ended = await fetch(endpoint.url, {
    method: "DELETE",
    headers: { authorization: endpoint.authorization, "mcp-session-id": first, "mcp-protocol-version": HANDSHAKE.protocolVersion },
  });
  expect([ended.status, await ping(first)]).toEqual([200, 404]);
});
