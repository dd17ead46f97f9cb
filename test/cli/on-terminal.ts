import { eventually } from "../runner/wait.ts";
import { MAIN, type SourceRelay } from "./source-relay.ts";

const END = "<end>";

/** A command on a terminal of its own: what it shows, and keys for it. @param script for a shell on that terminal; "$@" is the command */
export function onTerminal(
  relay: Pick<SourceRelay, "directory" | "environment">,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  script = `"$@"`,
) {
  let shown = "";
  const decoder = new TextDecoder();
  const terminal = new Bun.Terminal({
    cols: 100,
    rows: 30,
    data(_terminal, bytes) {
      shown += decoder.decode(bytes, { stream: true });
    },
  });
  // With the terminal as its controlling one, so that keys become signals (setsid(1)); the mark says that everything came through.
  const shell = `trap : INT; ${script}; code=$?; printf '${END}'; exit $code`;
  const child = Bun.spawn(["setsid", "--ctty", "--wait", "sh", "-c", shell, "sh", process.execPath, MAIN, ...args], {
    terminal,
    cwd: relay.directory,
    env: { ...relay.environment, TERM: "xterm", ...env },
  });
  return {
    child,
    /** Everything since the start. */
    shown: () => shown.replace(END, ""),
    /** Wait until it shows this. @throws Error with what it shows instead where it ends without */
    async shows(text: string): Promise<void> {
      await eventually(() => shown.includes(text) || shown.endsWith(END), { what: JSON.stringify(text) });
      if (!shown.includes(text)) throw new Error(`it ends without ${JSON.stringify(text)}: ${JSON.stringify(shown)}`);
    },
    press: (keys: string) => terminal.write(keys),
    async end(): Promise<number> {
      const code = await child.exited;
      await eventually(() => shown.endsWith(END));
      terminal.close();
      return code;
    },
  };
}
