import fs from "node:fs";
import os from "node:os";
import path from "node:path";

/** Reads of a child's JSON output. */
export type Json = Record<string, unknown>;

export class DemoFailure extends Error {}

/** A throw-away installation of the built executable: everything it keeps lies in one temporary directory. */
export class Installation {
  readonly directory: string;
  readonly #children: Bun.Subprocess[] = [];

  /** @param more further variables for every command */
  constructor(
    readonly executable: string,
    private readonly more: Readonly<Record<string, string>> = {},
  ) {
    this.directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-demo-"));
  }

  file(...parts: string[]): string {
    return path.join(this.directory, ...parts);
  }

  get environment(): Record<string, string> {
    // Nothing of the user's own installation.
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith("CLIO_RELAY_"));
    return { ...(Object.fromEntries(own) as Record<string, string>), CLIO_RELAY_HOME: this.file("home"), NO_COLOR: "1", ...this.more };
  }

  /** Run a verb to its end; a failure of the verb is a failure of the demo. */
  async run(...args: string[]): Promise<string> {
    return new TextDecoder().decode(await this.bytes(...args));
  }

  async bytes(...args: string[]): Promise<Uint8Array> {
    const { code, stdout, stderr } = await this.attempt(...args);
    if (code !== 0) throw new DemoFailure(`clio-relay ${args.join(" ")} ended with ${code}: ${stderr.trim()}`);
    return stdout;
  }

  /** Run a verb to its end, whichever that is. */
  async attempt(...args: string[]): Promise<{ code: number; stdout: Uint8Array; stderr: string }> {
    const child = Bun.spawn([this.executable, ...args], { env: this.environment, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr, code] = await Promise.all([child.stdout.bytes(), child.stderr.text(), child.exited]);
    return { code, stdout, stderr };
  }

  async json<T = Json>(...args: string[]): Promise<T> {
    return JSON.parse(await this.run(...args, "--json")) as T;
  }

  /** Start a verb that goes on; its output goes to a file, or to `onLine` line by line. */
  start(args: string[], output: { file: string } | { onLine: (line: string) => void }): Bun.Subprocess {
    const sink = "file" in output ? Bun.file(this.file(output.file)) : "pipe";
    const child = Bun.spawn([this.executable, ...args], { env: this.environment, stdin: "ignore", stdout: sink, stderr: sink });
    if ("onLine" in output) {
      for (const stream of [child.stdout, child.stderr]) void lines(stream as ReadableStream<Uint8Array>, output.onLine);
    }
    this.#children.push(child);
    return child;
  }

  /** End a process with the installation. */
  owns(child: Bun.Subprocess): void {
    this.#children.push(child);
  }

  /** Stop everything and remove the directory. */
  async remove(): Promise<void> {
    await this.run("worker", "stop", "--cluster", "local").catch(() => undefined);
    await this.run("desktop", "stop", "--yes").catch(() => undefined);
    for (const child of this.#children) if (child.exitCode === null) child.kill("SIGTERM");
    await Promise.all(this.#children.map((child) => child.exited));
    fs.rmSync(this.directory, { recursive: true, force: true });
  }
}

async function lines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream as unknown as AsyncIterable<Uint8Array>) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = parts.pop()!;
    for (const line of parts) onLine(line);
  }
  if (rest !== "") onLine(rest);
}
