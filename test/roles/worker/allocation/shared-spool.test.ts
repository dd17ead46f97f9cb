import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { InputRecord } from "../../../../src/domain/input.ts";
import { sha256Hex } from "../../../../src/lib/digest.ts";
import { temporaryDirectory } from "../../../runner/temporary.ts";
import { eventually } from "../../../runner/wait.ts";
import { Site, TIMES } from "./site.ts";

test("a job in an allocation has its directory, and its inputs, in the spool that compute nodes see, others in the cluster's", async () => {
  using shared = temporaryDirectory();
  const environment = { ...process.env, HOSTNAME: "login1", XDG_RUNTIME_DIR: "/run/user/1" };
  await using site = new Site({ sharedSpoolDir: path.join(shared.path, "local"), environment });
  await site.start();
  const { body } = await site.worker.call<InputRecord>(
    "POST",
    "/input-artifacts/ingest",
    JSON.stringify({
      schema_version: "clio-relay.input-artifact-ingest.v1",
      cluster: "local",
      logical_name: "in.lj",
      size_bytes: 5,
      sha256: sha256Hex("lj 1\n"),
      idempotency_key: "in",
      data_base64: Buffer.from("lj 1\n").toString("base64"),
    }),
  );
  const { artifact_id, sha256 } = body.artifact;
  const { job_id } = await site.submit(
    'cat "$CLIO_RELAY_INPUT_DECK"; echo "$CLIO_RELAY_INPUT_DECK" > where; env | grep -c "^\\(HOSTNAME\\|XDG_RUNTIME_DIR\\)="; true',
    { inputs: { deck: artifact_id }, outputs: ["where"] },
    { used_artifact_refs: [{ artifact_id, sha256 }] },
  );
  expect((await site.worker.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
  expect(await site.worker.stdout(job_id)).toBe("lj 1\n0\n");
  const attempt = path.join(shared.path, "local", job_id, "attempt-1");
  expect(fs.readFileSync(path.join(site.directory, "where"), "utf8").trim()).toBe(path.join(attempt, "inputs", sha256, "in.lj"));
  expect(fs.existsSync(path.join(attempt, "exit.json"))).toBe(true);
  expect(fs.existsSync(path.join(site.worker.spoolDir, job_id))).toBe(false);
  const { artifacts } = await site.worker.client.artifacts(job_id);
  const document = artifacts.find(({ name }) => name === "provenance.json");
  expect(await (await site.worker.client.artifactContent(document?.artifact_id ?? "")).text()).toContain(job_id);

  const local = await site.worker.shell("echo here");
  expect((await site.worker.ended(local.job_id)).job.state).toBe("succeeded");
  expect(fs.existsSync(path.join(site.worker.spoolDir, local.job_id))).toBe(true);
});

test("a job that is at the scheduler when another shared spool is named goes on where it lies; the next one gets the new place", async () => {
  using shared = temporaryDirectory();
  const [before, after] = ["before", "after"].map((name) => path.join(shared.path, name)) as [string, string];
  await using site = new Site({ sharedSpoolDir: before });
  await site.start();
  // It ends when it is let, so that it outlives the change.
  const go = path.join(site.directory, "go");
  const { job_id } = await site.submit(`echo began; while [ ! -e ${go} ]; do sleep 0.05; done; echo done`);
  await site.worker.running(job_id);
  await site.worker.drain();
  for (const sharedSpoolDir of [after, null, after]) {
    await using other = site.beside({ sharedSpoolDir });
    await other.start();
    expect(await other.stdout(job_id)).toBe("began\n");
    expect((await other.client.status(job_id)).job.state).toBe("running");
    await other.drain();
  }
  fs.writeFileSync(go, "");
  await using last = site.beside({ sharedSpoolDir: after });
  await last.start();
  expect((await last.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
  expect(await last.stdout(job_id)).toBe("began\ndone\n");
  const next = await last.submit({ argv: ["true"], scheduler: {} });
  expect((await last.ended(next.job_id)).job.state).toBe("succeeded");
  expect([before, after].map((place) => fs.readdirSync(place).filter((name) => !name.startsWith(".")))).toEqual([[job_id], [next.job_id]]);
  expect(site.scheduler.jobs()).toHaveLength(2);
});

test("a shared spool that is not there while jobs are at the scheduler keeps the worker from starting, and from ending them", async () => {
  using shared = temporaryDirectory();
  const before = path.join(shared.path, "before");
  await using site = new Site({ sharedSpoolDir: before });
  site.scheduler.behave({ holds: true });
  await site.start();
  const { job_id } = await site.submit("echo said");
  await eventually(async () => (await site.events(job_id, "scheduler.job_detected")).length === 1, { what: "its submission" });
  await site.worker.drain();
  fs.renameSync(before, `${before}.away`);
  await using refused = site.beside({ sharedSpoolDir: null });
  await expect(refused.start()).rejects.toThrow(before);
  // A mount point without its file system: empty, or with what was in it before that was mounted.
  for (const [sharedSpoolDir, found] of [
    [null, "other"],
    [before, "other"],
    [before, ".clio-relay-spool"],
  ] as const) {
    fs.mkdirSync(before, { recursive: true });
    fs.writeFileSync(path.join(before, found), "0123456789abcdef0123456789abcdef\n");
    await using unmounted = site.beside({ sharedSpoolDir });
    await expect(unmounted.start()).rejects.toThrow("not mounted");
  }
  fs.rmSync(before, { recursive: true });
  fs.renameSync(`${before}.away`, before);
  await using next = site.beside({ sharedSpoolDir: null });
  await next.start();
  site.scheduler.say("1", null);
  site.scheduler.run("1");
  expect((await next.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
  expect(site.scheduler.jobs()).toHaveLength(1);
  await eventually(async () => (await site.events(job_id, "scheduler.job_completed")).length === 1, { what: "the scheduler's word" });
  // Nothing is open any more, so that nobody misses it.
  await next.drain();
  fs.rmSync(before, { recursive: true });
  await using free = site.beside({ sharedSpoolDir: null });
  await free.start();
  expect((await free.client.status(job_id)).job.state).toBe("succeeded");
});

test("output that comes later through the file system than the record of its end is not lost", async () => {
  await using site = new Site();
  await site.start();
  const go = path.join(site.directory, "go");
  const { job_id } = await site.submit(`echo began; while [ ! -e ${go} ]; do sleep 0.05; done; echo done`);
  await site.worker.running(job_id);
  await site.worker.drain();
  fs.writeFileSync(go, "");
  const attempt = site.worker.attemptDir(job_id);
  await eventually(() => fs.existsSync(path.join(attempt, "exit.json")), { what: "its end" });
  fs.renameSync(path.join(attempt, "stdout.log"), path.join(site.directory, "late"));
  const worker = site.beside({ scheduling: { choice: "slurm", fake: site.scheduler.directory, times: { ...TIMES, lag: 600_000 } } });
  await worker.start();
  const obstacle = async () => (await worker.client.status(job_id)).obstacle;
  await eventually(async () => (await obstacle())?.includes("not to be seen here yet"), { what: "that it waits" });
  fs.renameSync(path.join(site.directory, "late"), path.join(attempt, "stdout.log"));
  expect((await worker.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
  expect(await worker.stdout(job_id)).toBe("began\ndone\n");
  expect(await site.events(job_id, "execution.spool_damaged")).toEqual([]);
});

test("while its file system is away nothing is decided about a job: what waits, runs or ends there goes on, and nothing runs twice", async () => {
  using shared = temporaryDirectory();
  const spool = path.join(shared.path, "spool");
  const away = path.join(shared.path, "away");
  await using site = new Site({ sharedSpoolDir: spool });
  site.scheduler.behave({ holds: true });
  await site.start();
  const ran = path.join(site.directory, "ran");
  const line = `echo began; echo once >> ${ran}`;
  const [waiting, running] = [await site.submit(line, { retries: 1 }), await site.submit(`${line}; sleep 600`)];
  const detected = async (id: string) => (await site.events(id, "scheduler.job_detected"))[0]?.payload?.["scheduler_job_id"] as string;
  const ids = await Promise.all(
    [waiting, running].map(({ job_id }) => eventually(() => detected(job_id), { what: `the submission of ${job_id}` })),
  );
  const [first, second] = ids as [string, string];
  site.scheduler.say(second, null);
  site.scheduler.run(second);
  await site.worker.running(running.job_id);
  // The mount point without its file system, which nodes still have: there what waits runs to its end, and what runs loses its node.
  fs.renameSync(spool, away);
  fs.mkdirSync(spool);
  for (const [id, state] of [
    [first, "COMPLETED"],
    [second, "NODE_FAIL"],
  ] as const)
    site.scheduler.say(id, { phase: state === "COMPLETED" ? "completed" : "failed", raw_state: state });
  const obstacle = async (id: string) => (await site.worker.client.status(id)).obstacle;
  for (const { job_id } of [waiting, running])
    await eventually(async () => (await obstacle(job_id))?.includes("not mounted"), { what: "that it waits for its directory" });
  const third = await site.submit(line);
  await eventually(async () => (await obstacle(third.job_id))?.includes("not mounted"), { what: "that nothing new is submitted" });
  expect(site.scheduler.jobs()).toHaveLength(2);
  expect(fs.readdirSync(spool)).toEqual([]);
  site.scheduler.say(first, { phase: "pending", raw_state: "PENDING" });
  const phase = async () => (await site.worker.client.status(waiting.job_id)).scheduler?.[0]?.status?.phase;
  await eventually(async () => (await phase()) === "pending", { what: "the scheduler's word" });
  fs.rmdirSync(spool);
  fs.renameSync(away, spool);
  site.scheduler.behave({ holds: false });
  site.scheduler.say(first, null);
  site.scheduler.run(first);
  for (const { job_id } of [waiting, third]) expect((await site.worker.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
  site.scheduler.signal(second, "SIGKILL");
  expect((await site.worker.ended(running.job_id)).job.outcome).toMatchObject({ reason: "outcome_unknown" });
  expect(fs.readFileSync(ran, "utf8")).toBe("once\n".repeat(3));
  expect(site.scheduler.jobs()).toHaveLength(3);
});
