import { linesOf } from "../test/runner/lines.ts";

const HANDSHAKE = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bench", version: "1" } };

interface Answer {
  readonly id?: number;
  readonly result?: Record<string, unknown>;
  readonly error?: unknown;
}

/** A client of an MCP server on standard input and output that does nothing but write lines and wait for theirs. */
export class McpLines implements AsyncDisposable {
  readonly #child;
  readonly #waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  readonly #read: Promise<void>;
  #id = 0;
  /** Milliseconds from before it was started until its answer to `initialize` was read. */
  initialized = Number.NaN;

  private constructor(command: readonly string[], env: Record<string, string>) {
    this.#child = Bun.spawn([...command], { env, stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    this.#read = this.#take();
  }

  static async start(command: readonly string[], env: Record<string, string>): Promise<McpLines> {
    const begin = performance.now();
    const lines = new McpLines(command, env);
    await lines.request("initialize", HANDSHAKE);
    lines.initialized = performance.now() - begin;
    lines.#write({ jsonrpc: "2.0", method: "notifications/initialized" });
    return lines;
  }

  get pid(): number {
    return this.#child.pid;
  }

  #write(message: object): void {
    void this.#child.stdin.write(`${JSON.stringify(message)}\n`);
    void this.#child.stdin.flush();
  }

  async #take(): Promise<void> {
    for await (const line of linesOf(this.#child.stdout)) {
      const { id, result, error } = JSON.parse(line) as Answer;
      const waiting = this.#waiting.get(id ?? -1);
      if (waiting === undefined) continue;
      if (result === undefined) waiting.reject(new Error(JSON.stringify(error)));
      else waiting.resolve(result);
    }
    for (const { reject } of this.#waiting.values()) reject(new Error("the server ended"));
  }

  /** @throws Error where it is answered with an error, or the server ends */
  request(method: string, params: object): Promise<Record<string, unknown>> {
    const id = ++this.#id;
    const waiting = Promise.withResolvers<Record<string, unknown>>();
    this.#waiting.set(id, waiting);
    this.#write({ jsonrpc: "2.0", id, method, params });
    return waiting.promise.finally(() => this.#waiting.delete(id));
  }

  /** The same of a tool. @throws Error where it failed */
  async call(name: string, args: object): Promise<Record<string, unknown>> {
    const result = await this.request("tools/call", { name, arguments: args });
    if (result["isError"] === true) throw new Error(`${name}: ${JSON.stringify(result["content"])}`);
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stdin.end();
    await this.#child.exited;
    await this.#read;
  }
}
