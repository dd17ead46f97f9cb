import fs from "node:fs";
import path from "node:path";
import { EXECUTABLE } from "../../runner/relay.ts";
import { eventually } from "../../runner/wait.ts";
import type { SourceRelay } from "../source-relay.ts";

const PROMPT = "READY> ";
export type Shell = "bash" | "zsh" | "fish";

const START: Readonly<
  Record<Shell, { readonly command: readonly string[]; readonly file: string; readonly text: (more: string) => string }>
> = {
  bash: { command: ["bash", "--noprofile", "-i"], file: ".bashrc", text: (more) => `PS1='${PROMPT}'\n${more}\n` },
  zsh: { command: ["zsh", "-i"], file: ".zshrc", text: (more) => `PS1='${PROMPT}'\nautoload -Uz compinit; compinit -u -D\n${more}\n` },
  fish: {
    command: ["fish", "-i"],
    file: ".config/fish/config.fish",
    text: (more) => `function fish_prompt; echo -n '${PROMPT}'; end\nset -g fish_greeting\n${more}\n`,
  },
};

/**
 * A shell on a terminal of its own, where `clio-relay` is a program that answers completions as the real one does, and writes down the words of every other call instead of running it: what
 * the shell has made of what was typed.
 */
export class ShellSession implements AsyncDisposable {
  readonly #directory: string;
  readonly #record: string;
  readonly #terminal: Bun.Terminal;
  readonly #child: Bun.Subprocess;
  #shown = "";

  /**
   * @param directory where it stands, and where its things lie
   * @param more what its start file has besides
   */
  constructor(shell: Shell, relay: Pick<SourceRelay, "environment">, directory: string, more: string) {
    this.#directory = directory;
    this.#record = path.join(directory, ".record");
    const bin = path.join(directory, ".bin");
    const home = path.join(directory, ".home");
    fs.mkdirSync(bin, { recursive: true });
    const script = `#!/bin/sh\nif [ "$1" = __complete ]; then exec '${EXECUTABLE}' "$@"; fi\nprintf '%s\\0' "$@" > '${this.#record}.new'; mv '${this.#record}.new' '${this.#record}'\n`;
    fs.writeFileSync(path.join(bin, "clio-relay"), script, { mode: 0o755 });
    const { command, file, text } = START[shell];
    fs.mkdirSync(path.dirname(path.join(home, file)), { recursive: true });
    fs.writeFileSync(path.join(home, file), text(more));
    const { environment } = relay;
    const decoder = new TextDecoder();
    this.#terminal = new Bun.Terminal({
      cols: 160,
      rows: 50,
      data: (_, bytes) => {
        this.#shown += decoder.decode(bytes, { stream: true });
      },
    });
    this.#child = Bun.spawn(["setsid", "--ctty", "--wait", ...command], {
      terminal: this.#terminal,
      cwd: directory,
      env: {
        ...environment,
        PATH: `${bin}:${environment["PATH"]}`,
        HOME: home,
        ZDOTDIR: home,
        XDG_CONFIG_HOME: path.join(home, ".config"),
        TERM: "xterm",
      },
    });
  }

  /** Everything that was on the screen since the last line. */
  get shown(): string {
    return this.#shown;
  }

  ready(): Promise<unknown> {
    return eventually(() => this.#shown.includes(PROMPT), { what: "a prompt" });
  }

  press(keys: string): void {
    this.#terminal.write(keys);
  }

  /** Type a line, with tabs in it, and enter it; the words that `clio-relay` then got. */
  async enter(line: string): Promise<string[]> {
    fs.rmSync(this.#record, { force: true });
    this.#shown = "";
    this.press(`${line}\r`);
    await eventually(() => fs.existsSync(this.#record), {
      what: `${JSON.stringify(line)} (${JSON.stringify(this.#shown)})`,
    });
    await eventually(() => this.#shown.includes(PROMPT));
    return fs.readFileSync(this.#record, "utf8").split("\0").slice(0, -1);
  }

  /** What is in its directory, but for what makes the session. */
  files(): string[] {
    return fs.readdirSync(this.#directory).filter((name) => !name.startsWith("."));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    this.#terminal.close();
    await this.#child.exited;
  }
}
