import { MAIN, type SourceRelay } from "../cli/source-relay.ts";
import { linesOf } from "../runner/lines.ts";
import { eventually } from "../runner/wait.ts";

export interface Rpc {
  readonly id?: number | null;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

interface CallOptions {
  /** Whether the request declares the tasks extension. */
  readonly tasks?: boolean;
}

/** `mcp-server` as its lines are: what a client of 2026-07-28 sends and gets. */
export class Wire implements AsyncDisposable {
  readonly #child: Bun.Subprocess<"pipe", "pipe", "inherit">;
  readonly #heard: Rpc[] = [];
  readonly #read: Promise<void>;
  #id = 0;
  #strays = 0;

  constructor(relay: SourceRelay, args: readonly string[] = []) {
    this.#child = Bun.spawn([process.execPath, MAIN, "mcp-server", ...args], {
      env: relay.environment,
      cwd: relay.directory,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    });
    this.#read = this.#take();
  }

  async #take(): Promise<void> {
    for await (const line of linesOf(this.#child.stdout)) this.#heard.push(JSON.parse(line) as Rpc);
  }

  bytes(data: string | Uint8Array): void {
    this.#child.stdin.write(data);
    void this.#child.stdin.flush();
  }

  line(text: string): void {
    this.bytes(`${text}\n`);
  }

  /** Returns the request's id. */
  send(method: string, params: Readonly<Record<string, unknown>>, { tasks = true }: CallOptions = {}): number {
    const id = ++this.#id;
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "wire", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": tasks ? { elicitation: {}, extensions: { "io.modelcontextprotocol/tasks": {} } } : {},
    };
    this.line(
      JSON.stringify({
        jsonrpc: "2.0",
        id,
        method,
        params: { ...params, _meta: { ..._meta, ...(params["_meta"] as object | undefined) } },
      }),
    );
    return id;
  }

  answered(id: number): boolean {
    return this.#heard.some((one) => one.method === undefined && one.id === id);
  }

  /** A notification. */
  notify(method: string, params: Readonly<Record<string, unknown>>): void {
    this.line(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  /** The answer to a request, whatever it is. */
  async answer(id: number, timeoutMs = 120_000): Promise<Rpc> {
    await eventually(() => this.answered(id), { timeoutMs, everyMs: 5, what: `an answer to ${id}` });
    return this.#heard.find((one) => one.method === undefined && one.id === id)!;
  }

  async result<T = Record<string, unknown>>(method: string, params: Readonly<Record<string, unknown>>, options?: CallOptions): Promise<T> {
    const { result, error } = await this.answer(this.send(method, params, options));
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result as T;
  }

  async error(method: string, params: Readonly<Record<string, unknown>>, options?: CallOptions): Promise<NonNullable<Rpc["error"]>> {
    const { result, error } = await this.answer(this.send(method, params, options));
    if (error === undefined) throw new Error(`${method} did not fail: ${JSON.stringify(result)}`);
    return error;
  }

  /** The next refusal that is the answer to no request of `send`. */
  async stray(): Promise<NonNullable<Rpc["error"]>> {
    const refusals = () =>
      this.#heard.filter(({ id, error }) => error !== undefined && (id === null || id === undefined || id > this.#id || this.#id === 0));
    await eventually(() => refusals().length > this.#strays, { everyMs: 5, what: "a refusal" });
    return refusals()[this.#strays++]!.error!;
  }

  /** Params of the notifications of a method that have come. */
  notes(method: string): Record<string, unknown>[] {
    return this.#heard.filter((one) => one.method === method).map(({ params = {} }) => params);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stdin.end();
    await this.#child.exited;
    await this.#read;
  }
}
