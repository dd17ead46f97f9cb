import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { JobStatus } from "../../src/domain/views.ts";
import { describeWith } from "../runner/components.ts";
import { EXECUTABLE } from "../runner/relay.ts";
import { eventually } from "../runner/wait.ts";

// @takes systemd Two managers that boot at once are in each other's control groups.

const RIG = path.resolve(import.meta.dir, "../rigs/systemd-overlay");
const UNIT = `[Service]
ExecStart=/usr/local/bin/clio-relay worker run --cluster local
Environment=CLIO_RELAY_MIN_FREE_BYTES=0
`;

describeWith("nspawn", "a worker that is a service of systemd", () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "systemd-"));

  function rig(...args: string[]): string {
    const { status, stdout, stderr } = spawnSync(RIG, args, {
      encoding: "utf8",
      env: { ...process.env, RIG_DIR: directory },
      timeout: 180_000,
    });
    if (status !== 0) throw new Error(`${args.join(" ")} ended with ${status}: ${stderr}`);
    return stdout;
  }
  const user = (...args: string[]): string => rig("as", "relay", ...args);
  const relay = (...args: string[]): string => user("clio-relay", ...args);
  const status = (job: string): JobStatus => JSON.parse(relay("job", "status", job, "--json")) as JobStatus;
  const running = (job: string): Promise<JobStatus> =>
    eventually(() => {
      const seen = status(job);
      return seen.job.state === "running" && seen;
    });
  const served = (): Promise<unknown> => eventually(() => relay("worker", "status", "--cluster", "local"));
  const submit = (...command: string[]): string => relay("job", "submit", "--cluster", "local", "--", ...command).trim();
  const alive = (pid: number): boolean => rig("run", "sh", "-c", `test -d /proc/${pid} && echo yes || echo no`).trim() === "yes";

  beforeAll(() => {
    rig("start");
    fs.copyFileSync(EXECUTABLE, path.join(directory, "root/usr/local/bin/clio-relay"));
    relay("init");
    user("sh", "-c", `mkdir -p ~/.config/systemd/user && cat > ~/.config/systemd/user/worker.service <<'END'\n${UNIT}END`);
    user("systemctl", "--user", "daemon-reload");
  });
  afterAll(() => {
    rig("stop");
    fs.rmSync(directory, { recursive: true, force: true });
  });

  test("keeps its jobs in scopes of their own, which outlive restart, SIGKILL and stop of the service", async () => {
    user("systemctl", "--user", "start", "worker");
    await served();
    const jobs = [submit("sh", "-c", "trap '' HUP TERM; i=0; while [ ! -e ~/release ]; do sleep 0.1; done; echo done")];
    const before = await running(jobs[0]!);
    const job = before.attempt!.process!.pid;
    expect(rig("run", "cat", `/proc/${job}/cgroup`)).toMatch(/clio-relay-shim-[0-9a-f-]+\.scope/);

    for (const fault of [["restart"], ["kill", "--signal=KILL"], ["stop"]]) {
      user("systemctl", "--user", ...fault, "worker");
      expect([fault, alive(job)]).toEqual([fault, true]);
      await eventually(() => fault[0] === "restart" || user("sh", "-c", "systemctl --user is-active worker || true").trim() !== "active");
      user("systemctl", "--user", "start", "worker");
      await served();
    }
    user("touch", "/home/relay/release");
    const after = await eventually(() => {
      const seen = status(jobs[0]!);
      return seen.terminal && seen;
    });
    expect(after.job).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(after.attempt!.process).toEqual(before.attempt!.process);
    expect(relay("job", "read-log", jobs[0]!, "--raw")).toBe("done\n");
  });

  test("cancel ends a daemon in the scope, and the scope goes", async () => {
    const job = submit("sh", "-c", "setsid sh -c 'echo $$; exec env -i sleep 1000' & sleep 1000");
    await running(job);
    const daemon = Number(await eventually(() => relay("job", "read-log", job, "--raw").trim()));
    const scope = /clio-relay-shim-[0-9a-f-]+\.scope/.exec(rig("run", "cat", `/proc/${daemon}/cgroup`))![0];
    relay("job", "cancel", job);
    await eventually(() => status(job).job.state === "canceled");
    expect(alive(daemon)).toBe(false);
    await eventually(() => !user("systemctl", "--user", "list-units", "--type=scope", "--no-legend", "--no-pager").includes(scope));
  });

  test("a killed shim's job is found by its scope, a daemon without its environment included", async () => {
    const job = submit("sh", "-c", "setsid sh -c 'echo $$; exec env -i sleep 1000' & sleep 1000");
    const { attempt } = await running(job);
    const daemon = Number(await eventually(() => relay("job", "read-log", job, "--raw").trim()));
    rig("run", "kill", "-KILL", String(attempt!.shim!.pid));
    const { job: ended } = await eventually(() => {
      const seen = status(job);
      return seen.terminal && seen;
    });
    expect(ended.outcome).toMatchObject({ reason: "outcome_unknown", residual: [] });
    expect(alive(daemon)).toBe(false);
  });

  // The user's last: it has a worker of its own manager on the same installation until then.
  for (const name of ["root", "relay"]) {
    test(`of the machine's manager, run as ${name}, keeps its jobs in scopes of their own, too`, async () => {
      user("systemctl", "--user", "stop", "worker");
      const home = name === "root" ? "/root" : `/home/${name}`;
      const inside = (...args: string[]): string =>
        name === "root" ? rig("run", "env", `HOME=${home}`, "SHELL=/bin/sh", ...args) : user(...args);
      const seen = (job: string): JobStatus => JSON.parse(inside("clio-relay", "job", "status", job, "--json")) as JobStatus;
      if (name === "root") inside("clio-relay", "init");
      const unit = `worker-of-${name}`;
      const text = UNIT.replace("[Service]", `[Service]\nUser=${name}\nEnvironment=HOME=${home}`);
      fs.writeFileSync(path.join(directory, `root/etc/systemd/system/${unit}.service`), text);
      rig("run", "systemctl", "daemon-reload");
      rig("run", "systemctl", "start", unit);
      await eventually(() => inside("clio-relay", "worker", "status", "--cluster", "local"));
      const job = inside("clio-relay", "job", "submit", "--cluster", "local", "--", "sleep", "1000").trim();
      const { attempt } = await eventually(() => {
        const now = seen(job);
        return now.job.state === "running" && now;
      });
      const pid = attempt!.process!.pid;
      expect(rig("run", "cat", `/proc/${pid}/cgroup`)).toMatch(/clio-relay-shim-[0-9a-f-]+\.scope/);
      rig("run", "systemctl", "stop", unit);
      expect(alive(pid)).toBe(true);
      rig("run", "systemctl", "start", unit);
      await eventually(() => inside("clio-relay", "worker", "status", "--cluster", "local"));
      inside("clio-relay", "job", "cancel", job);
      await eventually(() => seen(job).job.state === "canceled");
      expect(alive(pid)).toBe(false);
      inside("clio-relay", "desktop", "stop");
      rig("run", "systemctl", "stop", unit);
    });
  }
});
