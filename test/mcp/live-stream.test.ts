import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { live } from "../../src/mcp/http/live-stream.ts";
import { initialized, type SourceRelay } from "../cli/source-relay.ts";
import { eventually } from "../runner/wait.ts";
import { HeldJob } from "./held-job.ts";
import { HttpEndpoint } from "./http-endpoint.ts";

let relay: SourceRelay;
let endpoint: HttpEndpoint;

beforeAll(async () => {
  relay = await initialized();
  await relay.ok("worker", "start", "--cluster", "local");
  endpoint = await HttpEndpoint.of(relay);
});
afterAll(async () => {
  await endpoint?.[Symbol.asyncDispose]();
  await relay?.[Symbol.asyncDispose]();
});

test("an older client's stream is there before there is anything to say, and tells what there is then", async () => {
  const handshake = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "old", version: "1" } };
  const begun = await endpoint.post(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: handshake }));
  await begun.text();
  const headers = { "mcp-session-id": begun.headers.get("mcp-session-id")!, "mcp-protocol-version": handshake.protocolVersion };
  const stream = await fetch(endpoint.url, {
    headers: { ...headers, authorization: endpoint.authorization, accept: "text/event-stream" },
  });
  expect([stream.status, stream.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  const reader = stream.body!.getReader();
  const next = async (): Promise<string> => new TextDecoder().decode((await reader.read()).value);
  expect(await next()).toBe(":\n\n");
  const job = new HeldJob(relay);
  const uri = `relay://local/jobs/${await relay.submit("--", ...job.argv)}`;
  const subscribe = JSON.stringify({ jsonrpc: "2.0", id: 2, method: "resources/subscribe", params: { uri } });
  expect(await (await endpoint.post(subscribe, headers)).text()).not.toContain("error");
  job.letGo();
  let heard = await next();
  while (!heard.includes("notifications/resources/updated")) heard = await next();
  expect(heard).toContain(uri);
  await reader.cancel();
});

describe("a stream", () => {
  const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);
  const streaming = (body: ReadableStream<Uint8Array>): Response =>
    new Response(body, { headers: { "content-type": "text/event-stream" } });

  /** Bytes that its source is told to send, and what it is told when it is to end. */
  const told = () => {
    const ended: unknown[] = [];
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    writer.closed.catch((reason: unknown) => ended.push(reason));
    return { ended, writer, response: streaming(readable) };
  };

  test("begins at once, hands on what comes, and ends with what it is of", async () => {
    const { writer, response } = told();
    const reader = live(response).body!.getReader();
    expect(text((await reader.read()).value)).toBe(":\n\n");
    const [heard] = await Promise.all([reader.read(), writer.write(Buffer.from("data: 1\n\n"))]);
    expect(text(heard.value)).toBe("data: 1\n\n");
    await writer.close();
    expect((await reader.read()).done).toBe(true);
  });

  test("is cut where its client takes nothing, or is gone, and what it is of is told", async () => {
    for (const gone of [false, true]) {
      const { writer, ended, response } = told();
      const reader = live(response, 1_000).body!.getReader();
      if (gone) await reader.cancel("gone");
      else for (let at = 0; at < 10 && ended.length === 0; at++) await writer.write(new Uint8Array(300)).catch(() => undefined);
      await eventually(() => ended.length === 1, { what: "the end" });
      if (!gone) await expect(reader.read()).rejects.toThrow("does not take");
    }
  });

  test("of an answer that is none is the answer", () => {
    const answer = Response.json({ jsonrpc: "2.0" });
    expect(live(answer)).toBe(answer);
  });
});
