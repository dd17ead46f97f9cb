import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { generator } from "../rigs/openapi-typescript/generator.ts";
import { describeWith } from "../runner/components.ts";
import { startRelay } from "../runner/relay.ts";
import { temporaryDirectory } from "../runner/temporary.ts";

const ROOT = path.resolve(import.meta.dir, "../..");
const DOCUMENT = path.join(ROOT, "docs/openapi-desktop.json");

/** What somebody writes who knows nothing but the document. */
const PROGRAM = `
import createClient from "openapi-fetch";
import type { paths } from "./relay.d.ts";

const unix = process.argv[2]!;
const client = createClient<paths>({ baseUrl: "http://relay", fetch: (request: Request) => fetch(request, { unix }) });
const path = { name: "local" };

const submitted = await client.POST("/clusters/{name}/jobs", {
  params: { path, header: { "Idempotency-Key": "generated" } },
  body: { cluster: "local", kind: "command", spec: { argv: ["sh", "-c", "echo hello"], workdir: "/" } },
});
if (submitted.error !== undefined) throw new Error(submitted.error.reason);
const id = submitted.data.job_id;
const waited = await client.POST("/clusters/{name}/jobs/{id}/wait", { params: { path: { ...path, id }, query: { timeout_seconds: 30 } } });
const events = await client.GET("/clusters/{name}/jobs/{id}/events", { params: { path: { ...path, id }, query: { limit: 500 } } });
const log = await client.GET("/clusters/{name}/jobs/{id}/logs/{stream}", { params: { path: { ...path, id, stream: "stdout" } } });
const artifacts = await client.GET("/clusters/{name}/jobs/{id}/artifacts", { params: { path: { ...path, id } } });
const said = artifacts.data!.artifacts.find(({ kind }) => kind === "stdout")!;
const content = await client.GET("/clusters/{name}/artifacts/{id}/content", {
  params: { path: { ...path, id: said.artifact_id } },
  parseAs: "text",
});
const none = await client.GET("/clusters/{name}/jobs/{id}", { params: { path: { ...path, id: "job_none" } } });
const queue = await client.GET("/clusters/{name}/queue", { params: { path, query: { state: ["succeeded"], include_terminal: true } } });
console.log(
  JSON.stringify({
    state: waited.data!.state,
    outcome: waited.data!.observation.outcome,
    events: events.data!.events.map(({ event_type }) => event_type),
    text: log.data!.text,
    content: content.data,
    refusal: none.error!.reason,
    queued: queue.data!.jobs.map(({ job_id }) => job_id === id),
  }),
);
`;

/** The same with one thing that the document does not allow. */
const WRONG = [
  ['kind: "command", spec: { argv:', 'kind: "command", spec: { program:'],
  ["timeout_seconds: 30", 'timeout_seconds: "30"'],
  ['stream: "stdout"', 'stream: "console"'],
  ["data!.observation.outcome", "data!.observation.result"],
] as const;

const COMPILER_OPTIONS = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  module: "Preserve",
  moduleResolution: "bundler",
  target: "ESNext",
  allowImportingTsExtensions: true,
  types: [path.join(ROOT, "node_modules/@types/bun")],
};

describeWith(["openapi-typescript", "linux"], "a client that is generated from the committed document", () => {
  const temporary = temporaryDirectory();
  const directory = temporary.path;
  afterAll(() => temporary[Symbol.dispose]());
  const modules = path.join(generator.directory(), "node_modules");

  beforeAll(async () => {
    fs.symlinkSync(modules, path.join(directory, "node_modules"));
    const cli = path.join(modules, "openapi-typescript/bin/cli.js");
    const made = Bun.spawn([process.execPath, cli, DOCUMENT, "--default-non-nullable=false", "-o", path.join(directory, "relay.d.ts")], {
      stdout: "ignore",
      stderr: "pipe",
    });
    if ((await made.exited) !== 0) throw new Error(await made.stderr.text());
  });

  /** What the compiler says of some programs. */
  async function check(sources: Readonly<Record<string, string>>): Promise<string> {
    for (const [file, source] of Object.entries(sources)) fs.writeFileSync(path.join(directory, file), source);
    return compile(COMPILER_OPTIONS, Object.keys(sources));
  }

  async function compile(compilerOptions: object, files: readonly string[]): Promise<string> {
    const configuration = path.join(directory, "tsconfig.json");
    fs.writeFileSync(configuration, JSON.stringify({ compilerOptions, files }));
    const compiler = path.join(ROOT, "node_modules/typescript/bin/tsc");
    const child = Bun.spawn([process.execPath, compiler, "-p", configuration], { stdout: "pipe", stderr: "pipe" });
    return `${await child.stdout.text()}${await child.stderr.text()}`;
  }

  test("has types that hold together by themselves", async () => {
    expect(await compile({ ...COMPILER_OPTIONS, skipLibCheck: false, types: [] }, ["relay.d.ts"])).toBe("");
  });

  test("refuses what the document does, and nothing else", async () => {
    for (const [right] of WRONG) expect(PROGRAM).toContain(right);
    const wrong = WRONG.map(([right, instead], i) => [`wrong-${i}.ts`, PROGRAM.replace(right, instead)] as const);
    const said = await check({ "program.ts": PROGRAM, ...Object.fromEntries(wrong) });
    expect([...new Set([...said.matchAll(/(\S+\.ts)\(\d+,\d+\): error TS/g)].map(([, file]) => path.basename(file!)))].toSorted()).toEqual(
      wrong.map(([file]) => file),
    );
  });

  test("drives a job through a desktop", async () => {
    fs.writeFileSync(path.join(directory, "program.ts"), PROGRAM);
    await using relay = await startRelay();
    await relay.json("desktop", "start");
    const socket = path.join(relay.home, "run", "desktop.sock");
    const child = Bun.spawn([process.execPath, path.join(directory, "program.ts"), socket], { stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    expect([await child.exited, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toEqual({
      state: "succeeded",
      outcome: "terminal",
      events: expect.arrayContaining(["job.queued", "execution.started", "job.succeeded"]),
      text: "hello\n",
      content: "hello\n",
      refusal: "job_not_found",
      queued: [true],
    });
  });
});
