import { type AnyAuthMethod, BaseAgent, OpenSSHAgent, type ParsedKey, type SignCallback, type SigningRequestOptions } from "ssh2";
import type { AuthenticationStep, Questions, Signer } from "./authentication.ts";
import type { Patience } from "./patience.ts";

/** Bounds on what a server asks in one round, so that a hostile one fills no terminal. */
const MAX_PROMPTS = 32;
const MAX_TEXT = 16 * 1024;

/** Our side's doing while the server waits. */
export interface Turn {
  readonly patience: Patience;
  /** Ends the session with this error. */
  fail(error: unknown): void;
}

/** A step in ssh2's words. */
export function methodOf(user: string, step: AuthenticationStep, turn: Turn): AnyAuthMethod {
  switch (step.method) {
    case "none":
      return { type: "none", username: user };
    case "password":
      return { type: "password", username: user, password: step.password };
    case "keyboard-interactive":
      return {
        type: "keyboard-interactive",
        username: user,
        prompt: (name, instructions, _language, prompts, finish) => {
          const texts = [name, instructions, ...prompts.map(({ prompt }) => prompt)];
          if (prompts.length > MAX_PROMPTS || texts.some((text) => text.length > MAX_TEXT)) {
            turn.fail(new RangeError(`the server asks for ${prompts.length} answers at once, or in more than ${MAX_TEXT} characters`));
            return;
          }
          const questions: Questions = {
            name,
            instructions,
            prompts: prompts.map(({ prompt, echo }) => ({ text: prompt, echo: echo === true })),
          };
          turn.patience.pause();
          step
            .answer(questions)
            // No answers at all are a wrong answer, after which the next step is asked for.
            .then((answers) => finish([...(answers ?? [])]))
            .catch(turn.fail)
            .finally(() => turn.patience.resume());
        },
      };
    case "publickey":
      if ("agent" in step) return { type: "agent", username: user, agent: new ChosenKeys(step.agent, step.only) };
      if ("signer" in step) return { type: "agent", username: user, agent: new OneSigner(step.signer, turn) };
      return {
        type: "publickey",
        username: user,
        key: step.key,
        ...(step.passphrase === undefined ? {} : { passphrase: step.passphrase }),
      };
  }
}

/** An agent of which some keys are to be tried, in the order that was asked for. */
class ChosenKeys extends OpenSSHAgent {
  constructor(
    socket: string,
    private readonly only: readonly Buffer[] | undefined,
  ) {
    super(socket);
  }

  override getIdentities(callback: (error?: Error | null, keys?: ParsedKey[]) => void): void {
    super.getIdentities((error, keys) => {
      const { only } = this;
      const all = (keys ?? []) as ParsedKey[];
      if (error || only === undefined) callback(error, all);
      else
        callback(
          null,
          only.flatMap((wanted) => all.filter((key) => key.getPublicSSH().equals(wanted))),
        );
    });
  }
}

class OneSigner extends BaseAgent<Buffer> {
  constructor(
    private readonly signer: Signer,
    private readonly turn: Turn,
  ) {
    super();
  }

  getIdentities(callback: (error?: Error | null, keys?: Buffer[]) => void): void {
    callback(null, [Buffer.from(publicKeyLine(this.signer.publicKey))]);
  }

  sign(_key: Buffer, data: Buffer, options: SigningRequestOptions | SignCallback, callback?: SignCallback): void {
    const done = typeof options === "function" ? options : callback;
    const hash = typeof options === "function" ? undefined : options.hash;
    this.turn.patience.pause();
    this.signer
      .sign(data, hash === "sha1" ? undefined : hash)
      .then((signature) => (signature === null ? done?.(new Error("passed over")) : done?.(null, signature)))
      .catch(this.turn.fail)
      .finally(() => this.turn.patience.resume());
  }
}

/** A public key in the format of RFC 4253, section 6.6 as a line of authorized_keys. */
const publicKeyLine = (key: Buffer): string => `${key.toString("latin1", 4, 4 + key.readUInt32BE(0))} ${key.toString("base64")}`;
