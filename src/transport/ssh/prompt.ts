import { RelayError } from "../../domain/errors.ts";
import { safeText } from "../../lib/text/safe-text.ts";

/** A question to the person who asked for the connection. */
export interface Prompt {
  readonly kind: "host_key" | "passphrase" | "password" | "keyboard_interactive";
  /** Text to show; whatever a server said in it obeys no terminal any more. May have several lines. */
  readonly message: string;
  /** Whether the answer may be shown while it is typed. */
  readonly echo: boolean;
  /** Who asks: `user@host`. */
  readonly host: string;
}

/** Whoever can be asked. */
export interface Prompter {
  /**
   * @throws RelayError authorization_required when nobody is there to answer; prompt_cancelled when the person does not want to
   */
  ask(prompt: Prompt): Promise<string>;
}

/** Bound on each text of a server in a prompt, in characters. */
const MAX_TEXT = 4_096;
/** Bound on an answer, in characters. */
const MAX_ANSWER = 4_096;

/** A server's text for people: bounded, control characters made visible, lines ended by line feeds. */
export function serverText(text: string): string {
  const cut = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
  return safeText(cut.replaceAll("\r\n", "\n").replaceAll("\r", "\n"));
}

/** A prompter for a configuration that says BatchMode: nobody is asked. */
export const NOBODY: Prompter = {
  ask: ({ host, kind }) =>
    Promise.reject(
      new RelayError("authorization_required", `${host} asks for something (${kind.replace("_", " ")}), and nobody may be asked`, {
        host,
        kind,
      }),
    ),
};

/** Ask, within bounds. @throws RelayError as the prompter does; prompt_cancelled for an answer that is too long to be one */
export async function ask(prompter: Prompter, prompt: Prompt): Promise<string> {
  const answer = await prompter.ask(prompt);
  if (answer.length > MAX_ANSWER || answer.includes("\0")) {
    throw new RelayError("prompt_cancelled", `an answer has more than ${MAX_ANSWER} characters, or one that is none`, {
      host: prompt.host,
    });
  }
  return answer;
}
