import path from "node:path";

/** An owner of the queue in a directory that submits some jobs and is killed. Returns its pid. */
export async function killedOwner(directory: string, jobs: number): Promise<number> {
  const child = Bun.spawn([process.execPath, path.join(import.meta.dir, "owned-child.ts"), directory, String(jobs)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  for await (const chunk of child.stdout) {
    if (new TextDecoder().decode(chunk).includes("ready")) break;
  }
  child.kill("SIGKILL");
  await child.exited;
  return child.pid;
}
