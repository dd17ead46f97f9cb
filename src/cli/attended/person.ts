import type { PromptEvent } from "../../api/desktop/link-views.ts";
import { safeText } from "../../lib/text/safe-text.ts";
import { Interrupted } from "../failure.ts";
import type { CliIo, Terminal } from "../io.ts";

/** The person at the terminal of this command. */
export class Person {
  #asking: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly io: Pick<CliIo, "onSignal" | "stopSelf">,
    private readonly terminal: Terminal,
  ) {}

  /**
   * Ask, after the questions that are still open. Null: they do not want to answer. What is not to be seen is not shown while it is typed, and whatever
   * ends the question, a signal included, puts the terminal back to how it was.
   *
   * @throws the signal's reason; Interrupted by SIGHUP and SIGQUIT
   */
  ask(prompt: Pick<PromptEvent, "message" | "echo">, signal: AbortSignal): Promise<string | null> {
    const answer = this.#asking.then(() => this.#ask(prompt, signal));
    this.#asking = answer.catch(() => undefined);
    return answer;
  }

  async #ask({ message, echo }: Pick<PromptEvent, "message" | "echo">, signal: AbortSignal): Promise<string | null> {
    signal.throwIfAborted();
    const { terminal, io } = this;
    const ended = new AbortController();
    const ending = AbortSignal.any([signal, ended.signal]);
    const begin = (): void => {
      terminal.setEcho(echo);
      terminal.write(safeText(message));
    };
    const end = (): void => ended.abort(new Interrupted());
    const off = [
      io.onSignal("SIGHUP", end),
      io.onSignal("SIGQUIT", end),
      io.onSignal("SIGTSTP", () => {
        terminal.setEcho(true);
        // Goes on here when somebody lets it (fg).
        io.stopSelf();
        begin();
      }),
    ];
    try {
      begin();
      const answer = await terminal.line(ending);
      if (!echo || answer === null) terminal.write("\n");
      return answer;
    } finally {
      for (const remove of off) remove();
      terminal.setEcho(true);
    }
  }
}
