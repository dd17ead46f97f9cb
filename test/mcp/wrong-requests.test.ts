import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { initialized, type SourceRelay } from "../cli/source-relay.ts";
import { HttpEndpoint, META } from "./http-endpoint.ts";
import { Wire } from "./wire.ts";

let relay: SourceRelay;
let endpoint: HttpEndpoint;

beforeAll(async () => {
  relay = await initialized();
  endpoint = await HttpEndpoint.of(relay);
});

afterAll(async () => {
  await endpoint?.[Symbol.asyncDispose]();
  await relay?.[Symbol.asyncDispose]();
});

const deep = (levels: number): unknown => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);
const list = (more: Record<string, unknown> = {}) => ({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: META, ...more } });
const MODERN = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" };
const version = (protocolVersion: string) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion, capabilities: {}, clientInfo: { name: "old", version: "1" } },
});

describe("over HTTP", () => {
  /** What comes back: status, and the code of the error. */
  const refusal = async (body: unknown, headers: Record<string, string> = {}): Promise<[number, number | undefined]> => {
    const response = await endpoint.post(typeof body === "string" ? body : JSON.stringify(body), headers);
    const text = await response.text();
    const { error } = (text === "" ? {} : JSON.parse(text)) as { error?: { code: number } };
    return [response.status, error?.code];
  };

  test("what is no message, too large, too deep, or several at once is refused as such", async () => {
    const cases: [unknown, [number, number]][] = [
      ["", [400, -32700]],
      ["{", [400, -32700]],
      ['{"jsonrpc":"2.0","id":1,"method":"ping"', [400, -32700]],
      [
        [list(), list()],
        [400, -32600],
      ],
      [list({ x: deep(70) }), [400, -32600]],
      [list({ x: new Array(100_002).fill(0) }), [400, -32600]],
      [list({ x: "x".repeat(1_100_000) }), [413, -32055]],
    ];
    for (const [body, expected] of cases) {
      expect([String(JSON.stringify(body)).slice(0, 60), await refusal(body, MODERN)]).toEqual([
        String(JSON.stringify(body)).slice(0, 60),
        expected,
      ]);
    }
    const chunked = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 40; i++) controller.enqueue(new Uint8Array(32 * 1024).fill(0x20));
        controller.close();
      },
    });
    // Without a length, it is counted as it comes.
    const headers = { ...MODERN, authorization: endpoint.authorization, "content-type": "application/json" };
    const answer = await fetch(endpoint.url, { method: "POST", headers, body: chunked });
    expect([answer.status, await answer.json()]).toEqual([
      413,
      expect.objectContaining({ error: expect.objectContaining({ code: -32055 }) }),
    ]);
    for (const odd of [
      5,
      null,
      "x",
      {},
      { jsonrpc: "1.0", id: 1, method: "ping" },
      { jsonrpc: "2.0", id: {}, method: "ping" },
      { jsonrpc: "2.0", id: 1 },
    ]) {
      const [status, code] = await refusal(odd, MODERN);
      expect([JSON.stringify(odd), status, code === undefined || code < 0]).toEqual([JSON.stringify(odd), 400, true]);
    }
    expect((await endpoint.post(JSON.stringify(list()), MODERN)).status).toBe(200);
  });

  test("a version that there is not, and one that header and body do not agree on, are refused by name; an older one gets its own", async () => {
    const of = (protocolVersion: string) => list({ _meta: { ...META, "io.modelcontextprotocol/protocolVersion": protocolVersion } });
    const unknown = await endpoint.post(JSON.stringify(of("2099-01-01")), { ...MODERN, "mcp-protocol-version": "2099-01-01" });
    expect([unknown.status, await unknown.json()]).toMatchObject([
      400,
      { error: { data: { supported: expect.arrayContaining(["2026-07-28"]) } } },
    ]);
    expect(await refusal(list(), { ...MODERN, "mcp-protocol-version": "2025-06-18" })).toEqual([400, -32020]);
    expect(await refusal(list(), { ...MODERN, "mcp-method": "tools/call" })).toEqual([400, -32020]);
    for (const [asked, given] of [
      ["2024-11-05", "2024-11-05"],
      ["2025-06-18", "2025-06-18"],
      ["1999-01-01", "2025-11-25"],
    ] as const) {
      const response = await endpoint.post(JSON.stringify(version(asked)));
      expect([asked, response.status, await response.text()]).toEqual([
        asked,
        200,
        expect.stringContaining(`"protocolVersion":"${given}"`),
      ]);
    }
  });
});

test("an argument that would be rounded on its way is refused by name, on both transports, and one that is a text is not", async () => {
  const call = (id: string) =>
    `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"relay_status","arguments":{"job_id":${id}},"_meta":${JSON.stringify(META)}}}`;
  await using wire = new Wire(relay);
  wire.line(call("9007199254740993"));
  const refused = { code: -32602, message: expect.stringMatching(/^job_id: 9007199254740993 is an integer beyond 2\^53/) };
  expect((await wire.answer(7)).error).toEqual(refused);
  const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "relay_status" };
  const response = await endpoint.post(call("9007199254740993"), headers);
  expect([response.status, await response.json()]).toEqual([200, { jsonrpc: "2.0", id: 7, error: refused }]);
  const taken = await endpoint.post(call('"9007199254740993"'), headers);
  expect(await taken.text()).not.toContain("beyond 2^53");
});

/** Params that do not fit their method, and the member that does not. */
const UNFIT: readonly [string, Record<string, unknown>, string][] = [
  ["tools/list", { cursor: 5 }, "cursor"],
  ["tools/call", { name: 5 }, "name"],
  ["resources/read", { uri: 5 }, "uri"],
  ["resources/read", {}, "uri"],
  ["prompts/get", {}, "name"],
  ["prompts/get", { name: "diagnose_job", arguments: { job_id: 5 } }, "job_id"],
  ["completion/complete", { ref: { type: "ref/prompt", name: "diagnose_job" } }, "argument"],
];

describe("params that do not fit are refused as such, by the member", () => {
  test("in both times of the protocol", async () => {
    await using wire = new Wire(relay);
    for (const [method, params, member] of UNFIT)
      expect([method, params, await wire.error(method, params)]).toEqual([
        method,
        params,
        { code: -32602, message: expect.stringContaining(member) },
      ]);
    const more: typeof UNFIT = [...UNFIT, ["resources/subscribe", { uri: 5 }, "uri"]];
    const messages = [{ ...version("2025-06-18"), id: 0 }, ...more.map(([method, params], id) => ({ id: id + 1, method, params }))];
    const stdin = messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("");
    const { stdout } = await relay.run(["mcp-server"], { stdin });
    const answers = new Map(stdout.split("\n", messages.length).map((line) => [JSON.parse(line).id, JSON.parse(line).error]));
    for (const [at, [method, params, member]] of more.entries())
      expect([method, params, answers.get(at + 1)]).toEqual([method, params, { code: -32602, message: expect.stringContaining(member) }]);
  });
});

describe("on standard input", () => {
  test("what is too long, too deep or too many is answered to whoever asked, by its id", async () => {
    await using wire = new Wire(relay);
    for (const [x, why] of [
      ["x".repeat(1_100_000), "1048576 bytes"],
      [deep(70), "64 levels"],
      [new Array(100_002).fill(0), "100000 values"],
    ] as const)
      expect(await wire.error("tools/call", { name: "relay_status", arguments: { x } })).toMatchObject({
        code: -32600,
        message: expect.stringContaining(why),
      });
    // As other clients order the members.
    wire.line(JSON.stringify({ method: "tools/list", params: { x: "x".repeat(3_000_000), id: 7 }, jsonrpc: "2.0", id: 5_000 }));
    await wire.answer(5_000);
    expect((await wire.result<{ tools: unknown[] }>("tools/list", {})).tools.length).toBeGreaterThan(10);
  });

  test("a version that there is not is refused with those that there are, an older one is answered with its own, and unknown methods with that", async () => {
    await using wire = new Wire(relay);
    const of = (protocolVersion: string) => list({ _meta: { ...META, "io.modelcontextprotocol/protocolVersion": protocolVersion } });
    wire.line(JSON.stringify({ ...of("2099-01-01"), id: 1_000 }));
    expect(await wire.stray()).toMatchObject({ data: { supported: expect.arrayContaining(["2026-07-28"]) } });
    for (const method of ["tools/liste", "constructor", "__proto__", "logging/setLevel", "sampling/createMessage"])
      expect([method, (await wire.error(method, {})).code]).toEqual([method, -32601]);
    for (const params of [{ name: 5 }, {}, { name: "relay_status", arguments: [] }, { name: "relay_status", arguments: "x" }])
      expect([params, (await wire.error("tools/call", params)).code]).toEqual([params, -32602]);
    expect((await wire.result<{ tools: unknown[] }>("tools/list", {})).tools.length).toBeGreaterThan(10);
    // Whichever request of a connection it is in.
    for (const [method, params] of [
      ["tools/call", { name: "relay_list_clusters" }],
      ["tools/list", {}],
      ["tasks/get", { taskId: "x" }],
      ["server/discover", {}],
      ["subscriptions/listen", { notifications: {} }],
    ] as const)
      for (const asked of ["2099-01-01", "2025-06-18"]) {
        const refused = await wire.error(method, { ...params, _meta: { "io.modelcontextprotocol/protocolVersion": asked } });
        expect([method, refused]).toMatchObject([method, { code: -32022, data: { supported: ["2026-07-28"], requested: asked } }]);
      }
    // Where a connection has agreed on one, a request says none.
    const ping = { jsonrpc: "2.0", id: 2, method: "ping", params: { _meta: { "io.modelcontextprotocol/protocolVersion": "2099-01-01" } } };
    const stdin = `${JSON.stringify(version("1999-01-01"))}\n${JSON.stringify(ping)}\n`;
    const { code, stdout } = await relay.run(["mcp-server"], { stdin });
    const answers = stdout.split("\n", 2).map((line) => JSON.parse(line) as unknown);
    expect([code, answers]).toMatchObject([
      0,
      [
        { id: 1, result: { protocolVersion: "2025-11-25" } },
        { id: 2, result: {} },
      ],
    ]);
  });
});
