import type { AttendedEvent, PromptEvent } from "../../api/desktop/link-views.ts";
import { problemOf } from "../../api/problem.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { newId } from "../../lib/ids.ts";
import type { Attending } from "../../transport/dial.ts";
import type { Prompter } from "../../transport/ssh/prompt.ts";
import { untilAborted } from "../../transport/until-aborted.ts";

/** What work that may need a person gets. */
export interface Attended {
  /** The request that it belongs to: when it ends, the work is given up. */
  readonly attending: Attending;
  readonly prompter: Prompter;
  /** Text for the person; safe for a terminal. */
  notice(text: string): void;
  /** What is being done now. */
  progress(text: string, unfinished?: boolean): void;
  /** How far something long is; tells of each hundredth. */
  transfer(bytes: number, total: number): void;
}

/** Progress and notices that are kept for those who join; more than a bring-up has, and a bound for servers that talk. */
const MAX_EVENTS = 1_000;

/**
 * Work on a cluster that may need a person, as the one who began it and those who joined see it: events in their order, of which the questions are for
 * the first only. It is given up when the first goes away.
 */
export class AttendedRun {
  readonly #events: AttendedEvent[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #questions = new Map<string, PromiseWithResolvers<string>>();
  #hundredth = -1;
  #left = false;
  readonly #abort = new AbortController();
  /** Resolves when the work is over, either way. */
  readonly over: Promise<void>;
  /** Aborted when nobody is there for it any more. */
  readonly givenUp: AbortSignal = this.#abort.signal;

  /** @param work resolves with what those who follow are to see of its result */
  constructor(
    readonly requestedBy: string,
    interactive: boolean,
    work: (attended: Attended) => Promise<unknown>,
    report: (error: unknown) => void,
  ) {
    const attended: Attended = {
      attending: { requestedBy, signal: this.#abort.signal },
      prompter: { ask: (prompt) => (interactive ? this.#ask(prompt) : Promise.reject(nobodyAsked(prompt))) },
      notice: (text) => this.#add({ event: "notice", data: { text } }),
      transfer: (bytes, total) => this.#transfer(bytes, total),
      progress: (text, unfinished = false) => this.#add({ event: "progress", data: { text, ...(unfinished ? { unfinished } : {}) } }),
    };
    this.over = this.#run(() => work(attended), report);
  }

  async #run(work: () => Promise<unknown>, report: (error: unknown) => void): Promise<void> {
    const working = work();
    try {
      // Whoever follows is not kept by what may still have to be put in order.
      this.#end({ event: "done", data: await untilAborted(working, this.givenUp) });
    } catch (error) {
      if (!isRelayError(error)) report(error);
      this.#end({ event: "failed", data: { ...problemOf(error) } });
    }
    await working.catch(() => undefined);
  }

  #end(event: AttendedEvent): void {
    for (const question of this.#questions.values()) question.reject(new RelayError("prompt_cancelled", "the question is no longer open"));
    this.#questions.clear();
    this.#events.push(event);
    this.#tell();
  }

  #add(event: AttendedEvent): void {
    if (this.#events.length >= MAX_EVENTS && event.event !== "prompt") return;
    this.#events.push(event);
    this.#tell();
  }

  #transfer(bytes: number, total: number): void {
    const hundredth = total === 0 ? 100 : Math.floor((bytes / total) * 100);
    if (hundredth === this.#hundredth) return;
    this.#hundredth = hundredth;
    this.#add({ event: "transfer", data: { bytes, total } });
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  async #ask(prompt: Omit<PromptEvent, "id">): Promise<string> {
    const id = newId("prompt");
    const question = Promise.withResolvers<string>();
    this.#questions.set(id, question);
    const { kind, message, echo, host } = prompt;
    this.#add({ event: "prompt", data: { id, kind, message, echo, host } });
    return question.promise;
  }

  /** @param answer null: the person does not want to. @returns false when there is no such question, or no longer */
  answer(id: string, answer: string | null): boolean {
    const question = this.#questions.get(id);
    if (question === undefined) return false;
    this.#questions.delete(id);
    if (answer === null) question.reject(new RelayError("prompt_cancelled", "the question was not answered"));
    else question.resolve(answer);
    return true;
  }

  /** Whether it was given up because the one who began went away. */
  get wasLeft(): boolean {
    return this.#left;
  }

  /** The one who began has gone away. */
  leave(): void {
    if (!this.givenUp.aborted) this.#left = true;
    this.giveUp(new RelayError("prompt_cancelled", `${this.requestedBy} ended before it was done`));
  }

  /** Nobody is to wait for it any more. */
  giveUp(why: RelayError): void {
    this.#abort.abort(why);
    for (const id of [...this.#questions.keys()]) this.answer(id, null);
  }

  /** Events from the beginning. Null: it is over. */
  at(index: number): AttendedEvent | null | undefined {
    const event = this.#events[index];
    if (event !== undefined) return event;
    const last = this.#events.at(-1)?.event;
    return last === "done" || last === "failed" ? null : undefined;
  }

  /** Be told of every new event. Returns the way to stop it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

const nobodyAsked = ({ host, kind }: Omit<PromptEvent, "id">): RelayError =>
  new RelayError(
    "authorization_required",
    `${host} asks for something (${kind.replaceAll("_", " ")}), and there is nobody at a terminal to answer`,
    { host, kind },
    "give the command a terminal to ask on, and no --no-input; or a key of the agent or without passphrase, and the host's key in known_hosts",
  );
