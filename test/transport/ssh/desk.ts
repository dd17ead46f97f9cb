import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { Ledger } from "../../../src/transport/ledger.ts";
import { connectSsh, type SshConnection } from "../../../src/transport/ssh/connect.ts";
import type { Prompt, Prompter } from "../../../src/transport/ssh/prompt.ts";
import type { SshRequest } from "../../../src/transport/ssh/request.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { thisAccount } from "./this-account.ts";

/** What a person answers: by the prompt's text, or by its kind. Undefined: they go away. */
export type Answers = (prompt: Prompt) => string | undefined;

/** Somebody who sees prompts and answers them. */
export class Person implements Prompter {
  readonly seen: Prompt[] = [];

  constructor(private readonly answers: Answers) {}

  ask(prompt: Prompt): Promise<string> {
    this.seen.push(prompt);
    const answer = this.answers(prompt);
    return answer === undefined ? Promise.reject(new RelayError("prompt_cancelled", "the person went away")) : Promise.resolve(answer);
  }

  get kinds(): string[] {
    return this.seen.map(({ kind }) => kind);
  }
}

export const noQuestions: Answers = (prompt) => {
  throw new Error(`nothing should be asked, and this was: ${prompt.message}`);
};

/** A desktop with an ssh configuration, a known_hosts file and a ledger of its own. */
export class Desk implements Disposable {
  readonly #directory = temporaryDirectory();
  readonly notices: string[] = [];
  readonly ledger: Ledger;

  constructor() {
    this.ledger = new Ledger(this.file("ledger"), systemClock);
  }

  get directory(): string {
    return this.#directory.path;
  }

  file(name: string): string {
    return path.join(this.directory, name);
  }

  get knownHosts(): string {
    return fs.existsSync(this.file("known_hosts")) ? fs.readFileSync(this.file("known_hosts"), "utf8") : "";
  }

  know(text: string): void {
    fs.writeFileSync(this.file("known_hosts"), text, { mode: 0o600 });
  }

  /** Write the ssh configuration. Every host knows this desk's known_hosts and no other keys than it says. */
  configure(...lines: readonly string[]): void {
    const all = [
      "Host *",
      `  UserKnownHostsFile ${this.file("known_hosts")}`,
      "  GlobalKnownHostsFile /dev/null",
      "  IdentityFile none",
      "  IdentityAgent none",
    ];
    fs.writeFileSync(this.file("config"), `${[...lines, ...all].join("\n")}\n`, { mode: 0o600 });
  }

  request(prompter: Prompter, more: Partial<SshRequest> = {}): SshRequest {
    return {
      entry: { cluster: "rig", host: "login", hostKeyPins: [] },
      purpose: "connect",
      attending: { requestedBy: "clio-relay connect rig", signal: new AbortController().signal },
      prompter,
      keyRing: new Map(),
      ledger: this.ledger,
      config: {
        account: thisAccount(),
        sshProgram: "ssh",
        configFile: this.file("config"),
        variables: { PATH: process.env["PATH"], HOME: this.directory, SHELL: "/bin/sh" },
        directory: this.directory,
      },
      agentSocket: null,
      notice: (text) => this.notices.push(text),
      ...more,
    };
  }

  /** Connect, and close when the test is over: `await using link = await desk.connect(…)`. */
  async connect(prompter: Prompter, more: Partial<SshRequest> = {}): Promise<SshConnection & AsyncDisposable> {
    const connection = await connectSsh(this.request(prompter, more));
    return {
      ...connection,
      async [Symbol.asyncDispose]() {
        connection.session.close();
        await connection.session.closed;
      },
    };
  }

  /** The error that connecting ends with. */
  async refusal(prompter: Prompter, more: Partial<SshRequest> = {}): Promise<RelayError> {
    try {
      const { session } = await connectSsh(this.request(prompter, more));
      session.close();
    } catch (error) {
      if (error instanceof RelayError) return error;
      throw error;
    }
    throw new Error("it was let in");
  }

  [Symbol.dispose](): void {
    this.#directory[Symbol.dispose]();
  }
}

/** Run a command on a connection; what it printed. */
export async function output({ session }: Pick<SshConnection, "session">, command: string): Promise<string> {
  const channel = await session.exec(command);
  channel.stderr.resume();
  channel.stream.end();
  const chunks: Buffer[] = [];
  for await (const chunk of channel.stream) chunks.push(chunk as Buffer);
  await channel.exited;
  return Buffer.concat(chunks).toString("utf8");
}
