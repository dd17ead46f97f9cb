import { expect, test } from "bun:test";
import { RelayError } from "../../src/domain/errors.ts";
import { failureAnswer } from "../../src/mcp/answer.ts";
import { listTools, TOOLS } from "../../src/mcp/catalogue.ts";
import { argumentsOf } from "../../src/mcp/dispatch.ts";
import { visitSchemas } from "../../src/mcp/federation/schema-walk.ts";
import { INSTRUCTIONS, PROMPTS } from "../../src/mcp/prompts.ts";
import { ADMIN_TOOLS } from "./tool-names.ts";

test("every argument of the relay's own tools says what it is", () => {
  const silent = listTools("admin", [], TOOLS)
    .filter(({ name }) => name.startsWith("relay_"))
    .flatMap(({ name, inputSchema }) =>
      Object.entries(inputSchema["properties"] as Record<string, { description?: string }>)
        .filter(([, { description = "" }]) => description === "")
        .map(([argument]) => `${name}: ${argument}`),
    );
  expect(silent).toEqual([]);
});

test("every schema is of one type at a time, and of some, as clients with a dialect of their own need it", () => {
  const odd: string[] = [];
  for (const { name, inputSchema, outputSchema } of listTools("admin", [], TOOLS)) {
    for (const whole of [inputSchema, outputSchema]) {
      visitSchemas(whole, (schema) => {
        const says = ["type", "anyOf", "enum", "const"].some((keyword) => keyword in schema);
        if (!says || Array.isArray(schema["type"])) odd.push(`${name}: ${JSON.stringify(schema).slice(0, 80)}`);
      });
    }
  }
  expect(odd).toEqual([]);
});

test("arguments that are missing, or that there are not, are named as such", () => {
  const problem = (name: string, given: Record<string, unknown>): unknown => {
    try {
      return argumentsOf(TOOLS.find((tool) => tool.name === name)!, given);
    } catch (error) {
      return error;
    }
  };
  expect(problem("relay_list_jobs", { clusters: "local", limit: 10 })).toMatchObject({
    code: "request_validation_failed",
    data: {
      issues: [
        { path: "cluster", message: "it is missing" },
        { path: "clusters", message: "there is no such argument" },
      ],
    },
  });
  expect(problem("relay_submit_mcp_call", { cluster: "a", server: "s", tool: "t", env_from: { A: 5 } })).toMatchObject({
    data: { issues: [{ path: "env_from.A", message: expect.stringContaining("string") }] },
    hint: undefined,
  });
  // An agent reads the sentence first.
  expect(problem("relay_watch_task_events", { job_id: "a" })).toMatchObject({
    message: expect.stringContaining("task_id: it is missing; job_id: there is no such argument"),
    hint: expect.stringMatching(/^it takes task_id, cluster, /),
  });
  expect(problem("relay_record_task_event", {})).toMatchObject({
    message: expect.stringMatching(/: it is missing; and 1 more$/),
  });
});

test("whatever the profile user is told names no tool that only admin has", () => {
  const tools = listTools("user", [], TOOLS);
  const others = new Set(ADMIN_TOOLS);
  const prompts = PROMPTS.map((prompt) => prompt.text({ cluster: "a", pipeline: "b", job_id: "c" }));
  const said = [INSTRUCTIONS, ...prompts, JSON.stringify(tools)];
  const named = said.flatMap((text) => text.match(/\b(?:relay|jarvis)_[a-z_]+[a-z]/g) ?? []);
  expect(named.length).toBeGreaterThan(60);
  expect(named.filter((name) => others.has(name))).toEqual([]);
});

test("what is not there is an answer that leads to a tool which shows what there is", () => {
  const shown = new Set(listTools("user", [], TOOLS).map(({ name }) => name));
  const hint = (error: unknown): string => {
    const [first] = failureAnswer(error).content;
    return String((JSON.parse(String(first?.["text"])) as { hint?: string }).hint);
  };
  for (const code of ["cluster_not_found", "job_not_found", "job_submission_conflict", "task_not_found", "artifact_not_found"] as const) {
    const tools = hint(new RelayError(code, "it is not there")).match(/relay_[a-z_]+/g) ?? [];
    expect([code, tools.length, tools.filter((name) => !shown.has(name))]).toEqual([code, 1, []]);
  }
  // Where some could not be asked, there is no command line on which to name another.
  expect(hint(new RelayError("link_down", "it may be of b", { clusters: ["b"] }, "--cluster NAME"))).not.toContain("--");
  // What a person has to type stays as it is.
  expect(hint(new RelayError("worker_not_running", "it does not run", { cluster: "b" }))).toBe("clio-relay worker start --cluster b");
});
