import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { version } from "../../../package.json";
import { DEFAULT_CAPACITY } from "../../../src/config/cluster-entry.ts";
import { type ErrorCode, isRelayError } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { openArtifact } from "../../../src/transport/bootstrap/artifact.ts";
import { type BootstrapOptions, bootstrap } from "../../../src/transport/bootstrap/bootstrap.ts";
import { type EndpointServiceOptions, installEndpointService } from "../../../src/transport/bootstrap/endpoint-service.ts";
import { uninstall } from "../../../src/transport/bootstrap/install.ts";
import { type Remote, remoteOver } from "../../../src/transport/script/remote.ts";
import { activateService } from "../../../src/transport/service/activate.ts";
import { removeService } from "../../../src/transport/service/install.ts";
import { type ServiceStatus, serviceStatus } from "../../../src/transport/service/status.ts";
import { unitName } from "../../../src/transport/service/unit.ts";
import { describeWith, requireComponent } from "../../runner/components.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { eventually } from "../../runner/wait.ts";
import { SystemdRig } from "./rig.ts";

// @takes systemd Two managers that boot at once are in each other's control groups.

const signal = new AbortController().signal;
const PLACE = { cluster: "c", home: null, signal };
const UNIT = unitName("c");

async function failure(work: Promise<unknown>, code: ErrorCode) {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  if (!isRelayError(error, code)) throw new Error(`expected ${code}`, { cause: error });
  return error;
}

describeWith("nspawn", "the service of a worker, by a real systemd", () => {
  const rig = new SystemdRig();
  const file = (user: string, name: string) => path.join(rig.directory, `root/home/${user}`, name);

  beforeAll(() => rig.start());
  afterAll(() => rig.stop());

  const bring = async (remote: Remote, change: Partial<BootstrapOptions> = {}) =>
    bootstrap(remote, {
      ...PLACE,
      spool: null,
      artifacts: [await openArtifact(EXECUTABLE)],
      expectedDigest: null,
      version,
      allowDowngrade: false,
      configuration: { env_setup: null, worker_capacity: DEFAULT_CAPACITY, client_keys: [] },
      clock: systemClock,
      ...change,
    });
  const service = (user: string, change: Partial<EndpointServiceOptions> = {}): EndpointServiceOptions => ({
    ...PLACE,
    spool: null,
    launcher: "systemd",
    enable: true,
    start: true,
    allowLoginScoped: false,
    configure: async () => ({ paths: { log: `/home/${user}/.local/state/clio-relay/log/worker-c.log` } }),
    clock: systemClock,
    ...change,
  });
  const alive = (pid: number): boolean => rig.succeeds("test", "-d", `/proc/${pid}`);
  const asUser = (user: string, ...command: string[]): string =>
    rig.run(
      "setpriv",
      `--reuid=${user}`,
      `--regid=${user}`,
      "--init-groups",
      "env",
      `HOME=/home/${user}`,
      `XDG_RUNTIME_DIR=/run/user/${rig.run("id", "-u", user).trim()}`,
      ...command,
    );
  const become = (remote: Remote, state: ServiceStatus["state"]): Promise<ServiceStatus> =>
    eventually(
      async () => {
        const status = await serviceStatus(remote, PLACE);
        if (status.state !== state) throw new Error(JSON.stringify(status));
        return status;
      },
      { everyMs: 300, what: state },
    );

  test("without linger nothing is written; with the exception it works until the user's last session is over", async () => {
    rig.addUser("ann");
    const remote = remoteOver(rig.login("ann"));
    await failure(installEndpointService(remote, service("ann")), "relay_not_installed");
    const { operator_action } = await serviceStatus(remote, PLACE);
    expect(operator_action).toBe(`clio-relay cluster bootstrap --cluster ${PLACE.cluster}`);
    const report = await bring(remote);
    expect(report.worker).toMatchObject({ state: "started", supervised_by: null });
    const refused = await failure(installEndpointService(remote, service("ann")), "linger_required");
    expect(refused.hint).toBeUndefined();
    expect(fs.existsSync(file("ann", ".config/systemd"))).toBe(false);
    expect(await serviceStatus(remote, PLACE)).toMatchObject({ state: "not-installed", linger: false, persistence: "not-installed" });

    // A session that stays, as a terminal that is open.
    const held = await rig.login("ann").exec("sleep 1000");
    const done = await installEndpointService(remote, service("ann", { allowLoginScoped: true }));
    expect(done).toMatchObject({
      written: true,
      outcome: "ready",
      status: { state: "ready", launcher: "systemd", persistence: "login-scoped" },
    });
    expect(done.notices[0]).toContain("loginctl enable-linger ann");
    const pid = done.status.unit!.main_pid!;
    expect(alive(pid)).toBe(true);
    rig.run("loginctl", "terminate-user", "ann");
    await held.exited;
    await eventually(() => !alive(pid), { everyMs: 200 });
    // The next login has a manager, and the unit is enabled: it begins with it.
    const later = await rig.login("ann").exec("sleep 1000");
    expect((await become(remote, "ready")).persistence).toBe("login-scoped");
    rig.run("loginctl", "terminate-user", "ann");
    await later.exited;
  });

  test("with linger it takes over from a worker that runs alone, outlives logout and SIGKILL, restarts provably, and stays where it is stopped", async () => {
    rig.addUser("bob");
    rig.linger("bob");
    const remote = remoteOver(rig.login("bob"));
    const first = await bring(remote);
    const job = asUser(
      "bob",
      "/home/bob/.local/bin/clio-relay",
      "job",
      "submit",
      "--cluster",
      "c",
      "--",
      "sh",
      "-c",
      "while [ ! -e ~/release ]; do sleep 0.1; done; echo released",
    ).trim();

    const looks: string[] = [];
    const done = await installEndpointService(remote, service("bob", { onLook: ({ state }) => looks.push(state) }));
    expect(done).toMatchObject({
      written: true,
      drained: true,
      outcome: "ready",
      notices: [],
      status: { state: "ready", persistence: "persistent", operator_action: null },
    });
    expect(done.status.unit!.main_pid).not.toBe(first.worker.pid);
    const text = fs.readFileSync(file("bob", `.config/systemd/user/${UNIT}`), "utf8");
    for (const line of [
      "Restart=always",
      "RestartSec=5",
      "StartLimitIntervalSec=0",
      "TimeoutStartSec=300",
      "KillMode=process",
      "OOMPolicy=continue",
      "WantedBy=default.target",
    ]) {
      expect(text).toContain(`\n${line}\n`);
    }
    expect(asUser("bob", "systemd-analyze", "--user", "verify", `/home/bob/.config/systemd/user/${UNIT}`)).toBe("");

    const again = await installEndpointService(remote, service("bob"));
    expect(again).toMatchObject({ written: false, drained: false, outcome: "ready" });
    expect(again.status.unit!.invocation_id).toBe(done.status.unit!.invocation_id);
    expect((await bring(remote)).worker).toEqual({
      state: "kept",
      pid: done.status.unit!.main_pid,
      hostname: first.host.hostname,
      supervised_by: "systemd",
    });

    // Logout of every session.
    rig.run("sh", "-c", "for s in $(loginctl list-sessions --no-legend | awk '{print $1}'); do loginctl terminate-session $s; done");
    expect(alive(done.status.unit!.main_pid!)).toBe(true);

    rig.run("kill", "-KILL", String(done.status.unit!.main_pid));
    const back = await eventually(
      async () => {
        const status = await serviceStatus(remote, PLACE);
        return status.state === "ready" && status.unit!.restarts === 1 && status;
      },
      { everyMs: 300 },
    );
    expect(back.unit!.invocation_id).not.toBe(done.status.unit!.invocation_id);

    // Several at once: each sees a restart, and the manager was asked no oftener than needed.
    const restarts = await Promise.all(
      [1, 2, 3].map(() => activateService(remoteOver(rig.login("bob")), { ...PLACE, action: "restart", clock: systemClock })),
    );
    expect(restarts.map(({ outcome }) => outcome)).toEqual(["ready", "ready", "ready"]);
    for (const { before, asked, status } of restarts) if (asked === "enqueued") expect(status.unit!.invocation_id).not.toBe(before);
    expect(restarts.some(({ asked }) => asked === "enqueued")).toBe(true);

    asUser("bob", "touch", "/home/bob/release");
    expect(asUser("bob", "/home/bob/.local/bin/clio-relay", "job", "read-log", job, "--cluster", "c", "--follow")).toBe("released\n");
    asUser("bob", "/home/bob/.local/bin/clio-relay", "desktop", "stop");

    asUser("bob", "systemctl", "--user", "stop", UNIT);
    expect((await serviceStatus(remote, PLACE)).state).toBe("intentional-stop");
    expect((await activateService(remote, { ...PLACE, action: "start", clock: systemClock })).outcome).toBe("ready");

    const gone = await removeService(remote, { ...PLACE, stopOnly: false });
    expect(gone).toEqual({ stopped: [UNIT], removed: [`/home/bob/.config/systemd/user/${UNIT}`] });
    expect(await removeService(remote, { ...PLACE, stopOnly: false })).toEqual({ stopped: [], removed: [] });
    const left = await uninstall(remote, PLACE, { cluster: "c", purge: true });
    expect([left.running, fs.existsSync(file("bob", ".local/share/clio-relay/versions"))]).toEqual([[], false]);
  });

  test("one that cannot start is recovering and then in progress, and one that the manager has given up has failed", async () => {
    rig.addUser("cid");
    rig.linger("cid");
    const remote = remoteOver(rig.login("cid"));
    await bring(remote);
    const core = "/home/cid/.local/share/clio-relay/core/c";
    await installEndpointService(remote, service("cid", { start: false }));
    expect((await serviceStatus(remote, PLACE)).state).toBe("inactive-unexpected");
    // A worker that runs alone holds the queue.
    const stuck = await activateService(remote, { ...PLACE, action: "start", clock: systemClock, observeMs: 8_000 });
    expect(stuck).toMatchObject({ outcome: "in-progress", status: { state: "recovering" } });
    expect(rig.succeeds("test", "-e", `${core}/owner.json`)).toBe(true);
    asUser("cid", "systemctl", "--user", "stop", UNIT);

    const unit = file("cid", `.config/systemd/user/${UNIT}`);
    const text = fs.readFileSync(unit, "utf8");
    fs.writeFileSync(unit, text.replace("Restart=always", "Restart=no").replace(/ExecStart=.*/, "ExecStart=/bin/false"));
    asUser("cid", "systemctl", "--user", "daemon-reload");
    await failure(activateService(remote, { ...PLACE, action: "start", clock: systemClock }), "service_failed");
    expect((await serviceStatus(remote, PLACE)).state).toBe("failed");
    // Installed again, it is written anew, and what failed before counts no longer.
    expect(await installEndpointService(remote, service("cid"))).toMatchObject({ written: true, outcome: "ready", drained: true });
    asUser(
      "cid",
      "sh",
      "-c",
      `systemctl --user stop ${UNIT}; ln -sf /dev/null ~/.config/systemd/user/${UNIT}; systemctl --user daemon-reload`,
    );
    expect((await serviceStatus(remote, PLACE)).state).toBe("degraded");
    await failure(activateService(remote, { ...PLACE, action: "start", clock: systemClock }), "service_failed");
  });

  test("an installation in a place of an odd name, whose jobs write elsewhere", async () => {
    rig.addUser("fay");
    rig.linger("fay");
    const remote = remoteOver(rig.login("fay"));
    const place = { home: "~/a $HOME 5% 'q' \"d\" x=y", spool: "~/the spool %h" };
    await bring(remote, place);
    const done = await installEndpointService(remote, service("fay", place));
    expect(done).toMatchObject({ outcome: "ready", drained: true });
    const pid = done.status.unit!.main_pid!;
    const variables = rig.run("cat", `/proc/${pid}/environ`).split("\0");
    expect(variables).toContain(`CLIO_RELAY_HOME=/home/fay/a $HOME 5% 'q' "d" x=y`);
    expect(variables).toContain("CLIO_RELAY_SPOOL_DIR=/home/fay/the spool %h");
    expect(done.status.worker!.process.pid).toBe(pid);
    await removeService(remote, { ...PLACE, home: place.home, stopOnly: false });
  });

  test("where the user's manager cannot be reached, that is said, and the supervisor goes without", async () => {
    rig.addUser("dan");
    // As in a container, or a cron job of a site without sessions: no PAM, no manager.
    const remote = remoteOver({
      exec: (command, given) => rig.plain("dan").exec(command, given),
    });
    await bring(remote);
    const error = await failure(installEndpointService(remote, service("dan", { allowLoginScoped: true })), "service_failed");
    expect(error.hint).toContain("--launcher setsid");
    const done = await installEndpointService(remote, service("dan", { launcher: "setsid" }));
    expect(done).toMatchObject({
      outcome: "ready",
      drained: true,
      status: { launcher: "setsid", state: "ready", persistence: "until-reboot" },
    });
    const { worker, supervisor_pid } = done.status;
    rig.run("kill", "-KILL", String(worker!.process.pid));
    const back = await eventually(
      async () => {
        const status = await serviceStatus(remote, PLACE);
        return status.state === "ready" && status.worker!.process.pid !== worker!.process.pid && status;
      },
      { everyMs: 300 },
    );
    expect(back.supervisor_pid).toBe(supervisor_pid);
    expect(await installEndpointService(remote, service("dan", { launcher: "setsid" }))).toMatchObject({
      drained: false,
      status: { supervisor_pid },
    });
    // Another version is started by the supervisor, and by a new one where that is gone.
    const other = path.join(rig.directory, "clio-relay-supervised");
    fs.copyFileSync(EXECUTABLE, other);
    fs.appendFileSync(other, "\n");
    const upgraded = await bring(remote, { artifacts: [await openArtifact(other)] });
    expect(upgraded.worker).toMatchObject({ state: "replaced", supervised_by: "setsid" });
    expect(rig.run("readlink", `/proc/${upgraded.worker.pid}/exe`)).toContain(upgraded.artifact.digest);
    rig.run("kill", "-KILL", String(supervisor_pid), String(upgraded.worker.pid));
    const revived = await bring(remote, { artifacts: [await openArtifact(other)] });
    expect(revived.worker).toMatchObject({ state: "started", supervised_by: "setsid" });
    const last = (await serviceStatus(remote, PLACE)).supervisor_pid;
    expect(last).not.toBe(supervisor_pid);
    await removeService(remote, { ...PLACE, stopOnly: true });
    expect([alive(last!), alive(revived.worker.pid!)]).toEqual([false, false]);
    expect((await serviceStatus(remote, PLACE)).state).toBe("intentional-stop");
    await removeService(remote, { ...PLACE, stopOnly: false });
    expect((await serviceStatus(remote, PLACE)).state).toBe("not-installed");
  });

  const timed = requireComponent("cron") && requireComponent("faketime");
  test.skipIf(!timed)("cron looks after a worker without touching the user's other lines, and stops with it", async () => {
    rig.addUser("eve");
    rig.run("systemctl", "stop", "cron");
    const remote = remoteOver(rig.plain("eve"));
    await bring(remote);
    const table = () => asUser("eve", "crontab", "-l");
    const supervise = "/home/eve/.local/share/clio-relay/bootstrap/supervise-c";
    const lines = [`@reboot '${supervise}' # clio-relay`, `*/5 * * * * '${supervise}' # clio-relay`];
    // The first table of all, and then one with lines of the user's own.
    await installEndpointService(remote, service("eve", { launcher: "cron", start: false }));
    expect(table().trim().split("\n").slice(-2)).toEqual(lines);
    await removeService(remote, { ...PLACE, stopOnly: false });
    // Who had no table has none again.
    expect(() => table()).toThrow("no crontab for eve");
    await installEndpointService(remote, service("eve", { launcher: "cron", start: false }));
    asUser("eve", "sh", "-c", "(echo '# mine'; echo '0 1 * * * echo 50\\% done') | crontab -");
    const done = await installEndpointService(remote, service("eve", { launcher: "cron" }));
    expect(done).toMatchObject({ outcome: "ready", drained: true, status: { launcher: "cron", persistence: "until-reboot" } });
    expect(done.notices).toEqual([expect.stringContaining("no cron runs on ")]);
    expect(table()).toBe(`# mine\n0 1 * * * echo 50\\% done\n${lines.join("\n")}\n`);
    await installEndpointService(remote, service("eve", { launcher: "cron" }));
    expect(
      table()
        .split("\n")
        .filter((line) => line.includes(supervise)),
    ).toHaveLength(2);
    // What cron starts while one runs ends at once.
    expect(asUser("eve", "sh", "-c", `${supervise}; echo $?`)).toBe("0\n");
    expect((await serviceStatus(remote, PLACE)).supervisor_pid).toBe(done.status.supervisor_pid);
    const other = await failure(installEndpointService(remote, service("eve", { launcher: "setsid" })), "state_conflict");
    expect(other.data).toEqual({ launcher: "cron" });

    // By cron itself, within its minute, which passes in a second.
    rig.run("systemd-run", "--quiet", "--unit=rig-cron", "faketime", "-f", "+0 x60", "cron", "-f");
    rig.run("kill", "-KILL", String(done.status.supervisor_pid), String(done.status.worker!.process.pid));
    asUser("eve", "sh", "-c", "crontab -l | sed 's|^.*/5 |* |' | crontab -");
    const back = await eventually(
      async () => {
        const status = await serviceStatus(remote, PLACE);
        return status.state === "ready" && status;
      },
      { everyMs: 500 },
    );
    expect(back.persistence).toBe("persistent");
    expect(back.supervisor_pid).not.toBe(done.status.supervisor_pid);

    const gone = await removeService(remote, { ...PLACE, stopOnly: false });
    expect(gone).toEqual({ stopped: [supervise], removed: [supervise] });
    expect(table()).toBe("# mine\n0 1 * * * echo 50\\% done\n");
    expect(alive(back.worker!.process.pid)).toBe(false);
  });
});
