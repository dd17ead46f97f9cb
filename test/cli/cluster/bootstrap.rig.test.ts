import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { SecondFactorSshd } from "../../rigs/sshd-2fa.ts";
import { describeWith } from "../../runner/components.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { onTerminal } from "../on-terminal.ts";
import type { SourceRelay } from "../source-relay.ts";
import { farLink, sshDesk } from "../ssh-desk.ts";

describeWith(["sshd-2fa", "ssh"], "bootstrap of a cluster that asks for a password and a code", () => {
  const files = temporaryDirectory();
  const executable = path.join(files.path, "clio-relay");
  let node: SecondFactorSshd;

  beforeAll(async () => {
    node = await SecondFactorSshd.start();
    // The same bytes to the end, whatever is built meanwhile.
    fs.copyFileSync(EXECUTABLE, executable);
  });
  afterAll(async () => {
    await node[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  const desk = (): Promise<SourceRelay> => sshDesk({ directory: files.path, sshd: node.sshd, user: node.user });

  /** Commands that nobody is there to be asked by. */
  const unattended =
    (relay: SourceRelay) =>
    (...args: string[]): Promise<string> =>
      relay.ok(...args, "--no-input");

  /** Bootstrap, with a password and a code. */
  async function bootstraps(relay: SourceRelay): Promise<void> {
    const command = onTerminal(relay, ["cluster", "bootstrap", "--cluster", "far", "--artifact", executable]);
    await command.shows("Password: ");
    command.press(`${node.password}\r`);
    await command.shows("Verification code: ");
    command.press(`${node.code()}\r`);
    expect(await command.end()).toBe(0);
    expect(command.shown()).toMatch(/worker +started, process \d+/);
    expect(command.shown()).toContain("notice: nobody starts the worker again");
    expect(command.shown()).toMatch(/[\d.]+ MiB of [\d.]+ MiB/);
  }

  /** A link, a job, and the worker stopped and started, by whomever. */
  async function works(relay: SourceRelay): Promise<void> {
    const ok = unattended(relay);
    expect(await relay.json("cluster", "probe", "far")).toMatchObject({ ssh_reachable: true, state: "ready", repair: null });
    expect(await ok("connect", "far")).toStartWith("far is up: worker ");
    expect(await relay.json("cluster", "show", "far")).toMatchObject({ worker_key: expect.stringMatching(/^ssh-ed25519 /) });
    const id = await relay.submit("--wait", "--", "id", "-un");
    expect(await ok("job", "read-log", id)).toBe(node.user.name);
    expect(await relay.json("cluster", "endpoint-service-status", "far")).toMatchObject({ state: "not-installed", launcher: null });
    expect(await ok("worker", "stop")).toMatch(/^stopped process \d+ on /);
    expect(await farLink(relay)).toMatchObject({ state: "up", detail: expect.stringContaining("no worker is running") });
    const gone = await relay.run(["job", "list"]);
    expect([gone.code, gone.stderr]).toEqual([5, expect.stringContaining("[worker_not_running]")]);
    expect(await ok("worker", "start")).toMatch(/^worker of far runs on \S+ as process \d+$/);
    expect((await relay.run(["job", "status", id])).code).toBe(0);
    // Somebody starts it there in a session that has another place for its socket; whatever is done on the host finds it.
    await ok("worker", "stop");
    const { name, home } = node.user;
    const runtime = path.join(home, "runtime");
    spawnSync("runuser", ["-u", name, "--", "mkdir", "-m", "700", runtime]);
    const there = [
      "env",
      "-i",
      "-C",
      home,
      `HOME=${home}`,
      "PATH=/usr/bin:/bin",
      `XDG_RUNTIME_DIR=${runtime}`,
      path.join(home, ".local/bin/clio-relay"),
    ];
    expect(spawnSync("runuser", ["-u", name, "--", ...there, "worker", "start", "--cluster", "far"]).status).toBe(0);
    expect(await ok("worker", "start")).toContain("runs already");
    expect((await relay.run(["job", "status", id])).code).toBe(0);
  }

  /** Bootstrap again sends nothing, and leaves the worker. */
  async function bootstrapsAgain(relay: SourceRelay): Promise<void> {
    const again = await relay.json<{ sent_bytes: number; worker: { state: string } }>(
      "cluster",
      "bootstrap",
      "far",
      "--artifact",
      executable,
      "--key-ttl",
      "12h",
    );
    expect(again).toMatchObject({ sent_bytes: 0, worker: { state: "kept" } });
    const { keys } = await relay.json<{ keys: { expires_at: string; by: string }[] }>("worker", "keys", "list");
    const left = Date.parse(keys[0]!.expires_at) - Date.now();
    expect([keys.length, keys[0]!.by, left > 11 * 3_600_000, left <= 12 * 3_600_000]).toEqual([1, "bootstrap", true, true]);
  }

  interface Service {
    status: { state: string; launcher: string; worker: { process: { pid: number } } | null };
  }

  /** A service that starts the worker again, until it is removed. */
  async function servesAlways(relay: SourceRelay): Promise<void> {
    const ok = unattended(relay);
    const service = await relay.json<Service>("cluster", "install-endpoint-service", "far", "--launcher", "setsid", "--concurrency", "5");
    expect(service.status).toMatchObject({ state: "ready", launcher: "setsid" });
    const first = service.status.worker!.process.pid;
    process.kill(first, "SIGKILL");
    const status = () => relay.json<Service["status"]>("cluster", "endpoint-service-status", "far");
    await eventually(async () => ((await status()).worker?.process.pid ?? first) !== first, {
      what: "the next worker",
    });
    expect(await relay.json("worker", "status")).toMatchObject({ workers: [{ capacity: { concurrency: 5 } }] });
    expect((await relay.run(["worker", "stop"])).stderr).toContain("is stopped until clio-relay worker start --cluster far");
    expect(await status()).toMatchObject({ state: "intentional-stop", worker: null });
    expect(await ok("worker", "start")).toStartWith("worker of far runs on ");
    expect(await status()).toMatchObject({ state: "ready" });
    expect(await relay.json("cluster", "restart-endpoint-service", "far")).toMatchObject({
      outcome: "ready",
      status: { state: "ready" },
    });
    const other = await relay.run(["cluster", "install-endpoint-service", "far", "--launcher", "cron"]);
    const remove = "clio-relay cluster remove-endpoint-service --cluster far";
    expect([other.code, other.stderr]).toEqual([7, expect.stringContaining(`hint: ${remove}`)]);
    expect(await relay.json("cluster", "remove-endpoint-service", "far")).toMatchObject({
      removed: [expect.stringContaining("supervise-far")],
    });
    expect(await status()).toMatchObject({
      state: "not-installed",
      worker: null,
      operator_action: expect.stringMatching(/ install-endpoint-service --cluster far --/),
    });
    expect(await ok("worker", "start")).toStartWith("worker of far runs on ");
  }

  /** Uninstalled with a job that goes on, without, with all it has, and again. */
  async function uninstalls(relay: SourceRelay): Promise<void> {
    const ok = unattended(relay);
    fs.writeFileSync(path.join(relay.directory, "in.lj"), "units lj\n");
    const busy = await relay.submit("--input", "deck=in.lj", "--", "sleep", "600");
    const refused = await relay.run(["cluster", "uninstall", "far", "--purge", "--yes"]);
    expect([refused.code, refused.stderr]).toEqual([7, expect.stringContaining("1 jobs of far have not ended, so its queue stays")]);
    await ok("job", "cancel", busy);
    expect((await relay.run(["job", "wait", busy])).code).toBe(10);
    expect(await ok("cluster", "uninstall", "far", "--yes")).toMatch(/^removed\t.*\/current\t-$/m);
    expect(await farLink(relay)).toMatchObject({ state: "up", detail: expect.stringContaining("is not installed on") });
    // What could say it is gone, so that it has to come back first.
    for (const [code, line] of [
      [7, ["cluster", "uninstall", "far", "--purge", "--yes"]],
      [1, ["cluster", "install-endpoint-service", "far", "--launcher", "setsid"]],
      [1, ["worker", "start"]],
      [1, ["connect", "far"]],
      [1, ["job", "list"]],
    ] as const) {
      const absent = await relay.run(line);
      expect([line, absent.code, absent.stderr]).toEqual([
        line,
        code,
        expect.stringContaining("hint: clio-relay cluster bootstrap --cluster far"),
      ]);
    }
    expect(await farLink(relay)).toMatchObject({ state: "up", detail: expect.stringContaining("is not installed on") });
    await ok("cluster", "bootstrap", "--cluster", "far", "--artifact", executable);
    expect(await relay.json("cluster", "uninstall", "far", "--purge", "--yes")).toMatchObject({
      worker: expect.any(String),
      running: [],
    });
    // Of the spool, inputs are the part that cannot be written to.
    for (const name of ["versions", "core/far", "spool/far"])
      expect([name, fs.existsSync(path.join(node.user.home, ".local/share/clio-relay", name))]).toEqual([name, false]);
    // Again, it has nothing to do.
    expect(await relay.json("cluster", "uninstall", "far", "--purge", "--yes")).toMatchObject({ worker: "not_running", removed: [] });
    expect(await relay.json("cluster", "probe", "far")).toMatchObject({
      state: "relay_not_installed",
      repair: expect.stringContaining("cluster bootstrap"),
    });
  }

  test.each(["builtin", "openssh"])(
    "one password and one code, and then everything: install, connect, jobs, the worker stopped and started, installed again, removed; with the client %s",
    async (client) => {
      const before = node.sshd.connections();
      await using relay = await desk();
      await relay.ok("cluster", "add", "--name", "far", "--ssh-client", client);
      await bootstraps(relay);

      // From here on nobody is there to be asked.
      await works(relay);
      await bootstrapsAgain(relay);
      await servesAlways(relay);
      const back = await relay.run(["cluster", "rollback", "far"]);
      expect([back.code, back.stderr]).toEqual([7, expect.stringContaining("[state_conflict]")]);

      const far = await farLink(relay);
      expect(far).toMatchObject({ state: "up", ssh_connections_since_bring_up: 0 });
      expect(far.ledger).toMatchObject([{ purpose: "bootstrap", outcome: "open", requested_by: "clio-relay cluster bootstrap far" }]);

      await uninstalls(relay);
      expect(await relay.ok("disconnect", "far", "--no-input")).toBe("far is down");
      const down = await relay.run(["job", "submit", "--", "true"]);
      // Nothing was sent, so that there is nothing to be sent again.
      expect([down.code, down.stderr]).toEqual([5, "error: there is no link to far [link_down]\nhint: clio-relay connect far\n"]);
      expect(node.sshd.connections() - before).toBe(1);
    },
  );

  test("what cannot be is refused before anything is dialed, and absence is an answer", async () => {
    const before = node.sshd.connections();
    await using relay = await desk();
    const local = await relay.run(["cluster", "probe", "local"]);
    expect([local.code, local.stderr]).toEqual([2, expect.stringContaining("[configuration_error]")]);
    const source = await relay.run(["cluster", "bootstrap", "far"]);
    expect([source.code, source.stderr]).toEqual([1, expect.stringContaining("--artifact FILE")]);
    expect((await relay.run(["worker", "start", "--concurrency", "4"])).stderr).toContain(
      "hint: clio-relay cluster add far --worker-concurrency 4",
    );
    await relay.ok("cluster", "add", "--name", "nowhere", "--ssh-host", "nowhere.invalid");
    expect(await relay.json("cluster", "probe", "nowhere")).toMatchObject({ ssh_reachable: false, state: "ssh_unreachable" });
    expect(node.sshd.connections()).toBe(before);
    const unasked = await relay.run(["cluster", "probe", "far", "--no-input"]);
    expect([unasked.code, unasked.stderr]).toEqual([4, expect.stringContaining("[authorization_required]")]);
  });
});
