/**
 * An MCP server that is as bad as it is told to be: `bun server-process.ts BEHAVIOUR [ARGUMENT]`. One behaviour for one thing that servers get wrong; for
 * all else it is a plain one of 2025-06-18.
 */
import fs from "node:fs";

interface Request {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
}

const [behaviour = "plain", argument = ""] = process.argv.slice(2);
const isModern = behaviour.startsWith("modern");

const raw = (data: string | Uint8Array): void => {
  const bytes = Buffer.from(data);
  for (let from = 0; from < bytes.length; ) from += fs.writeSync(1, bytes, from);
};
const say = (message: object): void => raw(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const answer = (id: number | undefined, result: object): void =>
  say({ id, result: isModern ? { resultType: "complete", ...result } : result });
const refuse = (id: number | undefined, code: number, message: string): void => say({ id, error: { code, message } });
const text = (said: string) => ({ content: [{ type: "text", text: said }] });
const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: "object" }, ...more });

/** Ends in the way that its phase names, once. */
const dieIn = (phase: string): void => {
  if (behaviour === "dies" && argument === phase) process.kill(process.pid, "SIGKILL");
};

const HANDSHAKE: Record<string, (id: number | undefined) => void> = {
  "server/discover": (id) => {
    dieIn("probe");
    if (behaviour === "exits-on-probe") process.exit(3);
    if (isModern) {
      const _meta = { "io.modelcontextprotocol/serverInfo": { name: "bad", version: "2" } };
      answer(id, { supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, _meta, ttlMs: 0, cacheScope: "private" });
    } else if (behaviour === "from-the-future")
      say({ id, error: { code: -32022, message: "unsupported", data: { supported: ["2031-01-01"] } } });
    else if (behaviour !== "silent-on-probe") refuse(id, -32601, "no such method");
  },
  initialize: (id) => {
    dieIn("initialize");
    if (isModern) {
      refuse(id, -32601, "no such method");
      return;
    }
    if (behaviour === "never-initializes") return;
    const protocolVersion = behaviour === "speaks-version" ? argument : "2025-06-18";
    answer(id, { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "bad", version: "1" } });
  },
};

const many = (count: number) => Array.from({ length: count }, (_, at) => tool(`t${at}`));

const LISTS: Record<string, (cursor: string | undefined) => object> = {
  "many-tools": () => ({ tools: many(Number(argument)) }),
  "endless-pages": (cursor) => ({ tools: [tool(`t${cursor ?? 0}`)], nextCursor: String(Number(cursor ?? 0) + 1) }),
  "repeats-cursor": (cursor) => ({ tools: [tool(`t${cursor ?? 0}`)], nextCursor: cursor === undefined ? "a" : cursor === "a" ? "b" : "a" }),
  "conflicting-tools": (cursor) => ({
    tools: [tool("one", cursor === undefined ? {} : { description: "another" })],
    ...(cursor === undefined ? { nextCursor: "2" } : {}),
  }),
  "equal-tools": (cursor) => ({ tools: [tool("one", { x: [1, { y: 2 }] })], ...(cursor === undefined ? { nextCursor: "2" } : {}) }),
  "no-list": () => ({ tools: "none" }),
  "nameless-tools": () => ({ tools: [{ inputSchema: {} }, null, { name: "one" }, { name: 5 }] }),
  "heavy-pages": (cursor) => ({
    tools: [tool(`t${cursor ?? 0}`, { description: "x".repeat(6 * 1024 * 1024) })],
    nextCursor: String(Number(cursor ?? 0) + 1),
  }),
  verbatim: () => ({ tools: [JSON.parse(argument)] }),
};

const waiting = new Map<number, (result: unknown) => void>();
let asked = 1_000;
const request = (method: string, params: object): Promise<unknown> => {
  const id = ++asked;
  say({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
};

const FORM = { mode: "form", message: "your name?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } };

const CALLS: Record<string, (call: Request) => void | Promise<void>> = {
  "answers-twice": ({ id }) => {
    answer(id, text("first"));
    answer(id, text("second"));
    answer(999, text("nobody asked"));
  },
  "never-answers": () => undefined,
  "answers-nothing": ({ id }) => say({ id }),
  junk: ({ id }) => {
    raw("Listening on stdio…\n\n{not json\n[1,2]\n");
    raw(new Uint8Array([0xff, 0xfe, 0x0a]));
    raw(`{"jsonrpc":"2.0"}\n`);
    answer(id, text("done"));
  },
  "invalid-utf8": ({ id }) => {
    raw(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`);
    raw(new Uint8Array([0xc3, 0x28]));
    raw('"}]}}\n');
  },
  "in-pieces": async ({ id }) => {
    const bytes = Buffer.from(`${JSON.stringify({ jsonrpc: "2.0", id, result: text("ä€😀") })}\n`);
    for (const byte of bytes) {
      raw(new Uint8Array([byte]));
      await Promise.resolve();
    }
  },
  "large-answer": ({ id }) => answer(id, text("x".repeat(Number(argument)))),
  "floods-output": () => {
    for (let at = 0; at < 40; at++) raw(`${"y".repeat(1024 * 1024 - 1)}\n`);
  },
  "floods-without-end": () => {
    for (let at = 0; at < 40; at++) raw("y".repeat(1024 * 1024));
  },
  "floods-junk": ({ id }) => {
    for (let at = 0; at < 3; at++) raw("y\n".repeat(10_000));
    answer(id, text("done"));
  },
  "floods-errors": ({ id }) => {
    for (let at = 0; at < 6; at++) fs.writeSync(2, "e".repeat(1024 * 1024));
    answer(id, text("done"));
  },
  deep: ({ id }) => raw(`{"jsonrpc":"2.0","id":${id},"result":{"content":[],"x":${"[".repeat(5_000)}${"]".repeat(5_000)}}}\n`),
  "no-answer": ({ id }) => say({ id, result: 7 }),
  "protocol-error": ({ id }) => say({ id, error: { code: -32602, message: "no such tool", data: { tool: "x" } } }),
  "tool-error": ({ id }) => answer(id, { ...text("it broke"), isError: true }),
  "with-meta": ({ id }) => answer(id, { ...text("hi"), structuredContent: { a: 1 }, _meta: { secret: 1 } }),
  progress: ({ id, params }) => {
    const { progressToken } = params!["_meta"] as { progressToken: number };
    const report = (progress: number) =>
      say({ method: "notifications/progress", params: { progressToken, progress, total: 3, message: `step ${progress}` } });
    for (const step of [1, 2, 3]) report(step);
    say({ method: "notifications/progress", params: { progressToken: 4711, progress: 9 } });
    answer(id, text("done"));
  },
  environment: ({ id }) =>
    answer(id, text(JSON.stringify({ env: process.env, argv: process.argv.slice(2), cwd: process.cwd(), pid: process.pid }))),
  elicits: async ({ id }) => answer(id, text(JSON.stringify(await request("elicitation/create", FORM)))),
  "elicits-for-ever": async () => {
    for (;;) await request("elicitation/create", FORM);
  },
  samples: async ({ id }) => answer(id, text(JSON.stringify(await request("sampling/createMessage", { messages: [] })))),
  pings: async ({ id }) => answer(id, text(JSON.stringify(await request("ping", {})))),
  "modern-elicits": ({ id, params }) => {
    const { inputResponses, requestState } = params!;
    if (inputResponses === undefined)
      say({
        id,
        result: {
          resultType: "input_required",
          inputRequests: { who: { method: "elicitation/create", params: FORM } },
          requestState: "s1",
        },
      });
    else answer(id, text(JSON.stringify({ inputResponses, requestState })));
  },
  "modern-task": ({ id }) => say({ id, result: { resultType: "task", taskId: "t" } }),
  "modern-busy": ({ id, params }) =>
    params!["requestState"] === undefined
      ? say({ id, result: { resultType: "input_required", requestState: "busy" } })
      : answer(id, text("done")),
  "waits-for": async ({ id }) => {
    fs.writeFileSync(`${argument}.called`, String(process.pid));
    while (!fs.existsSync(argument)) await Bun.sleep(20);
    answer(id, text("it is there"));
  },
  "says-why": ({ id, params }) => {
    const { nonce } = params!["arguments"] as { nonce: string };
    fs.writeSync(2, `${"e".repeat(200_000)} ${nonce}\n`);
    answer(id, text("said"));
    fs.writeSync(2, `late ${nonce}\n`);
  },
  counts: async ({ id }) => {
    fs.appendFileSync(argument, "x");
    while (fs.existsSync(`${argument}.hold`)) await Bun.sleep(20);
    answer(id, text("counted"));
  },
  "kills-shim": ({ id, params }) => {
    const { kill } = params!["arguments"] as { kill: boolean };
    if (kill) process.kill(process.ppid, "SIGKILL");
    else answer(id, text(String(process.pid)));
  },
  "dies-after": ({ id }) => {
    answer(id, text(String(process.pid)));
    setTimeout(() => process.kill(process.pid, "SIGKILL"), 10);
  },
  "closes-input": ({ id, params }) => {
    const { last = false } = params!["arguments"] as { last?: boolean };
    fs.appendFileSync(argument, "x");
    answer(id, text(JSON.stringify({ pid: process.pid, setup: process.env["MADE_BY_SETUP"] })));
    // It runs on, and hears nothing any more.
    if (!last) {
      setInterval(() => undefined, 1_000);
      fs.closeSync(0);
    }
  },
  "leaves-children": ({ id }) => {
    // One that has left session and process group, and holds the pipes open.
    Bun.spawn(["setsid", "sleep", "1000"], { stdin: "ignore", stdout: "inherit", stderr: "inherit", env: process.env });
    answer(id, text("done"));
  },
  deaf: ({ id }) => {
    process.on("SIGTERM", () => undefined);
    setInterval(() => undefined, 1_000);
    answer(id, text("done"));
  },
  "notes-cancel": () => {
    process.on("SIGTERM", () => undefined);
    fs.writeFileSync(argument, "called");
  },
};

function hear(message: Request): void {
  const { id, method, params } = message;
  if (method === undefined) {
    waiting.get(id!)?.(message.result ?? message);
    return;
  }
  const shake = HANDSHAKE[method];
  if (shake !== undefined) shake(id);
  else if (method === "tools/list") {
    dieIn("list");
    answer(
      id,
      LISTS[behaviour]?.(params?.["cursor"] as string | undefined) ?? { tools: [tool("echo", { annotations: { readOnlyHint: true } })] },
    );
  } else if (method === "tools/call") {
    dieIn("call");
    const call = CALLS[behaviour];
    if (call === undefined) answer(id, text(JSON.stringify(params)));
    else void call(message);
  } else if (method === "notifications/cancelled" && behaviour === "notes-cancel") {
    fs.writeFileSync(argument, JSON.stringify(params));
    process.exit(0);
  }
}

dieIn("start");
if (behaviour === "modern-late") Bun.sleepSync(500);
if (behaviour === "junk") raw("a banner\n");
let held = "";
for await (const chunk of Bun.stdin.stream()) {
  const lines = (held + Buffer.from(chunk).toString()).split("\n");
  held = lines.pop() ?? "";
  for (const line of lines) hear(JSON.parse(line) as Request);
}
// The others do not hear the end of their input.
if (!["deaf", "notes-cancel", "waits-for"].includes(behaviour)) process.exit(0);
