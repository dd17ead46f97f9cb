import type { Environment } from "../../config/environment.ts";
import type { Run } from "../../roles/relay-host/service.ts";
import { withoutCredentials } from "../../transport/process-stream.ts";

/** Runs commands of this machine, without input, and without the relay's own credentials. Both of their outputs are one text, 64 KiB at most. */
export const commandsOf =
  ({ variables }: Pick<Environment, "variables">): Run =>
  async (command) => {
    const child = Bun.spawn([...command], { env: withoutCredentials(variables), stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, text: `${err}${out}`.slice(0, 64 * 1024) };
  };
