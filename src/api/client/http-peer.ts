import type * as v from "valibot";
import { isErrorCode, RelayError } from "../../domain/errors.ts";
import { Unproven } from "../listener/unproven.ts";
import { jsonAnswer } from "./json-answer.ts";
import { readSse, type SseMessage } from "./sse-reader.ts";

/** Where an app listens. */
export type Address =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly url: string; readonly token: string }
  /** One that its user vouches for: it is told the token without proof of who it is, but what TLS gives. */
  | { readonly kind: "url"; readonly url: string; readonly token: string };

/** How a peer is found. A plain address is one that never changes; a door can bring its owner to life and ask to try again. */
export interface Door {
  address(): Address | Promise<Address>;
  /** Sends the requests, where it is not the runtime's own fetch: one that knows no Unix sockets. */
  readonly fetch?: (url: URL, init: RequestInit & { readonly unix?: string }) => Promise<Response>;
  /** Said with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Called when a request got no answer. True: send it once more.
   *
   * @param failure what fetch threw
   * @param repeatable whether sending it twice does no more than sending it once
   */
  reopen(failure: unknown, repeatable: boolean): Promise<boolean>;
  /**
   * Called before a request is sent that changes something, and whose caller gives no signal to end it by.
   *
   * @param repeatable as above
   * @returns what ends it, with the failure that the caller gets as its reason, and what is called when it is answered
   */
  readonly ending?: (repeatable: boolean) => { readonly signal: AbortSignal; done(): void };
  /** How a listener that takes requests and answers none is told from one that takes its time. Absent: all the time is given. */
  readonly liveness?: {
    /** How long a request may be quiet before it is asked, in milliseconds. */
    readonly everyMs: number;
    /** Whether it answers something easy. */
    probe(): Promise<boolean>;
  };
}

type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

interface CallOptions {
  readonly method?: string;
  readonly query?: Query;
  /** Bytes go as they are, everything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Whether sending it twice does no more than sending it once. Reads always are. */
  readonly repeatable?: boolean;
  /** Whether anything is another than before when it is done; all but reads, unless it is said. */
  readonly changes?: boolean;
  /** Whether it waits for something to happen, so that its answer may take as long as it likes. */
  readonly waits?: boolean;
}

/** When a request is sent that does not wait for something to happen. It gives its place back when its answer is there. @throws the signal's reason */
export type Turn = (signal: AbortSignal | undefined) => Promise<() => void>;

/** Loads the schema of an answer, while the answer is on its way. */
type Expected<S> = () => Promise<S>;

const isRead = ({ method = "GET" }: CallOptions): boolean => method === "GET";

/** One HTTP conversation partner: builds URLs, sends, turns problems into RelayErrors, and takes no answer for one that is none. */
export class HttpPeer {
  private readonly door: Door;

  constructor(
    address: Address | Door,
    private readonly prefix = "",
    /** As people call it. */
    private readonly who = "the desktop daemon",
    /** null: at once. */
    private readonly turn: Turn | null = null,
  ) {
    this.door = "kind" in address ? { address: () => address, reopen: () => Promise.resolve(false) } : address;
  }

  under(prefix: string, who = this.who, turn = this.turn): HttpPeer {
    return new HttpPeer(this.door, this.prefix + prefix, who, turn);
  }

  /**
   * Send a request. The answer is a success, or the call throws the RelayError that its problem document names.
   *
   * @throws RelayError answer_malformed where it is neither
   */
  send(path: string, options: CallOptions = {}): Promise<Response> {
    return this.endable(options, (ended) => this.inTurn(ended, () => this.sent(path, ended)));
  }

  private async inTurn<T>({ waits = false, signal }: CallOptions, work: () => Promise<T>): Promise<T> {
    if (this.turn === null || waits) return work();
    const giveBack = await this.turn(signal);
    try {
      return await work();
    } finally {
      giveBack();
    }
  }

  /** Do something for which a person may not want to wait to its end. */
  private async endable<T>(options: CallOptions, work: (options: CallOptions) => Promise<T>): Promise<T> {
    const changes = options.changes ?? !isRead(options);
    if (!changes || options.signal !== undefined || this.door.ending === undefined) return work(options);
    const { signal, done } = this.door.ending(options.repeatable ?? false);
    try {
      return await work({ ...options, signal });
    } finally {
      done();
    }
  }

  private async sent(path: string, options: CallOptions): Promise<Response> {
    let response: Response;
    try {
      response = await this.attempt(path, options);
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      const repeatable = options.repeatable ?? isRead(options);
      if (!(await this.door.reopen(error, repeatable))) throw await this.unanswered(error);
      response = await this.attempt(path, options).catch(async (again: unknown) => {
        if (options.signal?.aborted) throw options.signal.reason;
        throw await this.unanswered(again);
      });
    }
    if (response.ok || response.status === 304) return response;
    throw await this.problem(response);
  }

  private async unanswered(error: unknown): Promise<RelayError> {
    if (error instanceof RelayError) return error;
    const cause = { cause: error };
    if (error instanceof Unproven) return new RelayError("desktop_unavailable", error.message, {}, undefined, cause);
    const address = await Promise.resolve(this.door.address()).catch(() => null);
    const what = `no answer from ${address === null ? "the local socket" : placeOf(address)}`;
    const hint = address?.kind === "url" ? "clio-relay api status, where the listener is" : undefined;
    return new RelayError("desktop_unavailable", what, {}, hint, cause);
  }

  /** @throws RelayError link_down where it breaks off */
  private async problem(response: Response): Promise<RelayError> {
    const body = await this.document(response).catch((error: unknown) => {
      if (error instanceof RelayError && error.code === "answer_malformed") return null;
      throw error;
    });
    const failure = failureOf(body);
    return failure ?? new RelayError("answer_malformed", `${this.who} answers ${response.status}, and does not say why`);
  }

  /** @throws RelayError answer_malformed, link_down */
  private async document(response: Response): Promise<unknown> {
    try {
      return await jsonAnswer(response);
    } catch (error) {
      const none = error instanceof SyntaxError ? "no JSON" : error instanceof RangeError ? error.message : null;
      if (none !== null) throw new RelayError("answer_malformed", `${this.who} gave an answer that is none: ${none}`);
      throw new RelayError("link_down", "the answer broke off", {}, undefined, { cause: error });
    }
  }

  private async attempt(path: string, options: CallOptions): Promise<Response> {
    const address = await this.door.address();
    const origin = address.kind === "unix" ? "http://relay" : address.url;
    const url = new URL(`${origin}${this.prefix}${path}`);
    for (const [key, value] of Object.entries(options.query ?? {})) {
      if (value === undefined) continue;
      for (const item of Array.isArray(value) ? value : [value]) url.searchParams.append(key, String(item));
    }
    const headers: Record<string, string> = { ...this.door.headers, ...options.headers };
    const bytes = options.body instanceof Uint8Array;
    if (options.body !== undefined) headers["content-type"] = bytes ? "application/octet-stream" : "application/json";
    if (address.kind !== "unix") headers["authorization"] = `Bearer ${address.token}`;
    const hung = new AbortController();
    const watch = this.watch(hung);
    const signal = options.signal === undefined ? hung.signal : AbortSignal.any([options.signal, hung.signal]);
    try {
      if (address.kind === "tcp") {
        const { challenge } = await import("../listener/challenge.ts");
        await challenge(address.url, address.token, signal);
      }
      if (bytes && options.body.length >= LARGE_BYTES && address.kind === "unix" && this.door.fetch === undefined) {
        const { bytesFetch } = await import("./bytes-fetch.ts");
        return await bytesFetch(url, { method: options.method ?? "GET", headers, body: options.body, signal, unix: address.path });
      }
      return await (this.door.fetch ?? fetch)(url, {
        method: options.method ?? "GET",
        headers,
        signal,
        // No server of ours sends a client elsewhere.
        redirect: "manual",
        ...(options.body === undefined ? {} : { body: bytes ? options.body : JSON.stringify(options.body) }),
        ...(address.kind === "unix" ? { unix: address.path } : {}),
        // Every peer is on this machine. `false` alone keeps Bun from the proxy of the environment, which would be told the token.
        proxy: false,
        // Waits and streams are quiet for as long as they like; the caller's signal ends them.
        timeout: false,
      } as unknown as RequestInit);
    } catch (error) {
      if (hung.signal.aborted) throw new RelayError("desktop_unavailable", `${placeOf(address)} takes requests, but does not answer`);
      throw error;
    } finally {
      clearInterval(watch);
    }
  }

  /** Look again and again whether the other side lives, until it does not or the interval is cleared. */
  private watch(hung: AbortController): ReturnType<typeof setInterval> | undefined {
    const { liveness } = this.door;
    if (liveness === undefined) return undefined;
    return setInterval(() => {
      const dead = () => hung.abort();
      liveness.probe().then((alive) => (alive ? undefined : dead()), dead);
    }, liveness.everyMs);
  }

  /**
   * @param expected the schema of the answer; members that it does not have are kept
   * @throws as `send`; RelayError link_down when the answer breaks off
   */
  json<S extends v.GenericSchema>(path: string, expected: Expected<S>, options: CallOptions = {}): Promise<v.InferOutput<S>> {
    return this.endable(options, (ended) =>
      this.inTurn(ended, async () => {
        const coming = this.sent(path, ended);
        const check = this.laterChecker(expected);
        return (await this.taken(await coming, check, ended)).answer;
      }),
    );
  }

  /** The same with the head of the answer. */
  async tagged<S extends v.GenericSchema>(
    path: string,
    expected: Expected<S>,
    options: CallOptions = {},
  ): Promise<{ readonly answer: v.InferOutput<S>; readonly headers: Headers }> {
    return this.taken(await this.send(path, options), this.checker(expected), options);
  }

  private async taken<T>(response: Response, check: Promise<(answer: unknown) => T>, { signal }: CallOptions) {
    try {
      const body = await this.document(response);
      return { answer: (await check)(body), headers: response.headers };
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw error;
    }
  }

  /** Messages of an SSE route until it ends or the connection breaks. @throws RelayError answer_malformed, and as `send` */
  async *sse(path: string, options: CallOptions = {}): AsyncGenerator<SseMessage> {
    const response = await this.send(path, { ...options, headers: { ...options.headers, accept: EVENTS } });
    if (response.headers.get("content-type")?.startsWith(EVENTS) !== true) {
      response.body?.cancel().catch(() => undefined);
      throw new RelayError("answer_malformed", `${this.who} gave an answer that is no stream of events`);
    }
    if (response.body === null) return;
    try {
      yield* readSse(response.body);
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      if (error instanceof RangeError)
        throw new RelayError("answer_malformed", `${this.who} gave an answer that is none: ${error.message}`);
    }
  }

  /** The same where the data of each message are JSON. */
  async *messages(path: string, options: CallOptions = {}): AsyncGenerator<{ readonly event: string; readonly data: unknown }> {
    for await (const { event, data } of this.sse(path, options)) yield { event, data: this.parsed(data) };
  }

  private parsed(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      throw new RelayError("answer_malformed", `${this.who} gave an answer that is none: no JSON`);
    }
  }

  /** What tells whether something is of a schema. It throws RelayError answer_malformed; members that the schema does not have are kept. */
  async checker<S extends v.GenericSchema>(expected: Expected<S>): Promise<(answer: unknown) => v.InferOutput<S>> {
    const [{ checkedAnswer }, schema] = await Promise.all([import("./checked-answer.ts"), expected()]);
    return (answer) => checkedAnswer(schema, answer, this.who);
  }

  /** The same, loaded when what was just sent is on its way: that takes milliseconds. */
  private laterChecker<S extends v.GenericSchema>(expected: Expected<S>): Promise<(answer: unknown) => v.InferOutput<S>> {
    const check = new Promise<void>((resolve) => setImmediate(resolve)).then(() => this.checker(expected));
    // Where there is no answer, nobody asks for it.
    check.catch(() => undefined);
    return check;
  }
}

const EVENTS = "text/event-stream";
/** From here on what a runtime's own fetch does with bytes costs more than anything else. */
const LARGE_BYTES = 64 * 1024;

/** As people find it. */
const placeOf = (address: Address): string => (address.kind === "unix" ? address.path : address.url);

/** The failure that a problem document is about; null where it is none, or its reason is not known here and it says nothing of it. */
export function failureOf(body: unknown): RelayError | null {
  const problem = body !== null && typeof body === "object" ? (body as Record<string, unknown>) : {};
  const {
    type: _type,
    title: _title,
    status: _status,
    detail,
    instance: _instance,
    schema_version: _schema,
    retryable: _retryable,
    ...rest
  } = problem;
  const { reason, hint, ...data } = rest;
  if (typeof reason !== "string") return null;
  const said = typeof detail === "string" ? detail : "the relay said no more";
  const advice = typeof hint === "string" ? hint : undefined;
  if (isErrorCode(reason)) return new RelayError(reason, said, data, advice);
  return new RelayError(
    "answer_malformed",
    `the reason of a refusal is not known to this version (${reason.slice(0, 64)}): ${said}`,
    data,
    advice,
  );
}
