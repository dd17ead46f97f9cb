import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { isAlive } from "../../../src/lib/system/process-identity.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";

const D = 'd=$(dirname "$CLIO_RELAY_EVENTS");';

async function goesOn(worker: WorkerHarness): Promise<void> {
  const jobs = await Promise.all(Array.from({ length: 3 }, (_, i) => worker.shell(`echo ${i}`)));
  for (const { job_id } of jobs) expect((await worker.ended(job_id)).job.state).toBe("succeeded");
  expect((await worker.client.workers()).workers[0]!.active_leases_by_kind).toEqual({});
}

const aboutDirectory = async (worker: WorkerHarness, jobId: string): Promise<string[]> =>
  (await worker.events(jobId))
    .filter(
      ({ event_type, payload }) =>
        event_type === "execution.spool_damaged" && ["directory", "start.json"].includes(String(payload["about"])),
    )
    .map(({ message }) => message);

describe("a job that removes what its shim has reserved", () => {
  test.each([
    ["the room for its end", "rm -f $d/.exit.json*"],
    ["all hidden files", "rm -rf $d/.[a-z]*"],
    ["every file", "rm -rf $d/* $d/.[a-z]*"],
  ])("%s: ends as it ended", async (_, line) => {
    await using worker = await new WorkerHarness().start();
    const runs = path.join(worker.directory, "runs");
    const { job_id } = await worker.shell(`echo run >> ${runs}; ${D} ${line}; exit 3`);
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", attempts: 1, outcome: { reason: "exit_nonzero", exit_code: 3 } });
    expect(fs.readFileSync(runs, "utf8")).toBe("run\n");
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
    await goesOn(worker);
  });
});

describe("a job that puts something else in the place of its directory", () => {
  const ways: Record<string, (elsewhere: string) => string> = {
    "an empty directory": () => "mv $d $d.x; mkdir $d",
    "an empty directory, the old one removed": () => "rm -rf $d; mkdir $d",
    "a link": (elsewhere) => `mv $d $d.x; ln -s ${elsewhere} $d`,
    "a link in the place of the job's": (elsewhere) => `j=$(dirname $d); mv $j $j.x; mkdir ${elsewhere}/attempt-1; ln -s ${elsewhere} $j`,
  };

  test.each(Object.entries(ways).flatMap(([name, way]) => [true, false].map((later) => [name, later ? "later" : "at once", way] as const)))(
    "%s, %s: ends with its outcome unknown, once, and nothing is written elsewhere",
    async (_, when, way) => {
      await using worker = await new WorkerHarness().start();
      const elsewhere = path.join(worker.directory, "elsewhere");
      fs.mkdirSync(elsewhere);
      fs.writeFileSync(path.join(elsewhere, "script"), "", { mode: 0o755 });
      const runs = path.join(worker.directory, "runs");
      const { job_id } = await worker.shell(`echo run >> ${runs}; ${when === "later" ? "sleep 0.3;" : ""} ${D} ${way(elsewhere)}; exit 0`, {
        outputs: ["*.none"],
      });
      const { job } = await worker.ended(job_id);
      expect(job).toMatchObject({ state: "failed", attempts: 1, outcome: { reason: "outcome_unknown" } });
      expect(fs.readFileSync(runs, "utf8")).toBe("run\n");
      expect(fs.readdirSync(elsewhere, { recursive: true }).filter((file) => file !== "script" && file !== "attempt-1")).toEqual([]);
      expect(fs.statSync(path.join(elsewhere, "script")).mode & 0o777).toBe(0o755);
      expect((await aboutDirectory(worker, job_id)).length).toBe(1);
      expect(historyFaults(await worker.events(job_id))).toEqual([]);
      await goesOn(worker);
    },
  );

  test.each([
    ["a link to it", (other: string) => `mv $d $d.x; ln -s ${other} $d`],
    ["itself", (other: string) => `mv $d $d.x; mv ${other} $d`],
  ])("another job's (%s) gets none of that one's end, and what it leaves is not touched", async (kind, way) => {
    await using worker = await new WorkerHarness().start();
    const release = path.join(worker.directory, "release");
    const { job_id: other } = await worker.shell(`echo other; until [ -e ${release} ]; do sleep 0.05; done; echo over`);
    await worker.running(other);
    const { job_id } = await worker.shell(`echo own; sleep 0.3; ${D} ${way(worker.attemptDir(other))}; exit 0`);
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", outcome: { reason: "outcome_unknown" } });
    expect((await aboutDirectory(worker, job_id)).length).toBe(1);
    if (kind === "a link to it") expect(await worker.stdout(job_id).catch(() => "")).not.toContain("other");
    fs.writeFileSync(release, "");
    const ended = (await worker.ended(other)).job;
    if (kind === "a link to it") {
      expect(ended.state).toBe("succeeded");
      expect(await worker.stdout(other)).toBe("other\nover\n");
    } else expect(ended).toMatchObject({ state: "failed", outcome: { reason: "outcome_unknown" } });
    await goesOn(worker);
  });

  test("a link: a cancel ends it, and leaves no cancel.json elsewhere", async () => {
    await using worker = await new WorkerHarness({ limits: { cancelGraceSeconds: 1 } }).start();
    const elsewhere = path.join(worker.directory, "elsewhere");
    fs.mkdirSync(elsewhere);
    const { job_id } = await worker.shell(
      `until [ -e ${elsewhere}.go ]; do sleep 0.05; done; ${D} mv $d $d.x; ln -s ${elsewhere} $d; touch ${elsewhere}.done; exec sleep 600`,
    );
    const { attempt } = await worker.running(job_id);
    fs.writeFileSync(`${elsewhere}.go`, "");
    await eventually(() => fs.existsSync(`${elsewhere}.done`));
    await worker.client.cancel(job_id);
    expect((await worker.ended(job_id)).job.state).toBe("canceled");
    expect(isAlive(attempt!.process!)).toBe(false);
    expect(fs.readdirSync(elsewhere)).toEqual([]);
  });

  test("a link in the place of artifacts: the documents are left out, which the history says", async () => {
    await using worker = await new WorkerHarness().start();
    const elsewhere = path.join(worker.directory, "elsewhere");
    fs.mkdirSync(elsewhere);
    const { job_id } = await worker.shell(`sleep 0.2; ${D} ln -s ${elsewhere} $d/../artifacts; echo x > r`, {
      outputs: ["r"],
      workdir: worker.directory,
    });
    await worker.ended(job_id);
    expect(fs.readdirSync(elsewhere)).toEqual([]);
    const said = (await worker.events(job_id)).filter((event) => event.event_type === "execution.spool_damaged");
    expect(said.map(({ payload }) => payload["about"])).toContain("documents");
    await goesOn(worker);
  });
});

test("a log that a job made larger than any disk: its end is settled, its log is what was written", async () => {
  await using worker = await new WorkerHarness().start();
  const { job_id } = await worker.shell(
    `${D} echo aaaa; until [ -s "$d/stdout.log" ]; do sleep 0.05; done; truncate -s 7T "$d/stdout.log"; sleep 0.5`,
  );
  const { job } = await worker.ended(job_id);
  expect(job.state).toBe("succeeded");
  const { artifacts } = await worker.client.artifacts(job_id);
  expect(artifacts.find(({ kind }) => kind === "stdout")).toMatchObject({ size_bytes: 5 });
  const said = (await worker.events(job_id)).filter((event) => event.event_type === "execution.spool_damaged");
  expect(said.map(({ message }) => message).join()).toContain("bytes behind the 5 bytes");
  await goesOn(worker);
});

test("a record that says more was kept than may be counts as none", async () => {
  await using worker = await new WorkerHarness().start();
  const stream = { observed: 2 ** 53 - 1, kept: 2 ** 53 - 1, dropped: 0, truncated: null, complete: true, sha256: null };
  const forged = JSON.stringify({
    record_version: 1,
    outcome: { reason: "completed", exit_code: 0, signal: null, message: "", residual: [] },
    started_at: null,
    ended_at: "2026-01-01T00:00:00.000Z",
    streams: { stdout: stream, stderr: stream },
    usage: null,
    leftover: 0,
  });
  const { job_id } = await worker.shell(`echo out; sleep 0.2; ${D} printf '%s' "$FORGED" > $d/exit.json`, { env: { FORGED: forged } });
  const { job, logs } = await worker.ended(job_id);
  expect(job).toMatchObject({ state: "failed", outcome: { reason: "outcome_unknown" } });
  expect(logs.find((log) => log.stream === "stdout")).toMatchObject({ size_bytes: 4 });
  await goesOn(worker);
});
