import { RelayError } from "../../domain/errors.ts";
import type { Authenticate, AuthenticationState, AuthenticationStep, Questions } from "../session/authentication.ts";
import { ask, serverText } from "./prompt.ts";
import { type KeyAttempt, type KeySources, keyAttempts } from "./public-keys.ts";

/** How many rounds of questions one attempt may have, so that no server asks for ever. */
const MAX_ROUNDS = 16;

/** Proves to one server who the user is, with the methods of its target in their order. Answers are used once and not kept. */
export class Login {
  readonly #tried: string[] = [];
  readonly #skipped: string[] = [];
  #keys: KeyAttempt[] | null = null;
  /** Whether a proof was accepted already, as one of several. */
  #accepted = false;
  #passwords = 0;
  #conversations = 0;
  /** Whether the last conversation asked for anything; one that did not will not do so the next time. */
  #asked = true;

  constructor(private readonly sources: KeySources) {}

  readonly authenticate: Authenticate = async (state) => {
    this.#accepted ||= state.partialSuccess;
    if (state.methods === null) return { method: "none" };
    for (const method of this.sources.target.methods) {
      if (!state.methods.includes(method)) continue;
      const step = await this.#next(method);
      if (step !== null) return step;
    }
    throw this.failure(state);
  };

  /** What the person is told when nothing let them in. */
  failure({ methods }: Pick<AuthenticationState, "methods">, cause?: unknown): RelayError {
    const { user, host } = this.sources.target;
    const taken = (methods ?? []).map(serverText);
    const tried = this.#tried.length === 0 ? "there was nothing to try" : `tried: ${this.#tried.join(", ")}`;
    const further = this.#accepted ? ", and a further proof is wanted" : "";
    const elsewhere = taken.some((method) => /^(?:gssapi|hostbased)/.test(method));
    return new RelayError(
      "authentication_failed",
      `${user}@${host} was not let in${further}; ${tried}${taken.length === 0 ? "" : `; the server takes ${taken.join(", ")}`}`,
      { host, user, methods: taken, tried: this.#tried, skipped: this.#skipped },
      elsewhere ? 'ssh_client = "openssh" for the cluster has gssapi and hostbased' : this.#skipped[0],
      { cause },
    );
  }

  async #next(method: "publickey" | "keyboard-interactive" | "password"): Promise<AuthenticationStep | null> {
    switch (method) {
      case "publickey":
        return this.#key();
      case "password":
        return this.#password();
      case "keyboard-interactive":
        return this.#conversation();
    }
  }

  async #key(): Promise<AuthenticationStep | null> {
    if (this.#keys === null) {
      const { attempts, skipped } = await keyAttempts(this.sources);
      this.#keys = [...attempts];
      this.#skipped.push(...skipped);
    }
    for (let attempt = this.#keys.shift(); attempt !== undefined; attempt = this.#keys.shift()) {
      const step = await attempt.step();
      if (step === null) continue;
      this.#tried.push(attempt.what);
      return step;
    }
    return null;
  }

  get #host(): string {
    return `${this.sources.target.user}@${this.sources.target.host}`;
  }

  async #password(): Promise<AuthenticationStep | null> {
    if (this.#passwords >= this.sources.target.passwordPrompts) return null;
    const again = this.#passwords++ === 0 ? "" : "That was not accepted.\n";
    const message = `${again}${this.#host}'s password: `;
    const password = await ask(this.sources.prompter, { kind: "password", message, echo: false, host: this.#host });
    this.#note("password");
    return { method: "password", password };
  }

  #conversation(): AuthenticationStep | null {
    if (this.#conversations >= this.sources.target.passwordPrompts || !this.#asked) return null;
    const again = this.#conversations++ > 0;
    this.#asked = false;
    this.#note("keyboard-interactive");
    let rounds = 0;
    let unsaid = again ? "That was not accepted.\n" : "";
    return {
      method: "keyboard-interactive",
      answer: async (questions) => {
        if (++rounds > MAX_ROUNDS) {
          throw new RelayError("authentication_failed", `${this.#host} asked more than ${MAX_ROUNDS} rounds of questions`, {
            host: this.#host,
          });
        }
        const said = `${unsaid}${introduction(questions)}`;
        // Information without a question is shown with the next one.
        unsaid = questions.prompts.length === 0 ? said : "";
        const answers: string[] = [];
        for (const { text, echo } of questions.prompts) {
          this.#asked = true;
          const message = `${answers.length === 0 ? said : ""}${serverText(text)}`;
          answers.push(await ask(this.sources.prompter, { kind: "keyboard_interactive", message, echo, host: this.#host }));
        }
        return answers;
      },
    };
  }

  #note(method: string): void {
    if (!this.#tried.includes(method)) this.#tried.push(method);
  }
}

function introduction({ name, instructions }: Questions): string {
  return [name, instructions]
    .filter((text) => text.trim() !== "")
    .map((text) => `${serverText(text).trimEnd()}\n`)
    .join("");
}
