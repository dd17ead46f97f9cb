import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { isAlive } from "../../../src/lib/system/process-identity.ts";
import { eventually } from "../../runner/wait.ts";
import { historyFaults, WorkerHarness } from "./harness.ts";

let worker: WorkerHarness;
beforeAll(async () => {
  worker = await new WorkerHarness().start();
});
afterAll(() => worker[Symbol.asyncDispose]());

const workdir = (): string => fs.mkdtempSync(path.join(worker.directory, "work-"));

describe("a command", () => {
  test("succeeds with its output, artifacts and a complete history", async () => {
    const cwd = workdir();
    const { job_id } = await worker.shell("echo out; echo err >&2; echo data > result.txt", { workdir: cwd, outputs: ["*.txt"] });
    const { job, attempt } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "succeeded", attempts: 1, leased_by: null, outcome: { reason: "completed", exit_code: 0 } });
    expect(attempt).toMatchObject({ attempt: 1, state: "ended" });
    expect(await worker.stdout(job_id)).toBe("out\n");
    expect((await worker.client.log(job_id, "stderr")).text).toBe("err\n");
    const events = await worker.events(job_id);
    expect(historyFaults(events)).toEqual([]);
    expect(events.map((e) => e.event_type).filter((type) => type.startsWith("job."))).toEqual([
      "job.queued",
      "job.leased",
      "job.running",
      "job.succeeded",
    ]);
    const { artifacts } = await worker.client.artifacts(job_id);
    expect(artifacts.map((a) => a.kind).sort()).toEqual(["execution_output", "log_capture", "provenance", "stderr", "stdout"]);
    for (const artifact of artifacts) {
      const bytes = new Uint8Array(await (await worker.client.artifactContent(artifact.artifact_id)).arrayBuffer());
      expect(new Bun.CryptoHasher("sha256").update(bytes).digest("hex")).toBe(artifact.sha256);
    }
    expect((await worker.client.tasks(job_id)).tasks).toMatchObject([{ sequence: 1, state: "succeeded" }]);
  });

  test("fails with its exit code", async () => {
    const { job_id } = await worker.shell("exit 7");
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "failed", outcome: { reason: "exit_nonzero", exit_code: 7 } });
  });

  test("whose pipe somebody else keeps open ends, and says that its log may lack its end", async () => {
    const cwd = workdir();
    const { job_id } = await worker.shell("echo mine; until [ -e go ]; do sleep 0.02; done", { workdir: cwd });
    const { attempt } = await worker.running(job_id);
    const pipe = fs.openSync(`/proc/${attempt!.process!.pid}/fd/1`, "w");
    try {
      fs.writeFileSync(path.join(cwd, "go"), "");
      expect((await worker.ended(job_id)).job).toMatchObject({ state: "succeeded" });
    } finally {
      fs.closeSync(pipe);
    }
    const events = await worker.events(job_id);
    expect(events.find((e) => e.event_type === "execution.output_incomplete")).toMatchObject({ payload: { streams: ["stdout"] } });
    expect(historyFaults(events)).toEqual([]);
  });

  test("that cannot be found fails and says so", async () => {
    const { job_id } = await worker.submit({ argv: ["no-such-program-anywhere"] });
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", outcome: { reason: "spawn_failed" } });
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
  });

  test("whose working directory is missing fails and says so", async () => {
    const { job_id } = await worker.submit({ argv: ["true"], workdir: "/no/such/directory" });
    expect((await worker.ended(job_id)).job.outcome).toMatchObject({ reason: "spawn_failed" });
  });

  test("whose declared output is missing fails although it exited with 0", async () => {
    const { job_id } = await worker.shell("true", { outputs: ["missing.txt"], workdir: workdir() });
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", outcome: { reason: "output_missing", exit_code: 0 } });
    expect(job.last_error).toContain("missing.txt");
  });

  test("whose working directory is replaced by a link while it runs has no outputs from elsewhere", async () => {
    const cwd = workdir();
    const other = workdir();
    fs.writeFileSync(path.join(other, "result.txt"), "not the job's");
    const { job_id } = await worker.shell(`mv ${cwd} ${cwd}.old; ln -s ${other} ${cwd}`, { workdir: cwd, outputs: ["*.txt"] });
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "failed", outcome: { reason: "output_missing" } });
    const { artifacts } = await worker.client.artifacts(job_id);
    expect(artifacts.filter(({ kind }) => kind === "execution_output")).toEqual([]);
    const refused = (await worker.events(job_id)).find((e) => e.event_type === "artifact.refused");
    expect(refused?.message).toContain("no longer the one that the job started in");
  });

  test("gets arguments, variables and working directory as they were given, whatever they hold", async () => {
    const cwd = path.join(workdir(), "a 'quoted'\n日本 dir");
    fs.mkdirSync(cwd);
    const strange = "two\nlines \"and\" 'quotes' $HOME `x` \\ é";
    const { job_id } = await worker.submit({
      argv: ["/bin/sh", "-c", 'printf "%s|%s|%s" "$1" "$STRANGE" "$PWD"', "sh", strange],
      env: { STRANGE: strange },
      workdir: cwd,
    });
    await worker.ended(job_id);
    expect(await worker.stdout(job_id)).toBe(`${strange}|${strange}|${cwd}`);
  });

  test("sees an allow-list of variables and no credential", async () => {
    const { job_id } = await worker.submit({ argv: ["env", "-0"] });
    await worker.ended(job_id);
    const names = (await worker.stdout(job_id))
      .split("\0")
      .filter(Boolean)
      .map((line) => line.split("=")[0]!);
    expect(names).toContain("PATH");
    expect(names).toContain("CLIO_RELAY_EVENTS");
    expect(names).not.toContain("WORKER_OPTIONS");
    expect(names.filter((name) => /TOKEN|SECRET/.test(name))).toEqual([]);
  });
});

describe("a script", () => {
  test("runs under the interpreter that it names", async () => {
    const { job_id } = await worker.submit({ script: "#!/usr/bin/env bash\narray=(a b c)\necho ${#array[@]}\n" });
    await worker.ended(job_id);
    expect(await worker.stdout(job_id)).toBe("3\n");
  });

  test("without a #! line runs under /bin/sh", async () => {
    const { job_id } = await worker.submit({ script: "echo plain; exit 3" });
    expect((await worker.ended(job_id)).job.outcome).toMatchObject({ exit_code: 3 });
    expect(await worker.stdout(job_id)).toBe("plain\n");
  });
});

describe("time and retries", () => {
  test("a command that runs out of time is ended, children included", async () => {
    const { job_id } = await worker.shell("sleep 600 & sleep 600; wait", { timeout_seconds: 0.5 });
    const { job, attempt } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "failed", outcome: { reason: "timeout" } });
    expect(isAlive(attempt!.process!)).toBe(false);
    expect((await worker.events(job_id)).map((e) => e.event_type)).toContain("execution.timeout");
  });

  test("a failed attempt is tried again, and the log is that of all attempts", async () => {
    const cwd = workdir();
    const { job_id } = await worker.shell('n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) > n; echo "try $n"; test "$n" = 1', {
      workdir: cwd,
      retries: 3,
    });
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "succeeded", attempts: 2 });
    expect(await worker.stdout(job_id)).toBe("try 0\ntry 1\n");
    expect(historyFaults(await worker.events(job_id))).toEqual([]);
    expect((await worker.client.attempts(job_id)).attempts.map((a) => a.outcome?.reason)).toEqual(["exit_nonzero", "completed"]);
  });
});

describe("cancel", () => {
  test("ends a running job with everything it started, daemons and those that ignore TERM", async () => {
    const cwd = workdir();
    const line =
      "setsid sh -c 'trap \"\" TERM; echo $$ > daemon; sleep 600' & trap '' TERM; while [ ! -s daemon ]; do sleep 0.05; done; echo up; sleep 600; sleep 600";
    const { job_id } = await worker.shell(line, { workdir: cwd });
    await eventually(async () => (await worker.stdout(job_id)).includes("up"));
    const daemon = Number(fs.readFileSync(path.join(cwd, "daemon"), "utf8"));
    const asked = await worker.client.cancel(job_id);
    expect(asked.cancellation_request).toMatchObject({ previous_state: "running", acknowledged_at: null });
    const { job } = await worker.ended(job_id);
    expect(job).toMatchObject({ state: "canceled", outcome: { reason: "canceled", residual: [] } });
    expect(fs.existsSync(`/proc/${daemon}`)).toBe(false);
    expect(job.cancellation_request?.acknowledged_at).not.toBeNull();
  });

  test("ends the collecting of outputs, too, and keeps what had been collected", async () => {
    const cwd = workdir();
    const { job_id } = await worker.shell("echo kept > a; truncate -s 8T b", { workdir: cwd, outputs: ["a", "b"] });
    await eventually(() => fs.existsSync(path.join(worker.attemptDir(job_id), "exit.json")), { what: "the end of the command" });
    // The copy of the first: what follows is the one that would take hours.
    const artifacts = path.join(path.dirname(worker.attemptDir(job_id)), "artifacts");
    await eventually(() => fs.readdirSync(artifacts).some((name) => name.startsWith("artifact_")), { what: "the first output" });
    await worker.client.cancel(job_id);
    expect((await worker.ended(job_id)).job).toMatchObject({ state: "canceled", outcome: { reason: "canceled", exit_code: 0 } });
    const collected = (await worker.client.artifacts(job_id)).artifacts.filter(({ kind }) => kind === "execution_output");
    expect(collected.map(({ name }) => name)).toEqual(["a"]);
    const events = await worker.events(job_id);
    expect(historyFaults(events)).toEqual([]);
    expect(events.map((e) => e.event_type)).toContain("job.cancel_acknowledged");
  });

  test("of an ended job changes nothing", async () => {
    const { job_id } = await worker.shell("true");
    const { job } = await worker.ended(job_id);
    expect(await worker.client.cancel(job_id)).toEqual(job);
  });
});

describe("reports from inside", () => {
  test("lines in CLIO_RELAY_EVENTS become progress and task events; bad ones are refused one by one", async () => {
    const line = `cat > "$CLIO_RELAY_EVENTS/own.jsonl" <<'END'
{"type":"progress","label":"epochs","current":1,"total":3,"unit":"epochs"}
not json
{"type":"task-event","event_type":"dataset_found","label":"dataset","summary":"found it","path_refs":["/data/x"]}
{"type":"progress","label":"epochs","current":2,"total":3,"unit":"epochs"}
END`;
    const { job_id } = await worker.shell(line);
    const status = await worker.ended(job_id);
    expect(status.progress).toMatchObject([{ label: "epochs", current: 2, total: 3 }]);
    const { tasks } = await worker.client.tasks(job_id);
    expect((await worker.client.taskEvents(tasks[0]!.task_id)).events).toMatchObject([
      { seq: 1, event_type: "dataset_found", summary: "found it", path_refs: ["/data/x"] },
    ]);
    expect((await worker.events(job_id)).filter((e) => e.event_type === "emit.refused").length).toBe(1);
  });
});

test("a job that floods its event file can be cancelled, and reads and writes go on", async () => {
  // Without a pause a busy worker would have as much to read over as it reads at most, which takes it minutes.
  const pieces = `while :; do yes '{"type":"progress","current":1}' | head -c 20000; sleep 0.1; done`;
  const { job_id } = await worker.shell(`${pieces} > "$CLIO_RELAY_EVENTS/flood.jsonl"`);
  const { attempt } = await worker.running(job_id);
  await eventually(async () => (await worker.client.progress(job_id)).total > 1_000);
  const other = await worker.shell("echo meanwhile");
  await worker.ended(other.job_id);
  await worker.client.cancel(job_id);
  await eventually(() => !isAlive(attempt!.process!), { what: "the end of the flood" });
  expect((await worker.ended(job_id)).job.state).toBe("canceled");
  expect(historyFaults(await worker.events(other.job_id))).toEqual([]);
});

describe("following", () => {
  test("a follower gets every byte as it comes, and ends with the job", async () => {
    const { job_id } = await worker.shell("for i in 1 2 3 4 5; do echo line $i; sleep 0.1; done");
    const response = await worker.client.logContent(job_id, "stdout", { follow: true });
    expect(await response.text()).toBe("line 1\nline 2\nline 3\nline 4\nline 5\n");
    expect((await worker.client.job(job_id)).state).toBe("succeeded");
  });

  test("a follower from before the first attempt sees all attempts", async () => {
    const cwd = workdir();
    const { job_id } = await worker.shell("test -e seen && { echo second; exit 0; }; touch seen; echo first; exit 1", {
      workdir: cwd,
      retries: 1,
    });
    expect(await (await worker.client.logContent(job_id, "stdout", { follow: true })).text()).toBe("first\nsecond\n");
  });

  test("an event stream gives every event once and ends with terminal", async () => {
    const { job_id } = await worker.shell("echo one; sleep 0.2; echo two");
    const seen: number[] = [];
    const stream = worker.client.eventStream(job_id);
    let last = await stream.next();
    for (; !last.done; last = await stream.next()) seen.push(last.value.seq);
    expect(last.value).toBe("terminal");
    expect(seen).toEqual((await worker.events(job_id)).map((e) => e.seq));
  });
});

test("a job that daemonises and exits is over; what it left is ended", async () => {
  const cwd = workdir();
  const { job_id } = await worker.shell("setsid sh -c 'echo $$ > daemon; exec sleep 600' & while [ ! -s daemon ]; do sleep 0.02; done", {
    workdir: cwd,
  });
  const { job } = await worker.ended(job_id);
  expect(job.state).toBe("succeeded");
  expect(fs.existsSync(`/proc/${fs.readFileSync(path.join(cwd, "daemon"), "utf8").trim()}`)).toBe(false);
});

test("jobs that wait start in the order of their submission", async () => {
  const blockers = await Promise.all(Array.from({ length: 4 }, () => worker.shell("sleep 600")));
  const queued: string[] = [];
  for (let i = 0; i < 3; i++) queued.push((await worker.shell("true")).job_id);
  expect((await worker.client.status(queued[2]!)).relay_queue).toMatchObject({ state: "queued", jobs_ahead: 2, position: 3 });
  for (const { job_id } of blockers) await worker.client.cancel(job_id);
  const claimed: string[] = [];
  for (const id of queued) {
    await worker.ended(id);
    const events = await worker.events(id);
    claimed.push(events.find((e) => e.event_type === "job.leased")!.created_at);
  }
  expect(claimed).toEqual(claimed.toSorted());
});
