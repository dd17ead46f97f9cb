import { expect, test } from "bun:test";
import type { Event } from "../../src/domain/event.ts";
import { historyFaults } from "../roles/worker/harness.ts";
import { type Relay, startRelay } from "../runner/relay.ts";
import { eventually } from "../runner/wait.ts";

const LINES = 120;
const WORK = `i=0; while [ $i -lt ${LINES} ]; do echo "line $i é"; i=$((i+1)); sleep 0.02; done`;
const OUTPUT = Array.from({ length: LINES }, (_, i) => `line ${i} é\n`).join("");

/** Collects what a process prints while it runs. */
function capture(stream: ReadableStream<Uint8Array>): { text: () => string; done: Promise<void> } {
  const pieces: Uint8Array[] = [];
  const done = (async () => {
    for await (const bytes of stream as unknown as AsyncIterable<Uint8Array>) pieces.push(bytes);
  })();
  return { text: () => Buffer.concat(pieces).toString(), done };
}

interface Watched {
  readonly relay: Relay;
  /** What the follower has printed so far. */
  readonly followed: () => string;
}

/** Watch and follow a job while `fault` does its worst; both have to come to their end with everything. */
async function surviving(fault: (watched: Watched) => Promise<void>): Promise<void> {
  await using relay = await startRelay();
  const { job_id } = await relay.json<{ job_id: string }>("job", "submit", "--cluster", "local", "--", "/bin/sh", "-c", WORK);
  const watch = relay.start(["job", "watch", job_id, "--json"]);
  const follow = relay.start(["job", "read-log", job_id, "--stream", "stdout", "-f", "--raw"]);
  const watched = capture(watch.stdout);
  const followed = capture(follow.stdout);
  await fault({ relay, followed: followed.text });

  expect(await watch.exited).toBe(0);
  expect(await follow.exited).toBe(0);
  await Promise.all([watched.done, followed.done]);
  expect(followed.text()).toBe(OUTPUT);
  const lines = watched.text().trim().split("\n");
  const records = lines.map((line) => JSON.parse(line) as Event);
  expect(historyFaults(records.filter((record) => record.seq !== undefined))).toEqual([]);
}

test("the desktop is killed during a watch and a follow: both go on, no event and no byte is missing or doubled", async () => {
  await surviving(async ({ relay, followed }) => {
    for (const line of [20, 60]) {
      await eventually(() => followed().includes(`line ${line} `));
      // The line may have come from the daemon that is dead, and the next one is not there yet.
      const { process: daemon } = await eventually(() => relay.json<{ process: { pid: number } }>("desktop", "status"), {
        what: "a daemon",
      });
      process.kill(daemon.pid, "SIGKILL");
    }
  });
});

test("the worker is killed during a watch and a follow, and another is started at once: the same", async () => {
  await surviving(async ({ relay, followed }) => {
    await eventually(() => followed().includes("line 30 "));
    const { workers } = await relay.json<{ workers: { process: { pid: number } }[] }>("worker", "status", "--cluster", "local");
    process.kill(workers[0]!.process.pid, "SIGKILL");
    await relay.worker();
  });
});

test("a worker that is not there: commands say so at once, and how to start it", async () => {
  await using relay = await startRelay();
  const { job_id } = await relay.json<{ job_id: string }>("job", "submit", "--cluster", "local", "--", "sleep", "1");
  const { workers } = await relay.json<{ workers: { process: { pid: number } }[] }>("worker", "status", "--cluster", "local");
  process.kill(workers[0]!.process.pid, "SIGKILL");
  await eventually(async () => (await relay.run(["job", "status", job_id])).code === 5);
  for (const verb of [
    ["job", "watch", job_id],
    ["job", "wait", job_id],
    ["job", "list"],
    ["job", "submit", "--", "true"],
  ]) {
    const result = await relay.run(verb);
    expect([verb, result.code]).toEqual([verb, 5]);
    expect(result.stderr).toContain("clio-relay worker start --cluster local");
  }
});
