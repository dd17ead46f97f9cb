import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import * as v from "valibot";
import { shellWord } from "../../script/shell-word.ts";
import { ask, type Prompter, serverText } from "../prompt.ts";
import { questionKind } from "./said.ts";

const Question = v.strictObject({ prompt: v.string(), hint: v.string() });
/** Longest question, its JSON included. */
const MAX_BYTES = 64 * 1024;
/** Questions of one connection, so that no server asks for ever. */
const MAX_QUESTIONS = 64;

export interface AskpassOptions {
  /** A directory of the user's alone, for the socket and the program. */
  readonly directory: string;
  /** What starts `runAskpass`: the executable and its hidden verb. */
  readonly command: readonly string[];
  readonly prompter: Prompter;
  /** `user@host`, for the prompts. */
  readonly host: string;
  /** Told what a person should see that is no question. */
  readonly notice: (text: string) => void;
  /** Somebody did not answer; nothing more is asked. */
  readonly failed: (error: unknown) => void;
}

/** Brings ssh's questions to a person. */
export class AskpassServer {
  /** For SSH_ASKPASS. */
  readonly program: string;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  readonly #passphrases = new Map<string, number>();
  #questions = 0;
  #over = false;

  private constructor(
    private readonly options: AskpassOptions,
    server: net.Server,
  ) {
    this.#server = server;
    this.program = path.join(options.directory, "askpass");
    server.on("connection", (socket) => this.#serve(socket));
  }

  static async start(options: AskpassOptions): Promise<AskpassServer> {
    const socket = path.join(options.directory, "s");
    const server = net.createServer();
    const askpass = new AskpassServer(options, server);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ path: socket }, resolve);
    });
    fs.chmodSync(socket, 0o600);
    // ssh starts the program with one argument, the question.
    const words = [...options.command, socket].map(shellWord).join(" ");
    fs.writeFileSync(askpass.program, `#!/bin/sh\nexec ${words} "\${SSH_ASKPASS_PROMPT-}" "$1"\n`, { mode: 0o700 });
    return askpass;
  }

  #serve(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => undefined);
    socket.setEncoding("utf8");
    let text = "";
    socket.on("data", (chunk: string) => {
      text += chunk;
      const end = text.indexOf("\n");
      if (end < 0 && text.length <= MAX_BYTES) return;
      socket.removeAllListeners("data");
      if (end < 0) socket.destroy();
      else this.#answer(text.slice(0, end), socket).catch(() => socket.destroy());
    });
  }

  async #answer(line: string, socket: net.Socket): Promise<void> {
    const { prompt, hint } = v.parse(Question, JSON.parse(line));
    const { prompter, host, notice, failed } = this.options;
    // Nothing is to be typed (`touch the key`): ssh ends the program when it is done with it.
    if (hint === "none") {
      notice(serverText(prompt));
      return;
    }
    if (this.#over || ++this.#questions > MAX_QUESTIONS) {
      socket.destroy();
      return;
    }
    let answer: string | null = null;
    try {
      const kind = questionKind(prompt);
      // ssh does not say whether the answer may be seen.
      answer = await ask(prompter, { kind, message: serverText(prompt), echo: false, host });
      if (kind === "passphrase" && answer !== "") this.#passphrases.set(prompt, (this.#passphrases.get(prompt) ?? 0) + 1);
    } catch (error) {
      this.#over = true;
      failed(error);
    }
    socket.end(`${JSON.stringify({ answer })}\n`);
  }

  /** How many passphrases were given for one key at most. */
  get passphrases(): number {
    return Math.max(0, ...this.#passphrases.values());
  }

  close(): void {
    this.#over = true;
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
