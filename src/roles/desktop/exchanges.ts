import { AnswerParser } from "../../transport/http/answer-parser.ts";
import { closesAfter } from "../../transport/http/head.ts";
import { isFramed, type RequestHead, requestHead } from "../sockets/request-head.ts";

const NOTHING = Buffer.alloc(0);

/**
 * Reads along what both sides of a connection of HTTP/1.1 say (RFC 9112), to know when it is between two requests. Whatever is not one request after the other, each with an
 * end that can be told beforehand, makes it unknown for good: chunked bodies, other protocols, requests that are sent ahead.
 */
export class Exchanges {
  /** What is there of the next request's head. */
  #head: Buffer = NOTHING;
  /** Bytes of the request's body that are still to come. */
  #left = 0;
  /** Of a request that has not been answered. */
  #answer: AnswerParser | null = null;
  #known = true;

  /** Whether every request that came has its answer, and of the next one nothing has come. */
  get resting(): boolean {
    return this.#known && this.#answer === null && this.#left === 0 && this.#head.length === 0;
  }

  /** The client has said this. */
  asked(chunk: Buffer): void {
    if (!this.#known) return;
    const body = Math.min(this.#left, chunk.length);
    this.#left -= body;
    const rest = chunk.subarray(body);
    if (rest.length === 0) return;
    if (this.#answer === null) this.#begin(rest);
    else this.#lose();
  }

  #begin(bytes: Buffer): void {
    this.#head = Buffer.concat([this.#head, bytes]);
    const head = requestHead(this.#head);
    if (head === null) return;
    const left = head === "malformed" ? null : bodyLength(head);
    if (head === "malformed" || left === null || this.#head.length > head.length + left) {
      this.#lose();
      return;
    }
    this.#left = head.length + left - this.#head.length;
    this.#head = NOTHING;
    this.#answer = new AnswerParser(head.method, false, {
      head: (answer) => {
        if (closesAfter(answer)) this.#lose();
      },
      data: () => undefined,
      end: (rest) => {
        this.#answer = null;
        if (rest.length > 0) this.#lose();
      },
    });
  }

  /** The server has said this. */
  answered(chunk: Buffer): void {
    if (!this.#known) return;
    try {
      if (this.#answer === null) this.#lose();
      else this.#answer.push(chunk);
    } catch {
      this.#lose();
    }
  }

  #lose(): void {
    this.#known = false;
    this.#answer = null;
    this.#head = NOTHING;
  }
}

/** Bytes of a request's body, where the head says that; null where it does not, or asks for another protocol. */
function bodyLength(head: RequestHead): number | null {
  const { fields } = head;
  return isFramed(head) && !fields.has("transfer-encoding") && !fields.has("upgrade") ? Number(fields.get("content-length") ?? 0) : null;
}
