/**
 * The endpoint with the tools that the conformance suite asks a server for, served over HTTP without a token: its tasks are jobs of the worker of the installation
 * that CLIO_RELAY_HOME names. Prints its URL, and ends with its standard input.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import * as v from "valibot";
import type { Access } from "../../src/api/listener/access.ts";
import { admit, namesOf } from "../../src/api/listener/access.ts";
import { problemResponse } from "../../src/api/problem.ts";
import { Installation } from "../../src/cli/installation.ts";
import { processIo } from "../../src/cli/io.ts";
import { readEnvironment } from "../../src/config/environment.ts";
import { RelayError } from "../../src/domain/errors.ts";
import { sleep } from "../../src/lib/waiting/sleep.ts";
import { TOOLS } from "../../src/mcp/catalogue.ts";
import { httpEndpoint } from "../../src/mcp/http/handler.ts";
import { McpService } from "../../src/mcp/service.ts";
import { submit, submitted } from "../../src/mcp/submit.ts";
import { INPUT_REQUESTED } from "../../src/mcp/tasks/inputs.ts";
import { type Content, defineTool, InputNeeded, READS, RUNS, type Tool, type ToolCall } from "../../src/mcp/tool.ts";
import { MAIN } from "../cli/source-relay.ts";

const directory = fs.mkdtempSync(path.join(os.tmpdir(), "conformance-"));
const relay = new Installation(processIo(readEnvironment(), [process.execPath, MAIN]));
const Text = v.object({ text: v.string() });

const elicitation = (message: string, name: string) => ({
  method: "elicitation/create",
  params: {
    mode: "form",
    message,
    requestedSchema: { type: "object", properties: { [name]: { type: name === "confirm" ? "boolean" : "string" } }, required: [name] },
  },
});

/** A tool whose task is a job of the worker. */
function jobTool<I extends v.GenericSchema>(
  name: string,
  input: I,
  argvOf: (args: v.InferOutput<I>, call: ToolCall) => readonly string[],
  more: { readonly taskOnly?: true; readonly asks?: Readonly<Record<string, ReturnType<typeof elicitation>>> } = {},
): Tool {
  const { asks, ...rest } = more;
  const begin = async (args: v.InferOutput<I>, call: ToolCall) => {
    const go = path.join(directory, crypto.randomUUID());
    const argv = asks === undefined ? argvOf(args, call) : ["sh", "-c", 'until [ -e "$1" ]; do sleep 0.05; done; echo done', "sh", go];
    const admitted = await submit(name, { cluster: "local", kind: "command", spec: { argv }, used_artifact_refs: [] }, call);
    if (asks !== undefined) await ask(admitted.receipt.job_id, asks, go);
    return admitted;
  };
  return defineTool({
    name,
    title: name,
    profile: "user",
    description: `The fixture ${name} of the conformance suite.`,
    hints: RUNS,
    input,
    output: Text,
    run: async (args, call) => ({ text: (await begin(args, call)).receipt.job_id }),
    submit: async (args, call) => submitted(await begin(args, call)),
    ...rest,
  });
}

/** What an engine does whose job asks for something: ask, wait for the answers, go on. */
async function ask(jobId: string, requests: Readonly<Record<string, unknown>>, go: string): Promise<void> {
  const cluster = relay.desktop.cluster("local");
  const { tasks } = await cluster.tasks(jobId, { limit: 1 });
  const task = tasks[0]!.task_id;
  await cluster.recordTaskEvent(task, {
    event_type: INPUT_REQUESTED,
    label: "input",
    summary: "asked",
    metadata: { requests: requests as never },
  });
  void (async () => {
    for await (const event of cluster.eventStream(jobId)) {
      if (event.event_type !== "task.event") continue;
      const left = await service.tasks.inputs.outstanding(cluster, jobId, new AbortController().signal);
      if (left.size === 0) fs.writeFileSync(go, "");
    }
  })().catch(() => undefined);
}

/** A tool that shows something. */
const shows = (name: string, content: readonly Content[], run: Tool["run"] = () => Promise.resolve({ text: name })): Tool =>
  defineTool({
    name,
    title: name,
    profile: "user",
    description: `The fixture ${name} of the conformance suite.`,
    hints: READS,
    input: v.strictObject({}),
    output: Text,
    run: async (args, call) => (await run(args, call)) as { text: string },
    content: () => content,
  });

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const text = { type: "text", text: "This is a simple text response for testing." };
const image = { type: "image", data: PIXEL, mimeType: "image/png" };
const audio = { type: "audio", data: "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=", mimeType: "audio/wav" };
const embedded = {
  type: "resource",
  resource: { uri: "test://embedded", mimeType: "text/plain", text: "This is an embedded resource content." },
};

const shown: readonly Tool[] = [
  shows("test_simple_text", [text]),
  shows("test_image_content", [image]),
  shows("test_audio_content", [audio]),
  shows("test_embedded_resource", [embedded]),
  // Nothing is logged to clients, whoever asks for it.
  shows("test_logging_tool", [text]),
  shows("test_trigger_tool_change", [text], () => {
    endpoint.toolsAre(null, true);
    return Promise.resolve({ text: "changed" });
  }),
  shows("test_multiple_content_types", [text, image, embedded]),
  shows("test_error_handling", [], () =>
    Promise.reject(new RelayError("internal_error", "This tool intentionally returns an error for testing")),
  ),
  shows("test_tool_with_progress", [text], async (_args, call) => {
    for (const [done, message] of [
      [0, "begun"],
      [50, "half"],
      [100, "done"],
    ] as const) {
      call.progress(done, message);
      await sleep(50, call.signal);
    }
    return { text: "done" };
  }),
];

/** A tool that asks for one thing first, and says what it was told. */
const asking = <A extends v.GenericSchema>(
  name: string,
  key: string,
  request: { readonly method: string; readonly params: unknown },
  answer: A,
  textOf: (given: v.InferOutput<A>) => string,
): Tool =>
  defineTool({
    name,
    title: name,
    profile: "user",
    description: `The fixture ${name} of the conformance suite.`,
    hints: READS,
    input: v.strictObject({}),
    output: Text,
    async run(_args, { responses }) {
      const given = v.safeParse(answer, responses?.[key]);
      if (!given.success) throw new InputNeeded({ [key]: request });
      return { text: textOf(given.output) };
    },
    content: ({ text }) => [{ type: "text", text }],
  });

const SAMPLING = {
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text: "What is the capital of France?" } }], maxTokens: 100 },
};
const Said = v.object({ content: v.object({ text: v.string() }) });

const askingTools: readonly Tool[] = [
  asking(
    "test_input_required_result_elicitation",
    "user_name",
    elicitation("What is your name?", "name"),
    v.object({ action: v.literal("accept"), content: v.object({ name: v.string() }) }),
    ({ content }) => `Hello, ${content.name}!`,
  ),
  asking("test_input_required_result_sampling", "capital_question", SAMPLING, Said, ({ content }) => content.text),
  asking(
    "test_streaming_elicitation",
    "user_name",
    elicitation("What is your name?", "name"),
    v.object({ content: v.object({ name: v.string() }) }),
    ({ content }) => content.name,
  ),
  asking("test_missing_capability", "question", SAMPLING, Said, ({ content }) => content.text),
  asking(
    "test_input_required_result_list_roots",
    "client_roots",
    { method: "roots/list", params: {} },
    v.object({ roots: v.array(v.object({ uri: v.string() })) }),
    ({ roots }) => roots.map(({ uri }) => uri).join(" "),
  ),
];

const fixtures: readonly Tool[] = [
  defineTool({
    name: "greet",
    title: "greet",
    profile: "user",
    description: "The fixture greet of the conformance suite.",
    hints: READS,
    input: v.strictObject({ name: v.string() }),
    output: Text,
    run: ({ name }) => Promise.resolve({ text: `Hello, ${name}!` }),
    content: ({ text }) => [{ type: "text", text }],
  }),
  jobTool("slow_compute", v.object({ seconds: v.number(), label: v.optional(v.string()) }), ({ seconds }) => ["sleep", String(seconds)]),
  jobTool("failing_job", v.object({}), () => ["sh", "-c", "sleep 0.2; exit 1"], { taskOnly: true }),
  jobTool("protocol_error_job", v.object({}), () => ["false"]),
  jobTool("confirm_delete", v.object({ filename: v.string() }), () => [], { asks: { confirm: elicitation("Delete it?", "confirm") } }),
  jobTool("multi_input", v.object({}), () => [], {
    asks: { name: elicitation("What is it called?", "name"), confirm: elicitation("Shall it be done?", "confirm") },
  }),
  jobTool(
    "test_tool_with_task",
    v.object({}),
    (_args, { responses }) => {
      const answer = v.safeParse(v.object({ user_name: v.object({ content: v.object({ name: v.string() }) }) }), responses);
      if (!answer.success) throw new InputNeeded({ user_name: elicitation("Who is it?", "name") });
      return ["echo", answer.output.user_name.content.name];
    },
    { taskOnly: true },
  ),
];

const service = new McpService({
  desktop: relay.desktop,
  profile: "user",
  version: "0.0.0",
  now: () => performance.now(),
  tools: [...fixtures, ...askingTools, ...shown, ...TOOLS],
  endOf: (_place, { job }) =>
    Promise.resolve(job.metadata["mcp_tool"] === "protocol_error_job" ? { error: { code: -32603, message: "the fixture fails" } } : null),
  onFault: (error) => console.error(error),
});
const endpoint = httpEndpoint(service);
let access: Access | null = null;
const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    try {
      admit(access!, request, true);
      return await endpoint.fetch(request);
    } catch (error) {
      return problemResponse(error);
    }
  },
});
const names = namesOf({ host: "127.0.0.1", port: server.port!, tls: false, allowed: [] });
const origins = new Set([`http://127.0.0.1:${server.port}`, `http://localhost:${server.port}`]);
access = { token: () => null, names, origins, identity: null, foreign: true };
console.log(`http://127.0.0.1:${server.port}/mcp`);
for await (const _ of Bun.stdin.stream() as unknown as AsyncIterable<Uint8Array>) {
  // Until whoever started it is gone.
}
await endpoint.close();
await server.stop(true);
fs.rmSync(directory, { recursive: true, force: true });
