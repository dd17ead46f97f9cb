import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { startDaemon } from "../roles/desktop/daemon.ts";
import { eventually } from "../runner/wait.ts";
import { initialized, SourceRelay, withWorker } from "./source-relay.ts";

test("init makes what is missing, for the user alone, and can be repeated", async () => {
  await using relay = new SourceRelay();
  const first = await relay.ok("init");
  expect(first).toBe(`initialized core=${relay.home}/core spool=${relay.home}/spool clusters=${relay.home}/config/clusters.json`);
  for (const name of ["config", "core", "spool", "cache", "run", "log"]) {
    expect([name, fs.statSync(path.join(relay.home, name)).mode & 0o777]).toEqual([name, 0o700]);
  }
  await relay.ok("cluster", "add", "--name", "local", "--worker-concurrency", "7");
  await relay.ok("cluster", "add", "two");
  const registry = path.join(relay.home, "config", "clusters.json");
  const before = fs.statSync(registry);
  expect(await relay.run(["init"])).toEqual({
    code: 0,
    stdout: `${first}\n`,
    stderr: "notice: all of it was there, and nothing was changed; clusters: local, two\n",
  });
  expect(await relay.json("init")).toMatchObject({ cluster_names: ["local", "two"], changed: false });
  expect(fs.statSync(registry)).toMatchObject({ ino: before.ino, mtimeMs: before.mtimeMs });
  fs.rmdirSync(path.join(relay.home, "spool"));
  expect(await relay.run(["init"])).toEqual({ code: 0, stdout: `${first}\n`, stderr: "" });
  await relay.ok("cluster", "remove", "local", "--yes");
  expect(await relay.json("init")).toMatchObject({ cluster_names: ["two", "local"], changed: true });
  await relay.ok("cluster", "add", "--name", "local", "--worker-concurrency", "7");
  expect(await relay.json("cluster", "show", "local")).toMatchObject({ worker_capacity: { concurrency: 7 } });
});

describe("clusters", () => {
  test("add, list, show, change, remove", async () => {
    await using relay = await initialized();
    fs.writeFileSync(path.join(relay.directory, "setup.sh"), "module load python\n");
    const added = await relay.run([
      "cluster",
      "add",
      "--name",
      "two",
      "--env-setup",
      "@setup.sh",
      "--worker-kind-concurrency",
      "mcp_call=1",
    ]);
    // Whoever has forgotten how it is reached is told what was made.
    expect([added.stdout, added.stderr]).toEqual([
      "added two\n",
      expect.stringMatching(/^notice: two is a cluster of this machine; .*--ssh-host HOST/),
    ]);
    expect(await relay.ok("cluster", "add", "--name", "two", "--worker-concurrency", "5", "--worker-kind-concurrency=command=4")).toBe(
      "changed two",
    );
    const entry = {
      name: "two",
      mode: "local",
      env_setup: "module load python\n",
      worker_capacity: { concurrency: 5, control_query_concurrency: 1, kind_concurrency: { mcp_call: 1, command: 4 } },
    };
    expect(await relay.json("cluster", "show", "two")).toEqual({ ...entry, route_revision: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(await relay.ok("cluster", "show", "two")).toMatch(/^scheduler +none \(external\)$/m);
    expect(await relay.json("cluster", "add", "--name", "two", "--clear-kind-concurrency", "--clear-env-setup")).toMatchObject({
      env_setup: null,
      worker_capacity: { concurrency: 5, kind_concurrency: {} },
    });
    expect(await relay.ok("cluster", "list")).toBe("local\tlocal\t3\t2\ntwo\tlocal\t5\t4");
    const ambiguous = await relay.run(["job", "list"]);
    expect(ambiguous.code).toBe(2);
    expect(ambiguous.stderr).toBe(
      `error: --cluster is needed: local, two [usage]\nhint: or set CLIO_RELAY_CLUSTER, or default_cluster = "local" in ${relay.home}/config/config.toml\n`,
    );
    expect((await relay.run(["job", "list"], { env: { CLIO_RELAY_CLUSTER: "two" } })).stderr).toContain("no worker is running for two");
    fs.writeFileSync(path.join(relay.home, "config", "config.toml"), 'default_cluster = "two"\n');
    expect((await relay.run(["job", "list"])).stderr).toContain("no worker is running for two");
    const connected = await relay.run(["connect", "two"]);
    expect([connected.code, connected.stdout, connected.stderr]).toEqual([
      5,
      "",
      "error: no worker is running for two [worker_not_running]\nhint: clio-relay worker start --cluster two\n",
    ]);
    expect(await relay.ok("disconnect", "two")).toBe("two is on this machine: there is no link to end");
    const removed = await relay.run(["cluster", "remove", "--name", "two", "--yes"]);
    expect([removed.stdout, removed.stderr]).toEqual(["removed two\n", expect.stringContaining("clio-relay worker stop --cluster two")]);
    expect((await relay.run(["cluster", "remove", "two"])).code).toBe(3);
  });

  test("what cannot be honoured is refused, and nothing of it is kept", async () => {
    await using relay = await initialized();
    for (const args of [
      ["--ssh-host", "x", "--agent-adapter", "exec"],
      ["--ssh-host", "x", "--agent-npm-package", "agent"],
      ["--scheduler-provider", "pbs"],
      ["--worker-concurrency", "2", "--worker-control-query-concurrency", "2"],
    ]) {
      const result = await relay.run(["cluster", "add", "--name", "far", ...args]);
      expect([args, result.code, result.stdout]).toEqual([args, 2, ""]);
    }
    expect(await relay.ok("cluster", "list")).toBe("local\tlocal\t3\t2");
    fs.writeFileSync(path.join(relay.directory, "large"), "#".repeat(65_537));
    for (const [args, code, message] of [
      [["--env-setup-file", "none.sh"], 2, "--env-setup-file none.sh: there is no such file [local_file_missing]"],
      [["--env-setup", "@."], 1, "--env-setup @.: that is a directory [local_file_unusable]"],
      [["--env-setup-file", "large"], 2, "--env-setup-file large holds 65537 bytes, more than 65536 [payload_too_large]"],
    ] as const) {
      const result = await relay.run(["cluster", "add", "--name", "far", ...args]);
      expect([result.code, result.stderr]).toEqual([code, `error: ${message}\n`]);
    }
    // The same host by another name is this machine.
    expect(await relay.ok("cluster", "add", "--name", "near", "--ssh-host", "localhost")).toBe("added near");
  });
});

describe("a worker", () => {
  test("is started once, named, stopped, and its job goes on to the next", async () => {
    await using relay = await initialized();
    expect((await relay.run(["worker", "status"])).code).toBe(5);
    expect(await relay.ok("worker", "stop")).toBe("no worker is running for local");
    const started = await relay.json<{ pid: number }>("worker", "start", "--concurrency", "4");
    expect(started).toMatchObject({ cluster: "local", state: "started", log: path.join(relay.home, "log", "worker-local.log") });
    expect(await relay.ok("worker", "start")).toMatch(/^worker of local runs already as process \d+$/);
    expect(await relay.json("worker", "status")).toMatchObject({
      worker_count: 1,
      workers: [{ cluster: "local", process: { pid: started.pid }, capacity: { concurrency: 4 } }],
    });
    const second = await relay.run(["worker", "run", "--cluster", "local"]);
    expect(second.code).toBe(7);
    expect(second.stderr).toContain(`process ${started.pid} on `);
    expect(second.stderr).toContain("[queue_owned]");
    const id = await relay.submit("--", "sh", "-c", "exec sleep 1000");
    await eventually(async () => (await relay.json<{ job: { state: string } }>("job", "status", id)).job.state === "running");
    expect(await relay.ok("worker", "stop")).toBe(`stopped process ${started.pid}`);
    expect((await relay.run(["job", "status", id])).code).toBe(5);
    // The reference's name for the same, and its way to say which role.
    const endpoint = relay.start(["endpoint", "start", "--role", "worker", "--cluster", "local", "--scheduler-provider", "external"]);
    await eventually(async () => (await relay.run(["endpoint", "status"])).code === 0);
    expect(await relay.json("job", "status", id)).toMatchObject({ job: { state: "running", attempts: 1 } });
    await relay.ok("job", "cancel", id, "--wait");
    endpoint.kill("SIGTERM");
    expect(await endpoint.exited).toBe(0);
  });

  test("that twelve commands start at once is one, and each command names it", async () => {
    await using relay = await initialized();
    const results = await Promise.all(Array.from({ length: 12 }, () => relay.run(["worker", "start", "--json"])));
    const answers = results.map(({ code, stdout }) => ({ code, ...(JSON.parse(stdout) as { state: string; pid: number }) }));
    const workers = relay.processes("worker run");
    expect(workers).toHaveLength(1);
    expect(answers.map(({ code, pid }) => [code, pid])).toEqual(answers.map(() => [0, workers[0]!]));
    expect(answers.filter(({ state }) => state === "started")).toHaveLength(1);
    expect(answers.filter(({ state }) => state === "already_running")).toHaveLength(11);
    expect(await relay.ok("worker", "start")).toBe(`worker of local runs already as process ${workers[0]}`);
  });

  test("needs no home directory", async () => {
    await using relay = await initialized({ HOME: "/proc/nowhere" });
    const { pid } = await relay.json<{ pid: number }>("worker", "start");
    expect(fs.readlinkSync(`/proc/${pid}/cwd`)).toBe("/");
  });

  test("that runs already keeps its limits, and who changes them is told when they apply", async () => {
    await using relay = await initialized();
    const { pid } = await relay.json<{ pid: number }>("worker", "start", "--concurrency", "4");
    const notice = /^notice: .* when it is restarted: (clio-relay worker stop --cluster local && (?:\S+ ?)+)\n$/;
    const commandIn = ({ code, stderr }: { code: number; stderr: string }) => [code, notice.exec(stderr)?.[1] ?? stderr];
    const restart = "clio-relay worker stop --cluster local && clio-relay worker start --cluster local";
    // As it runs, or nothing said: there is nothing to tell.
    expect(commandIn(await relay.run(["worker", "start"]))).toEqual([0, ""]);
    expect(commandIn(await relay.run(["worker", "start", "--concurrency", "4"]))).toEqual([0, ""]);
    const other = ["--concurrency", "5", "--kind-concurrency", "command=2"];
    expect(commandIn(await relay.run(["worker", "start", ...other]))).toEqual([0, `${restart} ${other.join(" ")}`]);
    const change = (...options: string[]) => relay.run(["cluster", "add", "--name", "local", ...options]);
    expect(commandIn(await change("--worker-concurrency", "6"))).toEqual([0, restart]);
    expect(commandIn(await change("--worker-concurrency", "6"))).toEqual([0, ""]);
    expect(commandIn(await change("--env-setup", "module load python", "--json"))).toEqual([0, restart]);
    expect(commandIn(await relay.run(["cluster", "add", "--name", "two", "--json"]))).toEqual([0, ""]);
    expect(await relay.json("worker", "status", "--cluster", "local")).toMatchObject({
      workers: [{ process: { pid }, capacity: { concurrency: 4 } }],
    });
    expect(await relay.ok("worker", "stop", "--cluster", "local")).toBe(`stopped process ${pid}`);
    expect(commandIn(await change("--worker-concurrency", "7"))).toEqual([0, ""]);
  });

  test("that cannot start says why", async () => {
    await using relay = await initialized();
    fs.writeFileSync(path.join(relay.home, "core", "local"), "no directory");
    const result = await relay.run(["worker", "start"]);
    expect(result.code).not.toBe(0);
    expect(result.stderr).toContain("the worker ended at once: ");
    expect(result.stderr).toContain(`hint: see ${relay.home}/log/worker-local.log`);
    expect((await relay.run(["worker", "start", "--cluster", "none"])).code).toBe(3);
  });

  test("that hangs is found by its record, and ended", async () => {
    await using relay = await initialized();
    const { pid } = await relay.json<{ pid: number }>("worker", "start");
    process.kill(pid, "SIGSTOP");
    const stopping = relay.run(["worker", "stop", "--timeout-seconds", "60"]);
    // TERM waits until it goes on.
    await eventually(() => /^SigPnd|^ShdPnd:\s+0*[1-9a-f]/m.test(pendingSignals(pid)));
    process.kill(pid, "SIGCONT");
    expect(await stopping).toMatchObject({ code: 0, stdout: `stopped process ${pid}\n` });
  });
});

/** The line of signals that wait for a process as a whole (proc_pid_status(5)). */
const pendingSignals = (pid: number): string => /^ShdPnd:.*$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))![0];

describe("the queue", () => {
  test("is listed, audited and repaired, with a worker and without", async () => {
    await using relay = await withWorker();
    const ids = [await relay.submit("--wait", "--", "true"), await relay.submit("--", "sh", "-c", "exec sleep 1000")];
    const active = await relay.json<{ jobs: { job_id: string }[] }>("queue", "list");
    expect(active).toMatchObject({ source_total: 2, filters_apply_within_source_window: true, source_next_cursor: null });
    expect(active.jobs.map(({ job_id }) => job_id)).toEqual([ids[1]!]);
    const all = (await relay.ok("queue", "list", "--include-terminal")).split("\n").map((line) => line.split("\t"));
    expect(all.map(([sequence, id, state]) => [sequence, id, state])).toEqual([
      ["1", ids[0]!, "succeeded"],
      ["2", ids[1]!, expect.stringMatching(/queued|leased|running/)],
    ]);
    expect((await relay.ok("queue", "list", "--include-terminal", "--state", "succeeded")).split("\n")).toHaveLength(1);
    const more = await relay.run(["queue", "list", "--include-terminal", "--limit", "1"]);
    expect(more.stderr).toBe("there is more (2 jobs in all): --cursor 2\n");

    const running = await relay.json<{ ok: boolean; checked: object }>("queue", "audit");
    expect(running).toMatchObject({ ok: true, findings: [], truncated: false });
    expect(await relay.json("queue", "repair", "--yes")).toEqual({ repaired: [], remaining: [], truncated: false });
    await relay.ok("job", "cancel", ids[1]!, "--wait");
    await relay.ok("worker", "stop");
    const offline = await relay.run(["queue", "audit"]);
    expect(offline).toMatchObject({ code: 0, stdout: "" });
    expect(offline.stderr).toMatch(/^\d+ records checked, 0 findings\n$/);
    expect(await relay.json("queue", "repair", "--yes")).toEqual({ repaired: [], remaining: [], truncated: false });
  });
});

test("a list in which there is nothing says so, and what it says is true of a part of it, too", async () => {
  await using relay = await withWorker();
  const said = async (...args: string[]) => {
    const { code, stdout, stderr } = await relay.run(args);
    expect([args, code, stdout]).toEqual([args, 0, ""]);
    return stderr;
  };
  expect(await said("job", "list")).toBe("local has no jobs yet\n");
  expect(await said("job", "list", "--state", "failed")).toBe("no such job was found\n");
  const id = await relay.submit("--wait", "--", "true");
  expect(await said("queue", "list")).toBe("nothing is queued or runs\n");
  expect(await said("queue", "list", "--kind", "mcp_call")).toBe("no such job was found\n");
  expect(await said("job", "list", "--before", "1")).toBe("no such job was found\n");
  expect(await said("job", "progress", id)).toBe("it has reported no progress\n");
  expect(await said("job", "used-artifacts", id)).toBe("it uses no artifacts\n");
  for (const verb of ["attempts", "tasks", "list-artifacts", "progress"])
    expect(await said("job", verb, id, "--cursor", "99")).toBe("there is none from number 99 on\n");
  const { artifacts } = await relay.json<{ artifacts: { artifact_id: string }[] }>("job", "list-artifacts", id);
  expect(await said("job", "used-by", artifacts[0]!.artifact_id)).toBe("no job uses it\n");
});

describe("reports", () => {
  test("from inside a job and from outside, and what they become", async () => {
    await using relay = await withWorker();
    const program = `${process.execPath} ${path.resolve(import.meta.dir, "../../src/main.ts")}`;
    const script = [
      `${program} emit progress --label 'epoch é' --current 1 --total 4 --unit steps --message 'a "b"'`,
      `${program} emit task-event --event-type found --label data --summary "it's here" --path-ref /x --metadata-json '{"a":[1]}'`,
      `${program} emit progress --label 'epoch é' --current 2.5 --total 4`,
      `${program} emit task-event --event-type BAD --label data --summary x && exit 9`,
      `${program} emit task-event --event-type long --label "$(printf %05000d 0)" --summary x && exit 9`,
      "exit 0",
    ].join("\n");
    const id = await relay.submit("--wait", "--", "sh", "-c", script);
    const said = await relay.ok("job", "read-log", id, "--stream", "stderr");
    expect(said).toContain('--event-type is "BAD", but must be lower case letters');
    expect(said).toContain("[request_validation_failed]");
    const { progress } = await relay.json<{ progress: object[] }>("job", "progress", id);
    expect(progress).toMatchObject([
      { sequence: 1, label: "epoch é", current: 1, total: 4, unit: "steps", message: 'a "b"' },
      { sequence: 2, current: 2.5 },
    ]);
    expect(await relay.ok("job", "status", id)).toMatch(/^progress {2,}epoch é 2\.5\/4 \(62%\)$/m);
    const recorded = await relay.json("job", "record-progress", id, "--label", "after", "--current", "-1");
    expect(recorded).toMatchObject({ job_id: id, label: "after", current: -1, total: null });

    const { tasks } = await relay.json<{ tasks: { task_id: string }[] }>("job", "tasks", id);
    const task = tasks[0]!.task_id;
    fs.writeFileSync(path.join(relay.directory, "m.json"), '{"from":"file"}');
    const outside = [
      "--event-type",
      "note",
      "--label",
      "l",
      "--summary",
      "s",
      "--status",
      "warning",
      "--detail",
      "d\ne",
      "--metadata-json-file",
      "m.json",
    ];
    expect(await relay.json("job", "record-task-event", task, ...outside)).toMatchObject({
      seq: 2,
      status: "warning",
      metadata: { from: "file" },
    });
    const { events } = await relay.json<{ events: object[] }>("job", "task-events", task, "--cursor", "1");
    expect(events).toMatchObject([
      { seq: 1, event_type: "found", label: "data", summary: "it's here", status: "running", path_refs: ["/x"], metadata: { a: [1] } },
      { seq: 2, event_type: "note", detail: "d\ne" },
    ]);
    const rest = await relay.run(["job", "task-events", task, "--limit", "1"]);
    expect(rest.stderr).toBe("1 more: --cursor 2\n");
    expect((await relay.run(["job", "record-task-event", task, ...outside, "--metadata-json", "{}"])).code).toBe(2);
  });
});

test("a daemon of another version serves the command, and is not replaced", async () => {
  await using relay = new SourceRelay();
  const older = await startDaemon(relay.directory, { clusters: ["theirs"] });
  try {
    const env = { CLIO_RELAY_HOME: path.dirname(older.paths.runDir) };
    expect((await relay.run(["version", "--json"])).stdout).not.toContain("1.2.3");
    expect(await relay.run(["cluster", "list"], { env })).toEqual({ code: 0, stdout: "theirs\tlocal\t3\t2\n", stderr: "" });
    expect(JSON.parse((await relay.run(["desktop", "start", "--json"], { env })).stdout)).toMatchObject({
      version: "1.2.3",
      started: false,
    });
  } finally {
    await older.stop();
  }
});
