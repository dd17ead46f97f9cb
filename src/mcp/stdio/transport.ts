import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from "@modelcontextprotocol/server";
import { linesOf } from "../../lib/text/bounded-lines.ts";
import { within } from "../../lib/waiting/within.ts";
import { JSON_BOUNDS, roundedArgument, tooMuch } from "../json-bounds.ts";
import { acknowledged, isListen, type Listening, listening, type Message, type MessageId, resourceUpdated } from "../listen.ts";
import type { McpService } from "../service.ts";
import { IdScan, scannedId } from "./id-scan.ts";
import { Outgoing } from "./outgoing.ts";

/** How long requests have for their answers when the input has ended, in milliseconds. */
const LAST_MS = 1_000;
/** With so many requests under way the next one is read so much later, in milliseconds: what is answered at once is answered first. */
const BUSY = 64;
const BUSY_MS = 5;
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INVALID_PARAMS = -32602;

export interface StdioStreams {
  readonly input: AsyncIterable<Uint8Array>;
  /** Resolves when the bytes are with the system. */
  readonly write: (text: string) => Promise<void>;
}

/**
 * One JSON-RPC message a line, each bounded before it is parsed. What is none is answered, and the next line is read. Subscriptions to tasks and to resources are looked
 * after here: the SDK knows neither tasks, nor who has to be told to watch a resource.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport["onmessage"]>;
  readonly #over = new AbortController();
  readonly #pending = new Map<MessageId, Listening>();
  readonly #listening = new Map<MessageId, Listening>();
  /** Requests that are not answered yet. */
  readonly #open = new Set<MessageId>();
  readonly #last = Promise.withResolvers<void>();
  #ended = false;
  readonly #outgoing: Outgoing;
  #closed = false;

  constructor(
    private readonly service: McpService,
    private readonly streams: StdioStreams,
  ) {
    this.#outgoing = new Outgoing(
      (text) => streams.write(text),
      (error) => {
        this.#failed(error);
        // Nobody reads any more.
        void this.close();
      },
    );
  }

  start(): Promise<void> {
    void this.#read();
    return Promise.resolve();
  }

  async #read(): Promise<void> {
    try {
      let scan = new IdScan();
      const readOver = (piece: Uint8Array, isFirst: boolean): void => {
        if (isFirst) scan = new IdScan();
        scan.push(piece);
      };
      for await (const line of linesOf(this.streams.input, JSON_BOUNDS.messageBytes, readOver)) {
        if (this.#closed) return;
        if ("tooLong" in line) await this.#refuse(INVALID_REQUEST, `a message has at most ${JSON_BOUNDS.messageBytes} bytes`, scan.id);
        else await this.#take(line.bytes);
        if (this.#open.size >= BUSY) await Bun.sleep(BUSY_MS);
        await this.#outgoing.room();
      }
    } catch (error) {
      this.#failed(error);
    }
    this.#ended = true;
    // Who writes all of its requests at once, and ends, reads the answers all the same.
    if (this.#open.size > 0) await within(this.#last.promise, LAST_MS);
    await this.#outgoing.settled();
    await this.close();
  }

  async #take(bytes: Uint8Array): Promise<void> {
    if (bytes.length === 0 || (bytes.length === 1 && bytes[0] === 0x0d)) return;
    const excess = tooMuch(bytes);
    if (excess !== null) return this.#refuse(INVALID_REQUEST, excess, scannedId(bytes));
    let text: string;
    let parsed: unknown;
    try {
      text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
      parsed = JSON.parse(text);
    } catch {
      return this.#refuse(PARSE_ERROR, "a line is no JSON in UTF-8");
    }
    if (Array.isArray(parsed)) return this.#refuse(INVALID_REQUEST, "batches are not taken");
    let message: JSONRPCMessage;
    try {
      message = parseJSONRPCMessage(parsed);
    } catch {
      return this.#refuse(INVALID_REQUEST, "this is no message of JSON-RPC 2.0", idOf(parsed));
    }
    const rounded = roundedArgument(message, text);
    if (rounded !== null) return this.#refuse(INVALID_PARAMS, rounded, idOf(parsed));
    this.#deliver(message);
  }

  #deliver(message: JSONRPCMessage): void {
    const seen = message as Message;
    // Meanwhile other messages are read.
    if (isListen(seen)) void this.#subscribe(message, seen);
    else {
      if (seen.method === "notifications/cancelled") this.#end(seen.params?.["requestId"] as MessageId | undefined);
      if (seen.method !== undefined && seen.id !== undefined) this.#open.add(seen.id);
      this.onmessage?.(message);
    }
  }

  async #subscribe(message: JSONRPCMessage, seen: Message): Promise<void> {
    const wanted = await listening(this.service, seen, this.#over.signal).catch(() => null);
    if (wanted !== null && "refused" in wanted) return this.#write(wanted.refused);
    if (this.#closed) return wanted?.stop();
    if (wanted !== null) this.#pending.set(wanted.id, wanted);
    this.onmessage?.(message);
  }

  #end(id: MessageId | undefined): void {
    if (id === undefined) return;
    this.#open.delete(id);
    for (const those of [this.#pending, this.#listening]) {
      those.get(id)?.stop();
      those.delete(id);
    }
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const seen = message as Message;
    for (const [id, wanted] of this.#pending) {
      const answer = acknowledged(seen, wanted);
      if (answer === null) continue;
      this.#pending.delete(id);
      await this.#write(answer);
      if (this.#closed) return wanted.stop();
      const send = (told: Message): void => void this.#write(told);
      wanted.start(send, (uri) => send(resourceUpdated(id, uri)));
      this.#listening.set(id, wanted);
      return;
    }
    // A refusal, or the end of it.
    if (seen.method === undefined) this.#end(seen.id);
    const written = this.#write(seen);
    if (this.#ended && this.#open.size === 0) this.#last.resolve();
    await written;
  }

  #refuse(code: number, message: string, id: MessageId | null = null): Promise<void> {
    return this.#write({ jsonrpc: "2.0", id, error: { code, message } });
  }

  #write(message: object): Promise<void> {
    return this.#outgoing.send(message);
  }

  #failed(error: unknown): void {
    this.onerror?.(error instanceof Error ? error : new Error(String(error)));
  }

  close(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#closed = true;
    this.#outgoing.close();
    this.#over.abort();
    for (const those of [this.#pending, this.#listening]) {
      for (const wanted of those.values()) wanted.stop();
      those.clear();
    }
    this.onclose?.();
    return Promise.resolve();
  }
}

function idOf(parsed: unknown): MessageId | null {
  const id = parsed !== null && typeof parsed === "object" && "id" in parsed ? parsed.id : null;
  return typeof id === "string" || typeof id === "number" ? id : null;
}
