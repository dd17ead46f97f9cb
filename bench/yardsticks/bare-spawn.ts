import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type Latency, latencyOf } from "./latency.ts";

export interface BareSpawn {
  /** Spawn of /bin/true until its end is known. */
  readonly true: Latency;
  /** Spawn of a compiled hello-world executable of the same Bun until its first line is read. */
  readonly hello: Latency;
  /** Size of that executable. */
  readonly helloBytes: number;
}

/**
 * What starting a process costs without any relay: the floor under every figure about starting jobs.
 *
 * @param runs how often each is started
 * @param bun the Bun that compiles the executable
 */
export async function bareSpawn(runs: number, bun: string = process.execPath): Promise<BareSpawn> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "bare-spawn-"));
  try {
    const hello = await compileHello(directory, bun);
    // Once each, so that neither pays for reading its executable from the disk.
    await timeTrue();
    await timeFirstLine(hello);
    const trueMs: number[] = [];
    const helloMs: number[] = [];
    for (let i = 0; i < runs; i++) {
      trueMs.push(await timeTrue());
      helloMs.push(await timeFirstLine(hello));
    }
    return { true: latencyOf(trueMs), hello: latencyOf(helloMs), helloBytes: fs.statSync(hello).size };
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

async function compileHello(directory: string, bun: string): Promise<string> {
  const source = path.join(directory, "hello.ts");
  const outfile = path.join(directory, "hello");
  fs.writeFileSync(source, 'console.log("hello");\n');
  const flags = ["--compile", "--minify", "--bytecode", "--format=esm", "--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"];
  const build = Bun.spawn([bun, "build", source, ...flags, "--outfile", outfile], { cwd: directory, stdout: "ignore", stderr: "pipe" });
  if ((await build.exited) !== 0) throw new Error(`bun build failed: ${await new Response(build.stderr).text()}`);
  return outfile;
}

async function timeTrue(): Promise<number> {
  const begin = performance.now();
  const child = Bun.spawn(["/bin/true"], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  if ((await child.exited) !== 0) throw new Error("/bin/true failed");
  return performance.now() - begin;
}

async function timeFirstLine(executable: string): Promise<number> {
  const begin = performance.now();
  const child = Bun.spawn([executable], { stdin: "ignore", stdout: "pipe", stderr: "inherit", env: {} });
  let text = "";
  let elapsed = Number.NaN;
  for await (const chunk of child.stdout) {
    text += new TextDecoder().decode(chunk);
    if (Number.isNaN(elapsed) && text.includes("\n")) elapsed = performance.now() - begin;
  }
  if ((await child.exited) !== 0 || text !== "hello\n") throw new Error(`${executable} printed ${JSON.stringify(text)}`);
  return elapsed;
}

if (import.meta.main) console.log(JSON.stringify(await bareSpawn(Number(process.argv[2] ?? 100)), null, 2));
