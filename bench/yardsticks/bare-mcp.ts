import fs from "node:fs";
import path from "node:path";

/**
 * A server of the same SDK with nothing behind it, compiled as the executable is. What it costs to start, to be asked and to answer is the floor under every figure of ours.
 *
 * @param directory where it is put
 * @param bun the Bun that compiles it
 * @param tools what it answers tools/list with
 * @returns its command line
 */
export async function bareMcp(directory: string, bun: string, tools: readonly unknown[]): Promise<readonly string[]> {
  const source = path.join(path.dirname(import.meta.dir), "bare-mcp-process.ts");
  const outfile = path.join(directory, "bare-mcp");
  const list = path.join(directory, "tools.json");
  fs.writeFileSync(list, JSON.stringify(tools));
  const flags = ["--compile", "--minify", "--bytecode", "--format=esm", "--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"];
  const build = Bun.spawn([bun, "build", source, ...flags, "--outfile", outfile], { stdout: "ignore", stderr: "pipe" });
  if ((await build.exited) !== 0) throw new Error(`bun build failed: ${await build.stderr.text()}`);
  return [outfile, list];
}
