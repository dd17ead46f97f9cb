import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type Identity, isAlive } from "../../src/lib/system/process-identity.ts";
import { startRelay } from "./relay.ts";
import { eventually } from "./wait.ts";

interface Started {
  readonly shim: Identity;
}
interface Running {
  readonly process: Identity;
}

test("an installation runs a job, and leaves no process and no file behind", async () => {
  const relay = await startRelay();
  const identities: Identity[] = [];
  try {
    // The job starts a process that leaves its session, the hardest to find again.
    const { job_id } = await relay.json<{ job_id: string }>(
      "job",
      "submit",
      "--cluster",
      "local",
      "--",
      "sh",
      "-c",
      "setsid sleep 1000 & exec sleep 1000",
    );
    const attempt = relay.attemptDirectory(job_id);
    const read = <T>(file: string): T => JSON.parse(fs.readFileSync(path.join(attempt, file), "utf8")) as T;
    identities.push((await eventually(() => read<Running>("process.json"))).process, read<Started>("start.json").shim);
    for (const identity of identities) expect(isAlive(identity)).toBe(true);
  } finally {
    await relay[Symbol.asyncDispose]();
  }
  expect(identities).toHaveLength(2);
  for (const identity of identities) expect(await eventually(() => !isAlive(identity))).toBe(true);
  expect(fs.existsSync(relay.directory)).toBe(false);
});
