import type { AttendedEvent, AttendedRequest, PromptEvent } from "../../api/desktop/link-views.ts";
import { isRelayError } from "../../domain/errors.ts";
import { safeText } from "../../lib/text/safe-text.ts";
import { interruptible } from "../follow/interrupt.ts";
import type { CliIo } from "../io.ts";
import { bytesText } from "../print/quantities.ts";
import { overwrites } from "../print/style.ts";
import type { Call } from "../verb.ts";
import { Person } from "./person.ts";
import { attendedRequest } from "./request.ts";

export interface Attending<T> {
  readonly cluster: string;
  /** The command line without the program's name. */
  readonly command: string;
  /** What is to be known by whoever gives it up. */
  readonly givenUp?: string;
  readonly start: (request: AttendedRequest, signal: AbortSignal) => AsyncGenerator<AttendedEvent, T>;
}

/**
 * Do something for which the daemon may need the person at this command's terminal: its questions are asked there, wherever standard input and output lead.
 * What happens is said on standard error. Ctrl-C gives it up.
 *
 * @returns the result
 */
export async function attend<T>(
  { io, relay, noInput }: Pick<Call, "io" | "relay" | "noInput">,
  { cluster, command, start, givenUp }: Attending<T>,
): Promise<T> {
  const terminal = noInput ? null : await io.terminal();
  const person = terminal === null ? null : new Person(io, terminal);
  try {
    return await interruptible(
      io,
      () => (givenUp === undefined ? "given up" : `given up; ${givenUp}`),
      async (signal) => {
        const stop = new AbortController();
        const ending = AbortSignal.any([signal, stop.signal]);
        const ask = async (prompt: PromptEvent): Promise<void> => {
          const text = person === null ? null : await person.ask(prompt, ending);
          await relay.desktop.answerPrompt(cluster, prompt.id, text).catch((error: unknown) => {
            // Nobody waits for it any more: what follows says why.
            if (!isRelayError(error, "not_found")) throw error;
          });
        };
        try {
          return await follow(io, start(attendedRequest(io, command, person !== null), ending), (prompt) => {
            ask(prompt).catch((error: unknown) => stop.abort(error));
          });
        } finally {
          // Questions that are still open are no longer.
          stop.abort();
        }
      },
    );
  } finally {
    terminal?.close();
  }
}

/** Says what happens on standard error; how far something is takes a line of a terminal, which is written over. */
class Told {
  #open = false;

  constructor(private readonly io: Pick<CliIo, "stderr" | "env">) {}

  async say(message: AttendedEvent): Promise<void> {
    const { stderr } = this.io;
    switch (message.event) {
      case "notice":
        return this.#line(safeText(message.data.text).trimEnd());
      case "joined":
        return this.#line(`notice: ${safeText(message.data.requested_by)} does so already; this is what happens there`);
      case "progress":
        // A program that reads standard error has no use for every step.
        if (!stderr.isTerminal) return;
        if (message.data.unfinished !== true) return this.#line(safeText(message.data.text));
        if (!overwrites(stderr, this.io.env)) return;
        await stderr.write(`${this.#open ? "\r\x1b[K" : ""}${safeText(message.data.text)}`);
        this.#open = true;
        return;
      case "transfer": {
        if (!overwrites(stderr, this.io.env)) return;
        const { bytes, total } = message.data;
        this.#open = true;
        await stderr.write(`\r\x1b[K${bytesText(bytes)} of ${bytesText(total)}`);
      }
    }
  }

  /** Whatever else is written begins on a line of its own. */
  async close(): Promise<void> {
    if (this.#open) await this.io.stderr.write("\n");
    this.#open = false;
  }

  async #line(text: string): Promise<void> {
    await this.io.stderr.write(`${this.#open ? "\r\x1b[K" : ""}${text}\n`);
    this.#open = false;
  }
}

async function follow<T>(io: CliIo, events: AsyncGenerator<AttendedEvent, T>, ask: (prompt: PromptEvent) => void): Promise<T> {
  const told = new Told(io);
  try {
    for (;;) {
      const next = await events.next();
      if (next.done) return next.value;
      if (next.value.event === "prompt") {
        await told.close();
        ask(next.value.data);
      } else await told.say(next.value);
    }
  } finally {
    await told.close();
  }
}
