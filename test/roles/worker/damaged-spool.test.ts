import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { isAlive } from "../../../src/lib/system/process-identity.ts";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";

const mkfifo = (file: string): void => expect(Bun.spawnSync(["mkfifo", file]).exitCode).toBe(0);

/** What the events of a damaged spool are about, with the messages. */
async function damages(worker: WorkerHarness, jobId: string): Promise<Record<string, string>> {
  const events = (await worker.events(jobId)).filter((event) => event.event_type === "execution.spool_damaged");
  return Object.fromEntries(events.map(({ payload, message }) => [String(payload["about"]), message]));
}

/** The worker still has all of its slots but those of jobs that run. */
async function goesOn(worker: WorkerHarness, running = 0): Promise<void> {
  const jobs = await Promise.all(Array.from({ length: 5 }, (_, i) => worker.shell(`echo ${i}`)));
  for (const { job_id } of jobs) expect((await worker.ended(job_id)).job.state).toBe("succeeded");
  expect((await worker.client.workers()).workers[0]!.active_leases_by_kind).toEqual(running === 0 ? {} : { command: running });
}

describe("taken away while no worker runs", () => {
  const parts: Record<string, { readonly remove: (attemptDir: string) => string; readonly about: string }> = {
    "start.json": { remove: (dir) => path.join(dir, "start.json"), about: "start.json" },
    "the attempt's directory": { remove: (dir) => dir, about: "directory" },
    "the job's directory": { remove: (dir) => path.dirname(dir), about: "directory" },
    "the whole spool": { remove: (dir) => path.dirname(path.dirname(dir)), about: "directory" },
  };

  test.each(Object.entries(parts))(
    "%s, and shim and job are gone too: the outcome is unknown, and the history says what was missing",
    async (_, part) => {
      await using worker = await new WorkerHarness().start();
      const { job_id } = await worker.shell("echo before; exec sleep 600");
      const { attempt } = await worker.running(job_id);
      await eventually(async () => (await worker.stdout(job_id)) === "before\n");
      await eventually(async () => (await worker.events(job_id)).some((event) => event.event_type === "stdout.delta"));
      await worker.kill();
      for (const { pid } of [attempt!.shim!, attempt!.process!]) process.kill(pid, "SIGKILL");
      fs.rmSync(part.remove(worker.attemptDir(job_id)), { recursive: true });
      await worker.start();
      const { job, logs } = await worker.ended(job_id);
      expect(job).toMatchObject({ state: "failed", attempts: 1, outcome: { reason: "outcome_unknown", residual: [] } });
      expect(job.outcome!.message).toMatch(/nothing of it was (left|found) running/);
      expect(Object.keys(await damages(worker, job_id))).toContain(part.about);
      expect(logs.find((log) => log.stream === "stdout")).toMatchObject({ size_bytes: 7, capture: { kept: 7, complete: false } });
      expect(historyFaults(await worker.events(job_id))).toEqual([]);
      await goesOn(worker);
    },
  );

  test.each(Object.entries(parts))("%s, while the job goes on: it is left alone until it ends by itself", async (name, part) => {
    await using worker = await new WorkerHarness().start();
    const release = path.join(worker.directory, "release");
    const { job_id } = await worker.shell(`until [ -e ${release} ]; do sleep 0.05; done; exit 3`);
    const { attempt } = await worker.running(job_id);
    await worker.kill();
    fs.rmSync(part.remove(worker.attemptDir(job_id)), { recursive: true });
    await worker.start();
    await eventually(async () => Object.keys(await damages(worker, job_id)).includes(part.about));
    await goesOn(worker, 1);
    expect(isAlive(attempt!.process!)).toBe(true);
    expect((await worker.client.status(job_id)).job.state).toBe("running");
    fs.writeFileSync(release, "");
    // With the directory, the shim's record of the end survives the loss of its claim.
    const reason = name === "start.json" ? "exit_nonzero" : "outcome_unknown";
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "failed", attempts: 1, outcome: { reason } });
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
  });

  test("the attempt's directory: the job can be cancelled all the same", async () => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell("sleep 600");
    const { attempt } = await worker.running(job_id);
    await worker.kill();
    fs.rmSync(worker.attemptDir(job_id), { recursive: true });
    await worker.start();
    await worker.client.cancel(job_id);
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "canceled", attempts: 1 });
    expect(isAlive(attempt!.process!)).toBe(false);
  });

  test("spec.json: the attempt ends as it ended, and says that it leaves no documents", async () => {
    await using worker = await new WorkerHarness().start();
    const gate = path.join(worker.directory, "gate");
    const { job_id } = await worker.shell(`until [ -e ${gate} ]; do sleep 0.05; done`);
    await worker.running(job_id);
    await worker.kill();
    fs.rmSync(path.join(worker.attemptDir(job_id), "spec.json"));
    await worker.start();
    fs.writeFileSync(gate, "");
    expect((await worker.ended(job_id)).job.state).toBe("succeeded");
    expect((await damages(worker, job_id))["spec.json"]).toContain("no documents");
  });

  test("the end of a log: what was recorded keeps its place, is counted as missing, and followers go on behind it", async () => {
    await using worker = await new WorkerHarness().start();
    const flag = path.join(worker.directory, "second");
    const { job_id } = await worker.shell(
      `if [ -e ${flag} ]; then echo again; else touch ${flag}; head -c 100000 /dev/zero | tr '\\0' x; sleep 600; fi`,
      { retries: 1 },
    );
    const { attempt } = await worker.running(job_id);
    await eventually(async () => (await worker.client.status(job_id)).logs.find((log) => log.stream === "stdout")!.size_bytes === 100_000);
    await eventually(async () =>
      (await worker.events(job_id)).some(({ event_type, payload }) => event_type === "stdout.delta" && payload["next_offset"] === 100_000),
    );
    await worker.kill();
    for (const { pid } of [attempt!.shim!, attempt!.process!]) process.kill(pid, "SIGKILL");
    fs.truncateSync(path.join(worker.attemptDir(job_id), "stdout.log"), 50_000);
    await worker.start();
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "succeeded", attempts: 2 });
    expect((await damages(worker, job_id))["stdout.log"]).toContain("lacks 50000 of the 100000 bytes");
    const follow = async (offset: number) => (await worker.client.logContent(job_id, "stdout", { offset, follow: true })).text();
    expect(await follow(0)).toBe("x".repeat(50_000));
    expect(await worker.client.log(job_id, "stdout", { offset: 50_000 })).toMatchObject({
      text: "",
      missing_bytes: 50_000,
      next_offset: 100_000,
      eof: false,
    });
    expect(await follow(100_000)).toBe("again\n");
    expect(await worker.client.log(job_id, "stdout", { offset: 100_000 })).toMatchObject({ text: "again\n", missing_bytes: 0, eof: true });
    expect(await worker.client.audit()).toMatchObject({ findings: [] });
  });
});

describe("a job that spoils its own directory", () => {
  const here = 'cd "$(dirname "$CLIO_RELAY_EVENTS")"';

  test.each([
    ["removes it", `${here} && rm -rf "$PWD"`],
    ["removes the job's directory", `${here} && rm -rf "$(dirname "$PWD")"`],
    ["puts a file in its place", `${here} && d="$PWD" && rm -rf "$d" && : > "$d"`],
  ])("that %s ends with its outcome unknown", async (_, line) => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell(`sleep 0.3; ${line}`, { outputs: ["*.none"] });
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", outcome: { reason: "outcome_unknown" } });
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
    await goesOn(worker);
  });

  test.each([
    ["a pipe", "mkfifo"],
    ["a directory", "mkdir"],
    ["a link to a device", "ln -s /dev/zero"],
    ["a link to a file", "ln -s /etc/passwd"],
  ])("with %s in the place of its files: nothing hangs, nothing of it is read", async (_, make) => {
    await using worker = await new WorkerHarness().start();
    const files = "stdout.log stderr.log process.json truncated-stdout.json cancel.json spec.json events/a.jsonl artifacts.x";
    const gate = path.join(worker.directory, "gate");
    const { job_id } = await worker.shell(
      `echo out; until [ -e ${gate} ]; do sleep 0.05; done; ${here}; for f in ${files}; do rm -rf $f; ${make} $f; done; sleep 0.3; exit 3`,
    );
    await eventually(async () => (await worker.events(job_id)).some(({ event_type }) => event_type === "stdout.delta"));
    fs.writeFileSync(gate, "");
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", outcome: { reason: "exit_nonzero", exit_code: 3 } });
    expect(Object.keys(await damages(worker, job_id))).toEqual(expect.arrayContaining(["stdout.log", "spec.json"]));
    const piece = await worker.client.log(job_id, "stdout", { offset: 0 });
    expect(piece).toMatchObject({ text: "", missing_bytes: 4, eof: true });
    await goesOn(worker);
  });

  test("with a link in the place of its log leaves its other artifacts, and no log of what the link leads to", async () => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell(`echo out; echo err >&2; sleep 0.2; ${here}; ln -sf /etc/passwd stdout.log`);
    expect((await worker.ended(job_id)).job.state).toBe("succeeded");
    const { artifacts } = await worker.client.artifacts(job_id);
    expect(artifacts.map(({ kind }) => kind).sort()).toEqual(["log_capture", "provenance", "stderr"]);
  });

  test("with something else in the place of exit.json is not ended for it; its end is unknown", async () => {
    await using worker = await new WorkerHarness().start();
    const release = path.join(worker.directory, "release");
    const { job_id } = await worker.shell(`${here}; mkfifo exit.json; until [ -e ${release} ]; do sleep 0.05; done; touch ${release}.seen`);
    const { attempt } = await worker.running(job_id);
    await eventually(() => fs.existsSync(path.join(worker.attemptDir(job_id), "exit.json")));
    await goesOn(worker, 1);
    expect(isAlive(attempt!.process!)).toBe(true);
    fs.writeFileSync(release, "");
    const { job } = await worker.ended(job_id);
    expect(fs.existsSync(`${release}.seen`)).toBe(true);
    expect(job).toMatchObject({ state: "failed", outcome: { reason: "outcome_unknown" } });
    expect(job.outcome!.message).toContain("exit.json cannot be read");
  });

  test("with a link in the place of artifacts loses nothing that the link leads to", async () => {
    await using worker = await new WorkerHarness().start();
    const precious = path.join(worker.directory, "precious");
    fs.mkdirSync(precious);
    fs.writeFileSync(path.join(precious, "file"), "keep");
    const { job_id } = await worker.shell(`sleep 0.2; ${here}; ln -s ${precious} ../artifacts`);
    await worker.ended(job_id);
    expect(fs.readFileSync(path.join(precious, "file"), "utf8")).toBe("keep");
  });

  test.each([
    ["a file", ": > ../artifacts"],
    ["a directory named like a copy", "mkdir -p ../artifacts/left/over"],
  ])("with %s in the way of artifacts ends as it ended", async (_, line) => {
    await using worker = await new WorkerHarness().start();
    const { job_id } = await worker.shell(`sleep 0.2; ${here}; ${line}; exit 3`);
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "failed", outcome: { reason: "exit_nonzero" } });
    await goesOn(worker);
  });
});

test("a record of its end that a job writes itself ends nothing while the job runs", async () => {
  await using worker = await new WorkerHarness().start();
  const release = path.join(worker.directory, "release");
  const stream = { observed: 0, kept: 0, dropped: 0, truncated: null, complete: true, sha256: null };
  const forged = JSON.stringify({
    record_version: 1,
    outcome: { reason: "completed", exit_code: 0, signal: null, message: "", residual: [] },
    started_at: null,
    ended_at: "2026-01-01T00:00:00.000Z",
    streams: { stdout: stream, stderr: stream },
    usage: null,
    leftover: 0,
  });
  const begin = path.join(worker.directory, "begin");
  const { job_id } = await worker.shell(
    `until [ -e ${begin} ]; do sleep 0.05; done; cd "$(dirname "$CLIO_RELAY_EVENTS")"; printf '%s' "$FORGED" > exit.json; echo on; until [ -e ${release} ]; do sleep 0.05; done; echo over`,
    { env: { FORGED: forged } },
  );
  const { attempt } = await worker.running(job_id);
  fs.writeFileSync(begin, "");
  await eventually(() => fs.existsSync(path.join(worker.attemptDir(job_id), "exit.json")));
  await eventually(async () => (await worker.stdout(job_id)) === "on\n");
  expect((await worker.client.status(job_id)).job.state).toBe("running");
  expect(isAlive(attempt!.process!)).toBe(true);
  fs.writeFileSync(release, "");
  await worker.ended(job_id);
  expect(isAlive(attempt!.process!)).toBe(false);
  // Once nothing runs, what the job has forged may be read before its shim has written over it; nobody but the job is harmed.
  expect(["on\n", "on\nover\n"]).toContain(await worker.stdout(job_id));
});

test("a job that cuts its own log and writes on: what comes then keeps its place, and the log is said to be damaged", async () => {
  await using worker = await new WorkerHarness().start();
  const release = path.join(worker.directory, "release");
  const { job_id } = await worker.shell(
    `echo first; until [ -e ${release} ]; do sleep 0.05; done; : > "$(dirname "$CLIO_RELAY_EVENTS")/stdout.log"; echo second`,
  );
  const deltas = async () => (await worker.events(job_id)).filter((event) => event.event_type === "stdout.delta");
  await eventually(async () => (await deltas()).length > 0);
  fs.writeFileSync(release, "");
  const { job } = await worker.ended(job_id);
  expect(job).toMatchObject({ state: "succeeded" });
  expect((await deltas()).map(({ payload }) => [payload["offset"], payload["next_offset"], payload["text"]])).toEqual([
    [0, 6, "first\n"],
    [6, 13, "second\n"],
  ]);
  expect(await worker.stdout(job_id)).toBe(`${"\0".repeat(6)}second\n`);
  const damaged = (await worker.events(job_id)).filter((event) => event.event_type === "execution.spool_damaged");
  expect(damaged.map(({ message }) => message)).toEqual([expect.stringContaining("stdout.log was cut while it was written to")]);
});

describe("outputs that no reading brings", () => {
  test("of /sys and /proc are named with the cause, and the slots are free", async () => {
    await using worker = await new WorkerHarness({ capacity: { concurrency: 3 } }).start();
    const jobs = await Promise.all([
      worker.submit({ argv: ["true"], workdir: "/proc/self", outputs: ["mem", "attr/*", "clear_refs"] }),
      worker.submit({ argv: ["true"], workdir: "/sys/kernel", outputs: ["*", "mm/**"] }),
    ]);
    for (const { job_id } of jobs) {
      const { job } = await worker.ended(job_id);
      expect(job).toMatchObject({ state: "failed", outcome: { reason: "output_missing" } });
    }
    const { job_id } = await worker.shell("echo free");
    expect((await worker.ended(job_id)).job.state).toBe("succeeded");
  });
});

test("reports in more files than are read: said once, also by the next worker", async () => {
  await using worker = await new WorkerHarness().start();
  const release = path.join(worker.directory, "release");
  const { job_id } = await worker.shell(
    `cd "$CLIO_RELAY_EVENTS"; i=0; while [ $i -lt 1100 ]; do echo > $i.jsonl; i=$((i+1)); done; until [ -e ${release} ]; do sleep 0.05; done`,
  );
  const said = async () =>
    (await worker.events(job_id)).filter((event) => event.event_type === "emit.refused" && event.message.includes("more than 1024 files"));
  await eventually(async () => (await said()).length > 0);
  await worker.kill();
  await worker.start();
  await worker.running(job_id);
  fs.writeFileSync(release, "");
  expect((await worker.ended(job_id)).job.state).toBe("succeeded");
  expect((await said()).length).toBe(1);
});

test("owner.json that is a pipe: a worker is refused and told why, and does not hang", async () => {
  await using worker = new WorkerHarness();
  fs.mkdirSync(worker.coreDir, { recursive: true });
  mkfifo(path.join(worker.coreDir, "owner.json"));
  const refused = worker.spawn();
  expect(await refused.exited).not.toBe(0);
  expect(await eventually(() => worker.messages.includes("cannot be read"))).toBe(true);
});

describeWith("root", "a worker that is subject to permissions", () => {
  const WITHOUT_OVERRIDE = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"];

  test.each([
    ["its directory", '"$PWD"', "exit_nonzero"],
    ["its and the job's directory", '"$PWD" "$PWD/.."', "exit_nonzero"],
    ["its directories and files", '"$PWD"/* "$PWD"', "exit_nonzero"],
  ])("ends a job that took away all permissions of %s as it ended", async (_, what, reason) => {
    await using worker = await new WorkerHarness({}, undefined, WITHOUT_OVERRIDE).start();
    const { job_id } = await worker.shell(
      `echo out; sleep 0.3; cd "$(dirname "$CLIO_RELAY_EVENTS")"; chmod 000 ${what}; sleep 0.3; exit 3`,
    );
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", outcome: { reason } });
    await goesOn(worker);
  });
});
