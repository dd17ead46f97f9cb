import { type ChildProcess, spawn } from "node:child_process";
import { Duplex, type Readable } from "node:stream";
import type { ExecChannel, Session } from "../../../src/transport/session/session.ts";

/** Shells that may stand behind /bin/sh, with how each is asked to be one. */
export const SHELLS = {
  dash: ["dash"],
  bash: ["bash", "--posix"],
  busybox: ["busybox", "ash"],
  ksh: ["ksh"],
  mksh: ["mksh"],
  zsh: ["zsh", "--emulate", "sh"],
} as const satisfies Record<string, readonly [string, ...string[]]>;

export interface ShellHost {
  readonly home: string;
  /** What `/bin/sh` of the commands is run with; the machine's own when left out. */
  readonly shell?: readonly [string, ...string[]];
  readonly path?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What a login shell would print before it runs the command. */
  readonly preamble?: string;
  /** Called with each command. */
  readonly onExec?: (command: string) => void;
}

/** An account on this machine that commands are run for as sshd does it, without an sshd: another home, an empty environment, pipes. */
export function shellHost(host: ShellHost): Pick<Session, "exec"> & { readonly running: ReadonlySet<ChildProcess> } {
  const running = new Set<ChildProcess>();
  return {
    running,
    exec: async (command, signal) => {
      signal?.throwIfAborted();
      host.onExec?.(command);
      const [program, ...args] = host.shell ?? ["/bin/sh"];
      // The account's login shell is what sees the command; the shell under test takes the place of /bin/sh.
      const line = command.replaceAll("exec /bin/sh", `exec ${[program, ...args].join(" ")}`);
      const child = spawn("/bin/sh", ["-c", host.preamble === undefined ? line : `${host.preamble}\n${line}`], {
        env: { HOME: host.home, PATH: host.path ?? "/usr/local/bin:/usr/bin:/bin", USER: "tester", ...host.env },
        cwd: host.home,
        stdio: ["pipe", "pipe", "pipe"],
        detached: true,
      });
      running.add(child);
      child.on("close", () => running.delete(child));
      return channelOf(child);
    },
  };
}

/** A process as a channel of a session has it. */
export function channelOf(child: ChildProcess): ExecChannel {
  const of = (event: "exit" | "close") =>
    new Promise<{ code: number | null; signal: string | null }>((resolve) => {
      child.on(event, (code, signal) => resolve({ code, signal }));
      child.on("error", () => resolve({ code: null, signal: null }));
    });
  for (const stream of [child.stdin!, child.stdout!, child.stderr!]) stream.on("error", () => undefined);
  const stream = new Duplex({
    read: () => void child.stdout!.resume(),
    // As sshd does: what nobody reads any more is dropped, and the output is not.
    write: (chunk, _, done) => void child.stdin!.write(chunk, () => done()),
    final: (done) => void child.stdin!.end(() => done()),
  });
  child.stdout!.on("data", (chunk: Buffer) => stream.push(chunk) || child.stdout!.pause());
  child.stdout!.on("end", () => stream.push(null));
  stream.on("error", () => undefined);
  return {
    stream,
    stderr: child.stderr as Readable,
    ended: of("exit"),
    exited: of("close"),
    // As sshd does: input and outputs go, the process is left to notice.
    close: () => {
      stream.destroy();
      // Bun leaves the pipe of a destroyed input open.
      child.stdin!.end();
      child.stdout!.destroy();
      child.stderr!.destroy();
    },
  };
}
