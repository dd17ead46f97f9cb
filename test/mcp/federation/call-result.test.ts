import { expect, test } from "bun:test";
import type { ClusterClient } from "../../../src/api/client.ts";
import type { Artifact } from "../../../src/domain/artifact.ts";
import { isRelayError } from "../../../src/domain/errors.ts";
import type { Outcome } from "../../../src/domain/job.ts";
import type { McpAnswer, McpResult } from "../../../src/domain/mcp-call.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { callDocument, contentOf, viewOf, withoutDocument } from "../../../src/mcp/federation/call-result.ts";

const seen = (answer: McpAnswer, { sent = true, others = [] as Artifact[] } = {}) =>
  viewOf({ document: { answer, sent } as McpResult, others });
const result = (given: object, is_error = false): McpAnswer => ({
  ...{ kind: "result", is_error, result: given as never, meta: null, size_bytes: 100, content: null, preview: null },
});
const HANDLE = { cluster: "c", job_id: "job_1" };
const JOB = { type: "text", text: JSON.stringify(HANDLE) };

test("a result is handed on as it is: blocks for people, the structure for programs, and the job", () => {
  const content = [
    { type: "text", text: "ünï" },
    { type: "image", data: "AAAA", mimeType: "image/png" },
    { type: "resource", resource: { uri: "x:y", text: "t" } },
    { type: "resource_link", uri: "x:y", name: "n" },
  ];
  const view = seen(result({ content, structuredContent: { n: 1 } }));
  expect(view).toMatchObject({ delivery: "inline", is_error: false, content, structured_result: { n: 1 }, note: null });
  expect(contentOf(view, HANDLE)).toEqual([...content, JOB]);
  expect(contentOf(undefined, HANDLE)).toEqual([JOB]);
});

test("of numbers that may be rounded it is said that they are", () => {
  const content = [{ type: "text", text: '{"id":9007199254740993}' }];
  const { note, structured_result } = seen(result({ content, structuredContent: { all: [{ id: 2 ** 53 }] } }));
  expect([note, structured_result]).toEqual([expect.stringContaining("may be rounded"), { all: [{ id: 2 ** 53 }] }]);
  const more = seen(result({ content, structuredContent: { id: 2 ** 60 }, other: 1 }));
  expect(more.note).toMatch(/further members.+; structured_result has numbers/);
  expect(seen(result({ content, structuredContent: { id: 2 ** 53 - 1, x: 0.1 } })).note).toBeNull();
});

test("a structure without blocks is shown as text, and what is no block is one", () => {
  const bare = seen(result({ structuredContent: { n: 1 } }));
  expect(contentOf(bare, HANDLE)).toEqual([{ type: "text", text: '{"n":1}' }, JOB]);
  const odd = seen(result({ content: [{ type: "video" }, { type: "text" }, { type: "resource", resource: { uri: "x" } }, 7, null] }));
  expect(odd.content).toEqual(
    ['{"type":"video"}', '{"type":"text"}', '{"type":"resource","resource":{"uri":"x"}}', "7", "null"].map((text) => ({
      type: "text",
      text,
    })),
  );
});

test("what the protocol has no place for is not lost: content that is no list, and further members", () => {
  for (const [content, text] of [
    ["hello", "hello"],
    [{ a: 1 }, '{"a":1}'],
    [0, "0"],
  ] as const)
    expect(seen(result({ content }))).toMatchObject({ content: [{ type: "text", text }], note: null });
  const old = seen(result({ toolResult: { n: 1 } }));
  expect(contentOf(old, HANDLE)).toEqual([{ type: "text", text: '{"toolResult":{"n":1}}' }, JOB]);
  expect(old.note).toContain("toolResult");
  const both = seen(result({ structuredContent: { n: 1 }, isError: false, x: 2 }));
  expect(contentOf(both, HANDLE)).toEqual(['{"n":1}', '{"x":2}'].map((text) => ({ type: "text", text })).concat(JOB));
  expect(seen(result({ content: null })).content).toEqual([]);
});

test("a structure of another kind than an object is handed on, too", () => {
  for (const structuredContent of [[1, { a: 2 }], "text", 0, false]) {
    const view = seen(result({ content: [], structuredContent }));
    expect(view.structured_result).toEqual(structuredContent);
    expect(contentOf(view, HANDLE)).toEqual([{ type: "text", text: JSON.stringify(structuredContent) }, JOB]);
  }
});

test("a call that was begun and left nothing is not said to have had no effect", () => {
  const ended = (started_at: string | null, reason: string) => withoutDocument({ started_at, outcome: { reason } as Outcome });
  const STARTED = "2026-01-02T00:00:00.000Z";
  for (const lost of [ended(STARTED, "signaled"), ended(STARTED, "canceled"), ended(null, "outcome_unknown")]) {
    expect(lost).toMatchObject({ delivery: "none", is_error: true, may_have_run: true });
    expect(lost.note).toContain("before it is called again");
  }
  for (const none of [withoutDocument(null), ended(null, "canceled"), ended(null, "spawn_failed")]) {
    expect(none).toMatchObject({ delivery: "none", is_error: true, may_have_run: false });
    expect(none.note).toContain("not begun");
  }
});

test("a document that is none, whatever a worker says, is refused as such", async () => {
  const refusal = async (text: string, more: Partial<Artifact> = {}) => {
    const artifact = { artifact_id: "artifact_1", kind: "mcp_result", sha256: sha256Hex(text), size_bytes: text.length, ...more };
    const client = {
      artifacts: () => Promise.resolve({ artifacts: [artifact] }),
      artifactContent: () => Promise.resolve(new Response(text)),
    } as unknown as ClusterClient;
    const error: unknown = await callDocument(client, "job_1", new AbortController().signal).catch((reason: unknown) => reason);
    return isRelayError(error) ? [error.code, error.message] : error;
  };
  const says = (what: string) => ["answer_malformed", `the result of job_1 ${what}`];
  expect(await refusal("{}", { sha256: "0".repeat(64) })).toEqual(says("has another digest than was recorded"));
  expect(await refusal("{}", { size_bytes: 1e9 })).toEqual(says("takes 1000000000 bytes"));
  expect(await refusal("{")).toEqual(says("is no JSON"));
  expect(await refusal("[]")).toEqual(says("does not fit: schema_version"));
  expect(await refusal(`{"answer":${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}}`)).toEqual(
    says("cannot be read: it is nested deeper than 300 levels"),
  );
});

test("a result that is too long for an answer is an artifact that can be read, with its beginning", () => {
  const content = { name: "mcp-tool-result.json", size_bytes: 200_000, sha256: "a".repeat(64) };
  const answer: McpAnswer = {
    ...{ kind: "result", is_error: false, result: null, meta: null, size_bytes: 200_000 },
    content,
    preview: "It begins",
  };
  const file = { ...content, artifact_id: "artifact_9", kind: "execution_output" } as Artifact;
  const view = seen(answer, { others: [{ ...file, artifact_id: "artifact_8", sha256: "b".repeat(64) }, file] });
  expect(view).toMatchObject({
    delivery: "artifact",
    preview: "It begins",
    artifact: { artifact_id: "artifact_9", size_bytes: 200_000 },
    may_have_run: true,
  });
  expect(view.note).toContain("relay_read_artifact");
  const [text] = contentOf(view, HANDLE);
  expect(text!["text"]).toContain("artifact_9");
  expect(seen(answer).note).toContain("is not among what the job left");
});

test("what a tool says went wrong, what its server refuses, and what kept it from an answer are told apart", () => {
  expect(seen(result({ content: [{ type: "text", text: "no" }] }, true))).toMatchObject({ delivery: "inline", is_error: true });
  const error = seen({ kind: "error", error: { code: -32602, message: "no such tool", data: { a: 1 } } });
  expect(error).toMatchObject({ delivery: "error", is_error: true, error: { code: -32602, message: "no such tool", data: { a: 1 } } });
  const before = seen({ kind: "failure", reason: "server_missing", message: "no such program" }, { sent: false });
  expect(before).toMatchObject({ delivery: "failure", is_error: true, may_have_run: false, note: null });
  const after = seen({ kind: "failure", reason: "server_exited", message: "it ended" });
  expect(after).toMatchObject({
    failure: { reason: "server_exited" },
    may_have_run: true,
    note: expect.stringMatching(/called again; .+relay_read_job_log with stream stderr$/),
  });
});

test("a code that is no integer is one of the protocol, with the server's in the note", () => {
  const odd = seen({ kind: "error", error: { code: -32000.5, message: "m" } });
  expect([odd.error, odd.note]).toEqual([{ code: -32603, message: "m" }, "its code was -32000.5"]);
  expect(seen({ kind: "error", error: { code: 1e300, message: "x".repeat(60_000) } }).error?.code).toBe(-32603);
});

test("an error of the server's that is longer than an answer is cut, and says so", () => {
  const view = seen({ kind: "error", error: { code: 1, message: "x".repeat(60_000), data: "y".repeat(1_000_000) } });
  expect(JSON.stringify(view).length).toBeLessThan(64 * 1024);
  expect(view.error).toMatchObject({ code: 1, message: "x".repeat(4_096) });
  expect(view.note).toContain("takes 1060");
});
