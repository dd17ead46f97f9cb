/**
 * The demonstration: a real computation under the relay whose worker is killed in the middle, and the same on a cluster behind an sshd whose
 * link is cut. Every claim that it prints is checked; the exit code is 0 only if all of them held.
 */
import path from "node:path";
import { DemoFailure, Installation } from "./installation.ts";
import { linkDies } from "./link-dies.ts";
import { LoginNode, whyNoLoginNode } from "./login-node.ts";
import { say } from "./narration.ts";
import { workerDies } from "./worker-dies.ts";

const EXECUTABLE = path.join(path.dirname(import.meta.dir), "dist", process.platform === "win32" ? "clio-relay.exe" : "clio-relay");

/** What is to be removed at the end, the last first. */
const made: { readonly directory: string; remove(): Promise<void> }[] = [];

function keep<T extends (typeof made)[number]>(one: T): T {
  made.push(one);
  return one;
}

async function removeAll(): Promise<void> {
  for (let one = made.pop(); one !== undefined; one = made.pop()) {
    await one.remove();
    say(`Removed ${one.directory}`);
  }
}

async function demonstrate(): Promise<void> {
  const steps = await workerDies(keep(new Installation(EXECUTABLE)));
  const missing = whyNoLoginNode();
  if (missing !== null) return say(`\nThe second half, a cluster over SSH, is left out: ${missing}.`);
  const node = keep(await LoginNode.start());
  const desktop = keep(new Installation(EXECUTABLE, { CLIO_RELAY_SSH_CONFIG: node.sshConfig, CLIO_RELAY_CLUSTER: "far" }));
  await linkDies(desktop, node, Math.ceil(steps / 200) * 100);
}

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    say(`\nEnded by ${signal}.`);
    void removeAll().finally(() => process.exit(1));
  });

try {
  await demonstrate();
  say("\nEverything above was verified.");
} catch (error) {
  process.exitCode = 1;
  say(`\nThe demonstration failed: ${error instanceof Error ? error.message : String(error)}`);
  if (!(error instanceof DemoFailure)) console.error(error);
} finally {
  await removeAll();
}
