import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import * as v from "valibot";
import { type McpAnswer, McpResult } from "../../../src/domain/mcp-call.ts";
import { McpCallSpec } from "../../../src/domain/specs.ts";
import type { CallFailed } from "../../../src/execution/mcp-call/call-failed.ts";
import { type CallEnd, oneCall } from "../../../src/execution/mcp-call/one-call.ts";
import { CALL_FILES } from "../../../src/execution/mcp-call/request-file.ts";
import { self } from "../../../src/lib/system/process-identity.ts";

const SERVER = path.join(import.meta.dir, "server-process.ts");

export interface CallOptions {
  readonly spec?: Partial<McpCallSpec>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly probeMs?: number;
}

/** Calls of the test server, each in a directory of its own, in this process. */
export class Calls implements Disposable {
  readonly root = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-calls-"));
  #count = 0;
  directory = "";

  /** One call of the server that behaves so. */
  of(behaviour: string, argument = "", options: CallOptions = {}): Promise<CallEnd> {
    return this.program(SERVER, [behaviour, argument], options);
  }

  /** One call of a server that is a program of Bun's. */
  program(file: string, args: readonly string[], options: CallOptions = {}): Promise<CallEnd> {
    const server = { server: process.execPath, server_args: [file, ...args] };
    return this.#run({ ...server, operation: "tools/call", tool: "echo", ...options.spec }, options);
  }

  list(behaviour: string, argument = "", options: CallOptions = {}): Promise<CallEnd> {
    return this.of(behaviour, argument, { ...options, spec: { operation: "tools/list", tool: null, ...options.spec } });
  }

  async #run(spec: object, { environment = {}, signal = new AbortController().signal, ...rest }: CallOptions): Promise<CallEnd> {
    const directory = path.join(this.root, String(++this.#count));
    this.directory = directory;
    fs.mkdirSync(path.join(directory, "events"), { recursive: true });
    const into = (name: string) => async (bytes: Uint8Array) => fs.appendFileSync(path.join(directory, name), bytes);
    const sinks = { stdout: into("stdout"), stderr: into("stderr") };
    for (const name of Object.keys(sinks)) fs.writeFileSync(path.join(directory, name), "");
    const request = { record_version: 1, spec: v.parse(McpCallSpec, spec), execution_fingerprint: "0".repeat(64), worker: self() };
    const around = {
      request,
      environment: async () => ({ PATH: process.env["PATH"], HOME: this.root, ...environment }),
      workdir: this.root,
      clientInfo: { name: "test", version: "1" },
      ...(rest.probeMs === undefined ? {} : { probeMs: rest.probeMs }),
    };
    const end = await oneCall(around, { directory, eventsDir: path.join(directory, "events"), sinks, signal });
    // What it left is of its schema, whatever the server did.
    v.parse(McpResult, JSON.parse(JSON.stringify(end.result)));
    return end;
  }

  /** What the last call showed of its server's output. */
  shown(stream: "stdout" | "stderr"): Buffer {
    return fs.readFileSync(path.join(this.directory, stream));
  }

  /** Reports of the last call. */
  reports(): Record<string, unknown>[] {
    const events = path.join(this.directory, "events");
    return fs
      .readdirSync(events)
      .flatMap((name) => fs.readFileSync(path.join(events, name), "utf8").trim().split("\n"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Answer what the last call asks for, as the worker does. */
  answer(responses: Readonly<Record<string, object>>): void {
    fs.writeFileSync(path.join(this.directory, CALL_FILES.answers), JSON.stringify({ responses }));
  }

  [Symbol.dispose](): void {
    fs.rmSync(this.root, { recursive: true, force: true });
  }
}

/** The text of a result. */
export function textOf({ result: { answer } }: CallEnd): string {
  if (answer.kind !== "result") throw new Error(JSON.stringify(answer));
  const [first] = (answer.result as { content: { text: string }[] }).content;
  return first!.text;
}

export const failureOf = ({ result: { answer } }: CallEnd): CallFailed["reason"] | McpAnswer["kind"] =>
  answer.kind === "failure" ? answer.reason : answer.kind;
