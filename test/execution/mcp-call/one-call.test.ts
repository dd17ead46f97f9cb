import { afterAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { MCP_LIMITS } from "../../../src/domain/mcp-call.ts";
import { CallFailed } from "../../../src/execution/mcp-call/call-failed.ts";
import type { CallEnd } from "../../../src/execution/mcp-call/one-call.ts";
import { eventually } from "../../runner/wait.ts";
import { Calls, failureOf, textOf } from "./calls.ts";

const calls = new Calls();
afterAll(() => calls[Symbol.dispose]());

describe("a handshake", () => {
  test("is that of the server's version", async () => {
    const cases = await Promise.all([
      calls.of("plain"),
      calls.of("modern"),
      calls.of("speaks-version", "2024-11-05"),
      calls.of("exits-on-probe"),
      calls.of("silent-on-probe", "", { probeMs: 50 }),
      calls.of("modern-late", "", { probeMs: 50 }),
    ]);
    expect(cases.map(({ result }) => [result.phase, result.server?.protocol_version])).toEqual([
      ["done", "2025-06-18"],
      ["done", "2026-07-28"],
      ["done", "2024-11-05"],
      ["done", "2025-06-18"],
      ["done", "2025-06-18"],
      ["done", "2026-07-28"],
    ]);
    const [plain, modern] = cases;
    expect(plain.result.server).toMatchObject({ name: "bad", version: "1", capabilities: { tools: {} } });
    expect(modern.result.server).toMatchObject({ name: "bad", version: "2" });
    expect(plain.result.timing.handshake_ms).toBeGreaterThan(0);
  });

  test("with a version that is not known is none", async () => {
    const ends = await Promise.all([calls.of("speaks-version", "1999-01-01"), calls.of("from-the-future")]);
    expect(ends.map((end) => [failureOf(end), end.result.sent, end.result.server])).toEqual([
      ["handshake_failed", false, null],
      ["handshake_failed", false, null],
    ]);
  });

  test("that never comes ends with the call, and the server with it", async () => {
    const over = new AbortController();
    const going = calls.of("never-initializes", "", { signal: over.signal });
    over.abort(new CallFailed("interrupted", "time is over"));
    const { result } = await going;
    expect(result).toMatchObject({ phase: "handshake", sent: false, answer: { kind: "failure", reason: "interrupted" } });
  });
});

describe("a server that dies", () => {
  test.each(["start", "initialize", "list", "call"])(
    "in its phase (%s) leaves a call without an answer, which says how far it came",
    async (phase) => {
      const end = phase === "list" ? await calls.list("dies", phase) : await calls.of("dies", phase);
      expect(failureOf(end)).toBe("server_exited");
      expect(end.result.sent).toBe(phase === "list" || phase === "call");
      expect(end.result.answer).toMatchObject({ message: expect.stringContaining("SIGKILL") });
    },
  );

  test("was never there", async () => {
    const end = await calls.of("plain", "", { spec: { server: "/nonexistent/server" } });
    expect(end.result).toMatchObject({ phase: "start", sent: false, answer: { reason: "server_missing" } });
    expect(end.result.server_artifact).toMatchObject({ immutable: false, cause: "not_found" });
  });
});

describe("a list of tools", () => {
  test("is verbatim", async () => {
    const schema = { $defs: { n: { $ref: "#/$defs/n" } }, $ref: "#/$defs/n", __x: [null] };
    const tool = {
      name: "näme.with-dots/😀".repeat(6),
      inputSchema: schema,
      execution: { taskSupport: "optional" },
      extra: { deep: [1, { a: null }] },
    };
    const ends = await Promise.all([calls.list("verbatim", JSON.stringify(tool)), calls.list("modern", ""), calls.list("equal-tools")]);
    expect(ends[0]!.result.answer).toEqual({ kind: "tools", pages: 1, tools: [tool] });
    expect(ends[1]!.result.answer).toMatchObject({ tools: [{ name: "echo", annotations: { readOnlyHint: true } }] });
    expect(ends[2]!.result.answer).toMatchObject({ pages: 2, tools: [{ name: "one" }] });
  });

  test("has those that can be called, and counts what has no name", async () => {
    const end = await calls.list("nameless-tools");
    expect(end.result.answer).toEqual({ kind: "tools", pages: 1, tools: [{ name: "one" }], nameless: 3 });
  });

  test("has its bounds", async () => {
    const full = await calls.list("many-tools", String(MCP_LIMITS.tools));
    expect(full.result.answer.kind === "tools" && full.result.answer.tools.length).toBe(MCP_LIMITS.tools);
    const wrong = ["repeats-cursor", "conflicting-tools", "endless-pages", "heavy-pages", "no-list"];
    const ends = [
      ...(await Promise.all(wrong.map((one) => calls.list(one)))),
      await calls.list("many-tools", String(MCP_LIMITS.tools + 1)),
    ];
    expect(ends.map(failureOf)).toEqual([
      "list_cursor_repeated",
      "list_conflict",
      "list_pages_exceeded",
      "response_too_large",
      "protocol_violation",
      "list_tools_exceeded",
    ]);
  });
});

describe("a call", () => {
  test("has the arguments as they are given, and is answered once", async () => {
    const given = { __proto__x: 1, text: "ä\u0000\u001b[31m", list: [{ a: null }] };
    const end = await calls.of("plain", "", { spec: { arguments: given } });
    expect(JSON.parse(textOf(end))).toEqual({ name: "echo", arguments: given, _meta: { progressToken: 3 } });
    const twice = await calls.of("answers-twice");
    expect(textOf(twice)).toBe("first");
    expect(twice.result.output.stray_answers).toBe(2);
    expect(textOf(await calls.of("in-pieces"))).toBe("ä€😀");
    expect(textOf(await calls.of("pings"))).toBe("{}");
  });

  test("passes over what is no message, shows and counts it", async () => {
    const end = await calls.of("junk");
    expect(textOf(end)).toBe("done");
    expect(end.result.output).toMatchObject({ junk_lines: 6, stray_answers: 0 });
    const shown = calls.shown("stdout");
    expect(shown.toString("latin1")).toContain("a banner\n");
    expect(shown.includes(Buffer.from([0xff, 0xfe, 0x0a]))).toBe(true);
    expect(end.result.output.junk_bytes).toBe(shown.length - 6);
  });

  test("keeps what the server says of itself apart, and errors as they are", async () => {
    const [meta, broken, refused] = await Promise.all([calls.of("with-meta"), calls.of("tool-error"), calls.of("protocol-error")]);
    expect(meta.result.answer).toMatchObject({
      result: { content: [{ text: "hi" }], structuredContent: { a: 1 } },
      meta: { secret: 1 },
      is_error: false,
    });
    expect(JSON.stringify(meta.result.answer.kind === "result" && meta.result.answer.result)).not.toContain("secret");
    expect(broken.result.answer).toMatchObject({ kind: "result", is_error: true });
    expect(refused.result.answer).toEqual({ kind: "error", error: { code: -32602, message: "no such tool", data: { tool: "x" } } });
  });

  test("puts a large result beside the document, whole", async () => {
    const [inline, beside] = await Promise.all([calls.of("large-answer", "60000"), calls.of("large-answer", String(2 * 1024 * 1024))]);
    expect(textOf(inline)).toHaveLength(60_000);
    const { answer } = beside.result;
    expect(answer).toMatchObject({ result: null, content: { name: "mcp-tool-result.json", size_bytes: beside.content!.length } });
    expect(answer.kind === "result" && answer.preview).toBe("x".repeat(MCP_LIMITS.previewLength));
    expect(JSON.parse(beside.content!).content[0].text).toHaveLength(2 * 1024 * 1024);
  });

  test("ends over what cannot be taken", async () => {
    const wrong = ["invalid-utf8", "deep", "no-answer", "answers-nothing", "modern-task", "floods-output", "floods-without-end"];
    const ends: CallEnd[] = [];
    for (const one of wrong) ends.push(await calls.of(one));
    ends.push(await calls.of("large-answer", String(MCP_LIMITS.responseBytes)));
    expect(ends.map(failureOf)).toEqual([
      "protocol_violation",
      "protocol_violation",
      "protocol_violation",
      "protocol_violation",
      "protocol_violation",
      "output_exceeded",
      "output_exceeded",
      "response_too_large",
    ]);
    expect(ends.every(({ result }) => result.sent)).toBe(true);
  });

  test("shows so many lines that are no message, and counts the rest", async () => {
    const flood = await calls.of("floods-junk");
    expect([textOf(flood), flood.result.output.junk_lines, flood.result.output.junk_bytes]).toEqual(["done", 30_000, 30_000]);
    expect(calls.shown("stdout")).toHaveLength(2 * MCP_LIMITS.junkLines);
  });

  test("keeps a bounded piece of standard error, and reads the rest", async () => {
    const end = await calls.of("floods-errors");
    expect(textOf(end)).toBe("done");
    const { stderr_bytes, stderr_dropped_bytes } = end.result.output;
    expect([stderr_bytes, stderr_dropped_bytes]).toEqual([6 * 1024 * 1024, 2 * 1024 * 1024]);
    expect(calls.shown("stderr")).toHaveLength(MCP_LIMITS.stderrBytes);
  });

  test("has all that was said, also after the answer", async () => {
    expect(textOf(await calls.of("says-why", "", { spec: { arguments: { nonce: "why" } } }))).toBe("said");
    expect(calls.shown("stderr").toString()).toEndWith("e why\nlate why\n");
  });

  test("hands on progress, the last report always", async () => {
    const end = await calls.of("progress");
    expect(textOf(end)).toBe("done");
    const reports = calls.reports();
    expect(reports[0]).toEqual({ type: "progress", label: "echo", current: 1, total: 3, message: "step 1" });
    expect(reports.at(-1)).toMatchObject({ current: 3 });
  });

  test("that is interrupted tells the server so", async () => {
    const note = path.join(fs.mkdtempSync(path.join(calls.root, "note-")), "note");
    const over = new AbortController();
    const going = calls.of("notes-cancel", note, { signal: over.signal });
    await eventually(() => fs.existsSync(note), { what: "the call" });
    over.abort(new CallFailed("interrupted", "it was asked to end"));
    const { result } = await going;
    expect(result).toMatchObject({ phase: "call", sent: true, answer: { reason: "interrupted" } });
    expect(JSON.parse(fs.readFileSync(note, "utf8"))).toMatchObject({ requestId: 3, reason: expect.stringContaining("asked to end") });
  });
});

describe("a server's environment", () => {
  test("is what jobs get, without what is the relay's, and what env_from names", async () => {
    const environment = {
      KEPT: "1",
      CLIO_RELAY_HOME: "/x",
      CLIO_RELAY_ATTEMPT: "job_1/1",
      CLIO_RELAY_API_TOKEN: "t",
      MADE: "by the setup text",
    };
    const env_from = { MINE: "MADE", PATH_TOO: "PATH" };
    const end = await calls.of("environment", "", { environment, spec: { env_from } });
    const { env } = JSON.parse(textOf(end)) as { env: Record<string, string> };
    expect(env).toMatchObject({ KEPT: "1", CLIO_RELAY_ATTEMPT: "job_1/1", MINE: "by the setup text", PATH_TOO: process.env["PATH"]! });
    expect(Object.keys(env).filter((name) => name.startsWith("CLIO_RELAY_"))).toEqual(["CLIO_RELAY_ATTEMPT"]);
    const missing = await calls.of("environment", "", { spec: { env_from: { A: "NOT_THERE_AT_ALL" } } });
    expect(failureOf(missing)).toBe("environment_missing");
    expect(missing.result.sent).toBe(false);
  });

  test("reads its arguments as they are: no shell sees them", async () => {
    const end = await calls.of("environment", "$(touch /tmp/x); `id` 'a'\n*");
    expect((JSON.parse(textOf(end)) as { argv: string[] }).argv[1]).toBe("$(touch /tmp/x); `id` 'a'\n*");
  });
});

describe("input", () => {
  const asks = async (behaviour: string) => {
    const going = calls.of(behaviour);
    const [report] = await eventually(() => (calls.reports().length > 0 ? calls.reports() : null), { what: "the question" });
    calls.answer({ "input-1": { action: "accept", content: { name: "me" } } });
    return { report: report!, end: await going };
  };

  test.each(["elicits", "modern-elicits"])("is asked for by a report, and answered by a file (%s)", async (behaviour) => {
    const { report, end } = await asks(behaviour);
    expect(report).toMatchObject({
      type: "task-event",
      event_type: "mcp.input_requested",
      summary: "your name?",
      metadata: { requests: { "input-1": { method: "elicitation/create", params: { message: "your name?" } } } },
    });
    const told = JSON.parse(textOf(end)) as Record<string, unknown>;
    if (behaviour === "elicits") expect(told).toEqual({ action: "accept", content: { name: "me" } });
    else expect(told).toEqual({ inputResponses: { who: { action: "accept", content: { name: "me" } } }, requestState: "s1" });
  });

  test("has so many rounds", async () => {
    const going = calls.of("elicits-for-ever");
    const keys = Array.from({ length: MCP_LIMITS.inputRounds + 1 }, (_, at) => `input-${at + 1}`);
    calls.answer(Object.fromEntries(keys.map((key) => [key, { action: "accept", content: {} }])));
    expect(failureOf(await going)).toBe("input_refused");
    expect(calls.reports()).toHaveLength(MCP_LIMITS.inputRounds);
  });

  test("of another kind is not offered, and a server that is busy is asked again", async () => {
    const [samples, busy] = await Promise.all([calls.of("samples"), calls.of("modern-busy")]);
    expect(JSON.parse(textOf(samples))).toMatchObject({ error: { code: -32601 } });
    expect(textOf(busy)).toBe("done");
  });
});

test("a server of the SDK's is spoken to in its own version: pages, progress, rounds of input", async () => {
  const file = path.join(import.meta.dir, "sdk-server-process.ts");
  const call = (tool: string) => calls.program(file, [], { spec: { tool } });
  const listed = await calls.program(file, [], { spec: { operation: "tools/list", tool: null } });
  expect(listed.result).toMatchObject({
    server: { protocol_version: "2026-07-28", name: "of-the-sdk" },
    answer: { kind: "tools", pages: 2, tools: [{ name: "ask", inputSchema: { $defs: { x: { type: "string" } } } }, { name: "steps" }] },
  });
  const steps = await call("steps");
  expect(steps.result.answer).toMatchObject({ result: { structuredContent: { done: true } }, is_error: false });
  expect(calls.reports()).toMatchObject([{ type: "progress", label: "steps", current: 1, total: 2, message: "half" }]);
  const going = call("ask");
  await eventually(() => calls.reports().length > 0, { what: "the question" });
  calls.answer({ "input-1": { action: "accept", content: { name: "me" } } });
  expect(JSON.parse(textOf(await going))).toEqual({ who: { action: "accept", content: { name: "me" } } });
});
