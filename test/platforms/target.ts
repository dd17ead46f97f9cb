import { spawnSync } from "node:child_process";
import path from "node:path";

const ROOT = path.dirname(path.dirname(import.meta.dir));

/** The executable for another platform, built from these sources; made anew when they have changed. */
export function builtFor(target: string): string {
  const outdir = path.join(ROOT, "dist", "targets");
  const built = spawnSync(process.execPath, ["build.ts", "--if-stale", "--target", target, "--outdir", outdir], {
    cwd: ROOT,
    encoding: "utf8",
  });
  if (built.status !== 0) throw new Error(`the build for ${target} ended with ${built.status}: ${built.stderr}`);
  return path.join(outdir, `clio-relay${target.replace(/^bun/, "")}${target.includes("windows") ? ".exe" : ""}`);
}
