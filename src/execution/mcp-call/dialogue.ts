import { MCP_LIMITS } from "../../domain/mcp-call.ts";
import type { JsonObject } from "../../domain/primitives.ts";
import type { Line } from "../../lib/text/bounded-lines.ts";
import { CallFailed, ServerError } from "./call-failed.ts";
import type { CallOutput } from "./call-output.ts";
import { isObject, type Message, messagesOf } from "./message.ts";
import { type ServerCommand, ServerProcess } from "./server-process.ts";

const METHOD_NOT_FOUND = -32601;
const INTERNAL = -32603;
const ERROR_MESSAGE_LENGTH = 65_536;

/** Progress of a request, as its server reports it. */
export interface ReportedProgress {
  readonly progress: number;
  readonly total: number | null;
  readonly message: string | null;
}

interface OpenRequest {
  readonly resolve: (result: JsonObject) => void;
  readonly reject: (error: Error) => void;
  readonly onProgress: ((report: ReportedProgress) => void) | undefined;
}

export interface RequestOptions {
  readonly onProgress?: (report: ReportedProgress) => void;
  /** Aborting it tells the server that nobody waits any more (notifications/cancelled), with this as the reason, and ends the request. */
  readonly signal?: AbortSignal;
}

/** Answers what a server asks of its client; null for a method that is none of it. */
export type ClientMethods = (method: string, params: JsonObject) => Promise<JsonObject> | null;

/** Requests and answers with one server process. */
export class Dialogue {
  readonly server: ServerProcess;
  readonly #open = new Map<number, OpenRequest>();
  #id = 0;
  /** Which request was not read. */
  #unread = -1;
  #over: CallFailed | null = null;

  /** @throws CallFailed server_missing */
  constructor(
    command: ServerCommand,
    output: CallOutput,
    public methods: ClientMethods,
  ) {
    this.server = new ServerProcess(command, output, { line: (line) => this.#take(line), over: (why) => this.#end(why) });
  }

  /** How many requests were made of the server. */
  get requests(): number {
    return this.#id;
  }

  /** Whether the last request certainly was not read: its line did not reach its end. */
  get unread(): boolean {
    return this.#unread === this.#id;
  }

  /** Whether nothing comes from the server any more. */
  get over(): boolean {
    return this.#over !== null;
  }

  /**
   * @returns the result as it came
   * @throws ServerError, CallFailed, the reason of `signal`
   */
  async request(method: string, params: JsonObject, { onProgress, signal }: RequestOptions = {}): Promise<JsonObject> {
    if (this.#over !== null) throw this.#over;
    signal?.throwIfAborted();
    const id = ++this.#id;
    const { promise, resolve, reject } = Promise.withResolvers<JsonObject>();
    this.#open.set(id, { resolve, reject, onProgress });
    const meta = onProgress === undefined ? {} : { _meta: { ...(params["_meta"] as JsonObject | undefined), progressToken: id } };
    const cancel = (): void => {
      this.notify("notifications/cancelled", { requestId: id, reason: String(signal?.reason) });
      reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", cancel);
    this.server.send({ jsonrpc: "2.0", id, method, params: { ...params, ...meta } }, () => {
      this.#unread = id;
    });
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", cancel);
      this.#open.delete(id);
    }
  }

  notify(method: string, params: JsonObject): void {
    this.server.send({ jsonrpc: "2.0", method, params });
  }

  #take(line: Line): void | Promise<void> {
    if ("tooLong" in line)
      return this.#end(new CallFailed("response_too_large", `a message takes more than ${MCP_LIMITS.responseBytes} bytes`));
    if (line.bytes.length === 0) return;
    const read = messagesOf(line.bytes);
    if (read === null) return this.server.output.junk(line.bytes);
    const { messages, damaged } = read;
    if (
      damaged !== null &&
      (messages.length === 0 || messages.some(({ id, method }) => method === undefined && this.#open.has(id as number)))
    )
      return this.#end(new CallFailed("protocol_violation", `an answer cannot be read: ${damaged}`));
    if (damaged !== null) return this.server.output.junk(line.bytes);
    for (const message of messages) this.#hear(message);
  }

  #hear(message: Message): void {
    const { id, method, params } = message;
    if (method === undefined) this.#answered(message);
    else if (id !== undefined && id !== null) void this.#asked(id, method, params ?? {});
    else if (method === "notifications/progress") this.#progressed(params ?? {});
  }

  #answered({ id, result, error }: Message): void {
    const open = this.#open.get(id as number);
    if (open === undefined) {
      this.server.output.strayAnswer();
      return;
    }
    this.#open.delete(id as number);
    if (isObject(error) && typeof error["code"] === "number") {
      const text = typeof error["message"] === "string" ? error["message"] : "";
      open.reject(new ServerError(error["code"], text.slice(0, ERROR_MESSAGE_LENGTH), error["data"]));
    } else if (isObject(result)) open.resolve(result);
    else open.reject(new CallFailed("protocol_violation", "an answer has neither a result nor an error of the protocol"));
  }

  async #asked(id: string | number, method: string, params: JsonObject): Promise<void> {
    const reply = (answer: object): void => this.server.send({ jsonrpc: "2.0", id, ...answer });
    try {
      const answer = method === "ping" ? Promise.resolve({}) : this.methods(method, params);
      if (answer === null) reply({ error: { code: METHOD_NOT_FOUND, message: `not offered: ${method.slice(0, 200)}` } });
      else reply({ result: await answer });
    } catch (error) {
      reply({ error: { code: INTERNAL, message: error instanceof Error ? error.message : String(error) } });
      if (error instanceof CallFailed) this.#end(error);
    }
  }

  #progressed({ progressToken, progress, total, message }: JsonObject): void {
    const report = this.#open.get(progressToken as number)?.onProgress;
    if (report === undefined || typeof progress !== "number" || !Number.isFinite(progress)) return;
    report({
      progress,
      total: typeof total === "number" && Number.isFinite(total) && total > 0 ? total : null,
      message: typeof message === "string" ? message : null,
    });
  }

  #end(why: CallFailed): void {
    this.#over ??= why;
    for (const { reject } of this.#open.values()) reject(why);
    this.#open.clear();
  }
}
