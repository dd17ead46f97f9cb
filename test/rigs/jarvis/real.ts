import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

/** The program of a real JARVIS-CD: CLIO_RELAY_TEST_JARVIS, or the one on the PATH; null where there is none. */
export const realJarvis = (): string | null => process.env["CLIO_RELAY_TEST_JARVIS"] ?? Bun.which("jarvis");

/** Why the tests on a real one cannot run; null where they can. It is on no registry: github.com/grc-iit/jarvis-cd. */
export function noJarvis(): string | null {
  const program = realJarvis();
  if (program === null) return "JARVIS-CD is not installed (jarvis on the PATH, or CLIO_RELAY_TEST_JARVIS)";
  const help = spawnSync(program, ["--help"], { encoding: "utf8", timeout: 30_000 });
  return help.status === 0 || /jarvis/i.test(help.stdout ?? "") ? null : `${program} does not run here`;
}

const REPOSITORY = path.join(import.meta.dir, "repository", "demo");

/** A JARVIS-CD with a configuration of its own, and a repository with one package: demo.counter. */
export class RealJarvis {
  readonly program: string;
  readonly environment: Record<string, string>;
  readonly shared: string;

  constructor(directory: string) {
    this.program = realJarvis()!;
    this.shared = path.join(directory, "shared");
    this.environment = { JARVIS_ROOT: path.join(directory, "root") };
    fs.mkdirSync(directory, { recursive: true });
    this.run("init", path.join(directory, "config"), path.join(directory, "private"), this.shared);
    this.run("repo", "add", REPOSITORY);
  }

  run(...args: string[]): string {
    const { status, stdout, stderr } = spawnSync(this.program, args, {
      encoding: "utf8",
      timeout: 60_000,
      env: { ...process.env, ...this.environment },
    });
    if (status !== 0) throw new Error(`jarvis ${args.join(" ")} ended with ${status}: ${stdout} ${stderr}`);
    return stdout;
  }
}
