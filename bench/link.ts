import path from "node:path";
import { PLAIN_COPIES } from "../src/lib/system/plain-copies.ts";
import type { LinkProcessOptions } from "./link-process.ts";
import type { BenchContext } from "./row.ts";

/** Start bench/link-process.ts; the bring-ups that it made, in milliseconds. */
export async function startLink(context: BenchContext, options: LinkProcessOptions): Promise<Disposable & { bringUps: number[] }> {
  const child = Bun.spawn([context.bun, path.join(import.meta.dir, "link-process.ts"), JSON.stringify(options)], {
    // As a desktop daemon is started.
    env: { ...process.env, ...PLAIN_COPIES },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  const said = new TextDecoder().decode(value);
  if (!said.startsWith("up ")) throw new Error("the link did not come up");
  return { bringUps: JSON.parse(said.slice(3)) as number[], [Symbol.dispose]: () => child.kill() };
}
