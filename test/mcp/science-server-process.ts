/**
 * A server of the protocol on standard input and output, of before 2026-07-28: `bun science-server-process.ts WORDS`, where the file WORDS has how it describes its first tool. Tools: `inspect`
 * answers with what it was given, `long` with more than an answer holds, `fails` says that it failed, `refuses` is answered with an error of the protocol, `waits` until a file is there, `jarvis_describe` and `jarvis_add_step` answer as `inspect`; one has a name that no client takes, and a schema that refers to itself.
 */
import fs from "node:fs";

const [, , words = ""] = process.argv;
const open = { type: "object", properties: { path: { type: "string" } } };
const closed = { ...open, required: ["path"], additionalProperties: false };

/** A tree: it refers to itself, and so does the whole schema. */
const recursive = {
  type: "object",
  properties: { tree: { $ref: "#/$defs/node" }, again: { $ref: "#" } },
  required: ["tree"],
  $defs: { node: { type: "object", properties: { name: { type: "string" }, below: { type: "array", items: { $ref: "#/$defs/node" } } } } },
};
const ODD = `walk.tree-of/🌳 ${"and all that is in it ".repeat(5)}`;

const tools = () => [
  { name: "inspect", description: fs.readFileSync(words, "utf8"), inputSchema: closed, annotations: { readOnlyHint: true } },
  { name: "long", description: "Says more than fits.", inputSchema: { type: "object", properties: {}, additionalProperties: false } },
  { name: "fails", description: "Fails.", inputSchema: open },
  { name: "refuses", description: "Is refused.", inputSchema: open },
  { name: "jarvis_describe", description: "Describes.", inputSchema: open },
  { name: "jarvis_add_step", description: "Adds.", inputSchema: open },
  { name: ODD, description: "Walks.", inputSchema: recursive },
  { name: "waits", description: "Waits for a file.", inputSchema: closed },
];

const text = (said: string) => [{ type: "text", text: said }];

async function called(name: string, given: Record<string, unknown>): Promise<object> {
  if (name === "inspect") return { content: text(`seen ${String(given["path"])}`), structuredContent: { given } };
  if (name === "jarvis_describe" || name === "jarvis_add_step") return { content: text("described"), structuredContent: { given } };
  if (name === ODD) return { content: text("walked"), structuredContent: { given } };
  if (name === "long") return { content: text(`It begins. ${"x".repeat(200_000)} It ends.`) };
  if (name === "fails") return { content: text("it went wrong"), isError: true };
  if (name === "waits") while (!fs.existsSync(String(given["path"]))) await Bun.sleep(20);
  else throw new Error("it is refused");
  return { content: text("it was there") };
}

const send = (message: object): void => void fs.writeSync(1, `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

for await (const line of console) {
  const { id, method, params = {} } = JSON.parse(line) as { id?: number; method: string; params?: Record<string, unknown> };
  if (id === undefined) continue;
  if (method === "initialize") {
    const serverInfo = { name: "science", version: "1.4.0" };
    send({ id, result: { protocolVersion: params["protocolVersion"], capabilities: { tools: {} }, serverInfo } });
  } else if (method === "tools/list") send({ id, result: { tools: tools() } });
  else if (method === "tools/call") {
    called(String(params["name"]), (params["arguments"] ?? {}) as Record<string, unknown>).then(
      (result) => send({ id, result }),
      (error: Error) => send({ id, error: { code: -32000, message: error.message } }),
    );
  } else send({ id, error: { code: -32601, message: `there is no ${method}` } });
}
