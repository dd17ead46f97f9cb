import { within } from "../../lib/waiting/within.ts";

/** Characters that may wait for the client before no more of its requests are read. */
const WAITING = 1024 * 1024;
/** A client for which more than that waits, and that takes nothing of it for so long, is gone. In milliseconds. */
const SILENT_MS = 60_000;
/** The same, when it has nothing more to ask for. */
const LAST_MS = 5_000;

/** What is said to one client, in order. It may read slowly, or not at all: what waits for it is bounded by how much of what it asks for is read meanwhile. */
export class Outgoing {
  #turn: Promise<void> = Promise.resolve();
  #waiting = 0;
  /** Resolves with the next message that is with the system, or when there is none to come. */
  #next = Promise.withResolvers<void>();
  #silent: ReturnType<typeof setTimeout> | null = null;
  #over = false;

  /**
   * @param write resolves when the text is with the system
   * @param failed told once of a client that is gone, or cannot be written to; nothing is written after that
   */
  constructor(
    private readonly write: (text: string) => Promise<void>,
    private readonly failed: (error: unknown) => void,
    private readonly silentMs = SILENT_MS,
  ) {}

  /** Resolves when the message is with the system; at once, where it never will be. */
  send(message: object): Promise<void> {
    if (this.#over) return Promise.resolve();
    const text = `${JSON.stringify(message)}\n`;
    this.#waiting += text.length;
    this.#watch();
    this.#turn = this.#turn.then(() => this.#put(text));
    return this.#turn;
  }

  async #put(text: string): Promise<void> {
    if (this.#over) return;
    try {
      await this.write(text);
    } catch (error) {
      this.#fail(error);
    }
    this.#waiting -= text.length;
    clearTimeout(this.#silent ?? undefined);
    this.#silent = null;
    this.#watch();
    this.#told();
  }

  #watch(): void {
    if (this.#silent !== null || this.#over || this.#waiting <= WAITING) return;
    this.#silent = setTimeout(() => this.#fail(new Error("the client takes nothing of what it asked for")), this.silentMs);
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    this.close();
    this.failed(error);
  }

  #told(): void {
    const { resolve } = this.#next;
    this.#next = Promise.withResolvers();
    resolve();
  }

  /** Resolves when there is room for further answers, or there will be none. */
  async room(): Promise<void> {
    while (!this.#over && this.#waiting > WAITING) await this.#next.promise;
  }

  /** Resolves when all of it is with the system, or the client takes no more. */
  async settled(): Promise<void> {
    while (!this.#over && this.#waiting > 0) if (!(await within(this.#next.promise, LAST_MS))) return;
  }

  close(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#silent ?? undefined);
    this.#told();
  }
}
