import path from "node:path";
import { pythonPrograms } from "../python-programs.ts";

/** FastMCP with fastmcp-tasks, an implementation of the protocol for Python with a client of its own. */
export const fastMcp = pythonPrograms("fastmcp", path.join(import.meta.dir, "requirements.txt"));

/** How a server is reached: started for oneself, or over HTTP with a token. */
export type Server =
  | { readonly command: string; readonly args: readonly string[]; readonly env: Record<string, string>; readonly cwd: string }
  | { readonly url: string; readonly token: string };

/** What is done by clients of its own, all at once. */
export type Work = { readonly to: Server } & (
  | { readonly do: "begin"; readonly argv: readonly string[] }
  | { readonly do: "collect"; readonly task: unknown }
);

/** Have it done, in the order that is given, by one process that ends with it. */
export async function fastMcpDoes<T extends readonly unknown[]>(...work: readonly Work[]): Promise<T> {
  const child = Bun.spawn([fastMcp.python(), path.join(import.meta.dir, "client.py")], {
    stdin: new TextEncoder().encode(JSON.stringify(work)),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`client.py ended with ${code}: ${err}`);
  return JSON.parse(out) as T;
}
