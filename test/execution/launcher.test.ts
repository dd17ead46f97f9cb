import { afterEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { readExit, readStart } from "../../src/execution/attempt-dir.ts";
import { directSpawner, SHIM_ENVIRONMENT } from "../../src/execution/direct-spawner.ts";
import type { ShimLauncher, ShimProcess, ShimSpawner } from "../../src/execution/launcher.ts";
import { chooseScope, scopeArgv, unitOf } from "../../src/execution/scope-spawner.ts";
import { SpareShimLauncher } from "../../src/execution/spare-pool.ts";
import { identify, processStat } from "../../src/lib/system/process-identity.ts";
import { eventually } from "../runner/wait.ts";
import { FROM_SOURCE, SPARE_SPOOL, sh, testAttempts } from "./attempts.ts";

const attempt = testAttempts();
const launchers: ShimLauncher[] = [];
afterEach(async () => {
  for (const launcher of launchers.splice(0)) await launcher.close();
});

const direct = (spares = 0): SpareShimLauncher => {
  const launcher = new SpareShimLauncher(directSpawner({ command: FROM_SOURCE, cgroupParent: null }), { spares, spool: SPARE_SPOOL });
  launchers.push(launcher);
  return launcher;
};

describe("a launched shim", () => {
  test("runs its attempt, and its end is told", async () => {
    const job = attempt(sh("echo ran"));
    const shim = await direct().launch(job.directory);
    await shim.exited;
    expect(readExit(job.directory)).toMatchObject({ outcome: { reason: "completed" } });
    expect(readStart(job.directory)).toMatchObject({ shim: { pid: shim.pid } });
    expect(job.text("stdout.log")).toBe("ran\n");
  });

  test("has a session of its own, and nothing of the worker's environment, files or directory", async () => {
    const job = attempt(sh("echo up; sleep 1000"));
    const secret = fs.openSync(job.root, "r");
    const shim = await direct().launch(job.directory);
    await job.output("up");
    const stat = processStat(shim.pid)!;
    expect([stat.session, stat.pgrp]).toEqual([shim.pid, shim.pid]);
    const environment = fs.readFileSync(`/proc/${shim.pid}/environ`, "utf8").split("\0").filter(Boolean);
    expect(Object.fromEntries(environment.map((entry) => entry.split("=", 2)))).toEqual(SHIM_ENVIRONMENT);
    expect(fs.readlinkSync(`/proc/${shim.pid}/cwd`)).toBe("/");
    const files = fs.readdirSync(`/proc/${shim.pid}/fd`).map((fd) => fs.readlinkSync(`/proc/${shim.pid}/fd/${fd}`));
    fs.closeSync(secret);
    expect(files).not.toContain(fs.realpathSync(job.root));
    for (const file of files.filter((name) => name.startsWith("/") && !name.startsWith("/dev/"))) {
      expect(file, "the shim's own files and its program").toMatch(
        new RegExp(`^(${job.directory}(/|$)|/proc/|${path.dirname(FROM_SOURCE[1]!)})`),
      );
    }
  });

  test("has no threads but those that its file calls need, so that it has none to start when there is no room for one", async () => {
    const job = attempt(sh("head -c 3000000 /dev/zero; echo up >&2; sleep 1000"));
    const shim = await direct().launch(job.directory);
    await eventually(() => job.text("stderr.log") === "up\n" && fs.statSync(path.join(job.directory, "stdout.log")).size === 3_000_000);
    const tasks = fs.readdirSync(`/proc/${shim.pid}/task`).filter((task) => task !== String(shim.pid));
    const names = tasks.map((task) => fs.readFileSync(`/proc/${shim.pid}/task/${task}/comm`, "utf8").trim());
    expect(names.filter((name) => name !== "mi-scavenger" && !name.startsWith("Bun Pool"))).toEqual([]);
  });

  test("that cannot be started is an error", async () => {
    const launcher = new SpareShimLauncher(directSpawner({ command: ["/no/such/relay"], cgroupParent: null }), {
      spares: 0,
      spool: SPARE_SPOOL,
    });
    const job = attempt(["true"]);
    await expect(launcher.launch(job.directory)).rejects.toThrow("/no/such/relay");
  });

  test("outlives the process that launched it, killed with its whole session", async () => {
    const job = attempt(sh("echo up; until [ -e go ]; do sleep 0.02; done; echo end"));
    const worker = Bun.spawn([process.execPath, path.join(import.meta.dir, "launching-worker-entry.ts"), job.directory, "1"], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
      detached: true,
    });
    await job.output("up");
    const { pid, spare } = JSON.parse(await firstLine(worker.stdout)) as { pid: number; spare: number };
    expect(identify(spare)).not.toBeNull();
    process.kill(-worker.pid, "SIGKILL");
    await worker.exited;
    // A spare has nobody left to wait for.
    await eventually(() => identify(spare) === null, { what: "the end of the spare" });
    expect(identify(pid)).not.toBeNull();
    fs.writeFileSync(`${job.workdir}/go`, "");
    const exit = await eventually(() => readExit(job.directory), { what: "exit.json" });
    expect(exit).toMatchObject({ outcome: { reason: "completed" } });
    expect(job.text("stdout.log")).toBe("up\nend\n");
  });
});

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream) {
    text += new TextDecoder().decode(chunk);
    if (text.includes("\n")) break;
  }
  return text.split("\n")[0]!;
}

describe("spares", () => {
  test("take attempts, and are replaced", async () => {
    const launcher = direct(2);
    await eventually(() => launcher.waiting === 2, { what: "two spares" });
    const jobs = [1, 2, 3, 4].map((n) => attempt(sh(`echo ${n}`)));
    const shims = await Promise.all(jobs.map((job) => launcher.launch(job.directory)));
    await Promise.all(shims.map((shim) => shim.exited));
    for (const [index, job] of jobs.entries()) {
      expect(readExit(job.directory)).toMatchObject({ outcome: { reason: "completed" } });
      expect(job.text("stdout.log")).toBe(`${index + 1}\n`);
    }
    expect(new Set(shims.map(({ pid }) => pid)).size).toBe(4);
    await eventually(() => launcher.waiting === 2, { what: "two fresh spares" });
  });

  test("are not told a directory that is no single line", async () => {
    const launcher = direct(1);
    await eventually(() => launcher.waiting === 1, { what: "a spare" });
    const root = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay\nlines-"));
    try {
      const job = attempt(sh("echo ran"), {}, root);
      await (await launcher.launch(job.directory)).exited;
      expect(job.text("stdout.log")).toBe("ran\n");
      expect(launcher.waiting).toBe(1);
    } finally {
      fs.rmSync(root, { recursive: true });
    }
  });

  test("that died while they waited are passed over", async () => {
    const spawner = directSpawner({ command: FROM_SOURCE, cgroupParent: null });
    const spares: ShimProcess[] = [];
    const troubles: string[] = [];
    const launcher = new SpareShimLauncher(
      {
        async spawn(args, logFile) {
          const shim = await spawner.spawn(args, logFile);
          if (args.includes("--spare")) spares.push(shim);
          return shim;
        },
      },
      { spares: 2, spool: SPARE_SPOOL, onTrouble: (message) => troubles.push(message) },
    );
    launchers.push(launcher);
    await eventually(() => launcher.waiting === 2, { what: "two spares" });
    for (const { pid } of spares) process.kill(pid, "SIGKILL");
    await Promise.all(spares.slice(0, 2).map((spare) => spare.exited));
    const job = attempt(sh("echo ran"));
    const shim = await launcher.launch(job.directory);
    await shim.exited;
    expect(job.text("stdout.log")).toBe("ran\n");
    expect(troubles.length).toBe(2);
  });

  test("end when the launcher closes; shims with an attempt do not", async () => {
    const launcher = new SpareShimLauncher(directSpawner({ command: FROM_SOURCE, cgroupParent: null }), { spares: 1, spool: SPARE_SPOOL });
    await eventually(() => launcher.waiting === 1, { what: "a spare" });
    const job = attempt(sh("echo up; sleep 1000"));
    const shim = await launcher.launch(job.directory);
    await job.output("up");
    await eventually(() => launcher.waiting === 1, { what: "a fresh spare" });
    await launcher.close();
    expect(launcher.waiting).toBe(0);
    expect(identify(shim.pid)).not.toBeNull();
    // Closed for good: what it starts now is fresh, and nothing waits.
    const late = attempt(sh("echo late"));
    await (await launcher.launch(late.directory)).exited;
    expect(late.text("stdout.log")).toBe("late\n");
    expect(launcher.waiting).toBe(0);
  });

  test("that are stopped do not keep the launcher from closing", async () => {
    const spawner = directSpawner({ command: FROM_SOURCE, cgroupParent: null });
    const spares: ShimProcess[] = [];
    const launcher = new SpareShimLauncher(
      {
        async spawn(args, logFile) {
          const spare = await spawner.spawn(args, logFile);
          spares.push(spare);
          return spare;
        },
      },
      { spares: 2, spool: SPARE_SPOOL },
    );
    await eventually(() => launcher.waiting === 2, { what: "two spares" });
    process.kill(spares[0]!.pid, "SIGSTOP");
    await launcher.close();
    for (const { pid } of spares) expect(identify(pid)).toBeNull();
  });

  test("that cannot be started are told of, and launching goes on without", async () => {
    const real = directSpawner({ command: FROM_SOURCE, cgroupParent: null });
    const spawner: ShimSpawner = {
      spawn: (args, logFile) => (args.includes("--spare") ? Promise.reject(new Error("no more processes")) : real.spawn(args, logFile)),
    };
    const troubles: string[] = [];
    const launcher = new SpareShimLauncher(spawner, { spares: 1, spool: SPARE_SPOOL, onTrouble: (message) => troubles.push(message) });
    launchers.push(launcher);
    await eventually(() => troubles.length > 0, { what: "trouble" });
    const job = attempt(sh("echo ran"));
    await (await launcher.launch(job.directory)).exited;
    expect(job.text("stdout.log")).toBe("ran\n");
  });
});

describe("a shim for an attempt that is expected", () => {
  const dismissed = new Set<number>();

  /** A launcher without spares, and the shims that it starts. */
  function watched(expectedMs?: number): { launcher: SpareShimLauncher; started: { args: readonly string[]; shim: ShimProcess }[] } {
    const real = directSpawner({ command: FROM_SOURCE, cgroupParent: null });
    const started: { args: readonly string[]; shim: ShimProcess }[] = [];
    const spawner: ShimSpawner = {
      async spawn(args, logFile) {
        const shim = await real.spawn(args, logFile);
        started.push({ args, shim });
        return {
          ...shim,
          dismiss: () => {
            dismissed.add(shim.pid);
            shim.dismiss();
          },
        };
      },
    };
    const launcher = new SpareShimLauncher(spawner, { spares: 0, spool: SPARE_SPOOL, ...(expectedMs === undefined ? {} : { expectedMs }) });
    launchers.push(launcher);
    return { launcher, started };
  }

  test("is started once, and runs the attempt that comes", async () => {
    const { launcher, started } = watched();
    launcher.expect();
    launcher.expect();
    const job = attempt(sh("echo ran"));
    const shim = await launcher.launch(job.directory);
    await shim.exited;
    expect(job.text("stdout.log")).toBe("ran\n");
    expect(readStart(job.directory)).toMatchObject({ shim: { pid: shim.pid } });
    expect(started.map(({ args }) => args)).toEqual([["__shim", "--told", SPARE_SPOOL]]);
    const next = attempt(sh("echo ran"));
    await (await launcher.launch(next.directory)).exited;
    expect(started.map(({ args }) => args[1])).toEqual(["--told", next.directory]);
  });

  test("that does not come ends", async () => {
    const { launcher, started } = watched(50);
    launcher.expect();
    await eventually(() => started.length === 1, { what: "a shim" });
    await started[0]!.shim.exited;
    expect(identify(started[0]!.shim.pid)).toBeNull();
  });

  test("that does not come, and is stopped, is ended all the same, before the launcher has closed", async () => {
    const { launcher, started } = watched(50);
    launcher.expect();
    await eventually(() => started.length === 1, { what: "a shim" });
    const { shim } = started[0]!;
    process.kill(shim.pid, "SIGSTOP");
    await eventually(() => dismissed.has(shim.pid), { what: "its dismissal" });
    await launcher.close();
    expect(identify(shim.pid)).toBeNull();
  });

  test("and cannot be started is nobody's error before the launch", async () => {
    const troubles: unknown[] = [];
    const spawner: ShimSpawner = {
      spawn: () => {
        throw Object.assign(new Error("no more processes"), { code: "EAGAIN" });
      },
    };
    const launcher = new SpareShimLauncher(spawner, { spares: 0, spool: SPARE_SPOOL, onTrouble: (message) => troubles.push(message) });
    launchers.push(launcher);
    launcher.expect();
    await expect(launcher.launch(attempt(sh("echo ran")).directory)).rejects.toThrow("no more processes");
    expect(troubles).toEqual([]);
  });

  test("ends with the launcher", async () => {
    const { launcher, started } = watched();
    launcher.expect();
    await launcher.close();
    launcher.expect();
    expect(started.map(({ shim }) => identify(shim.pid))).toEqual([null]);
  });

  test("and is killed meanwhile is replaced", async () => {
    const { launcher, started } = watched();
    launcher.expect();
    await eventually(() => started.length === 1, { what: "a shim" });
    started[0]!.shim.kill();
    await started[0]!.shim.exited;
    const job = attempt(sh("echo ran"));
    await (await launcher.launch(job.directory)).exited;
    expect(job.text("stdout.log")).toBe("ran\n");
  });
});

describe("scopes of a service manager", () => {
  test("get a name of the shim and the command after a separator", () => {
    expect(scopeArgv("system", "0a1b", ["/opt/clio-relay", "__shim", "--spare"])).toEqual([
      "systemd-run",
      "--system",
      "--scope",
      "--collect",
      "--quiet",
      "--unit=clio-relay-shim-0a1b",
      "--",
      "/opt/clio-relay",
      "__shim",
      "--spare",
    ]);
    expect(scopeArgv("user", "0a1b", ["true"])[1]).toBe("--user");
  });

  const system = "/sys/fs/cgroup/system.slice/clio-relay.service";
  const own = "/sys/fs/cgroup/user.slice/user-7.slice/user@7.service/app.slice/clio-relay-worker.service";
  const session = "/sys/fs/cgroup/user.slice/user-7.slice/session-3.scope";

  test("are for workers that are part of a unit", () => {
    expect(unitOf(system)).toBe("clio-relay.service");
    expect(unitOf(`${own}/payload`)).toBe("clio-relay-worker.service");
    expect(unitOf(session)).toBe("session-3.scope");
    expect(unitOf("/sys/fs/cgroup")).toBeNull();
    expect(unitOf(null)).toBeNull();
  });

  /** What is chosen on a machine where these managers make scopes, and who was asked. */
  async function choice(group: string | null, uid: number, makes: readonly string[], lingers = false, worker = {}) {
    const asked: { manager: string; environment: Readonly<Record<string, string>> }[] = [];
    const chosen = await chooseScope({
      group,
      uid,
      worker,
      lingers: () => lingers,
      run: (argv, environment) => {
        const manager = argv[1]!.slice(2);
        asked.push({ manager, environment });
        return Promise.resolve(makes.includes(manager) ? 0 : 1);
      },
    });
    return { ...chosen, asked: asked.map(({ manager }) => manager), environments: asked.map(({ environment }) => environment) };
  }

  test("are asked of the machine's manager by root, of the user's by others, and tried before they are used", async () => {
    const both = ["system", "user"];
    expect(await choice(system, 0, both)).toMatchObject({ manager: "system", hazard: null, asked: ["system"] });
    expect(await choice(session, 0, both)).toMatchObject({ manager: "system", asked: ["system"] });
    expect(await choice(system, 0, ["user"])).toMatchObject({ manager: "user", asked: both });
    expect(await choice(system, 7, both)).toMatchObject({ manager: "user", asked: ["user"] });
    expect(await choice(own, 7, both)).toMatchObject({ manager: "user", hazard: null, asked: ["user"] });
    expect(await choice(system, 7, [])).toMatchObject({
      manager: null,
      hazard: expect.stringContaining("KillMode=process"),
      asked: ["user"],
    });
    expect(await choice("/sys/fs/cgroup", 0, both)).toMatchObject({ manager: null, hazard: null, asked: [] });
    expect(await choice(null, 7, both)).toMatchObject({ manager: null, hazard: null, asked: [] });
  });

  test("of a user's manager that ends with the session are no help to a worker in it", async () => {
    const gone = await choice(session, 7, ["user"]);
    expect(gone).toMatchObject({ manager: null, hazard: expect.stringContaining("enable-linger"), asked: [] });
    expect(await choice(session, 7, ["user"], true)).toMatchObject({ manager: "user", hazard: null });
  });

  test("are asked for with the manager's address, and with nothing else of the worker's environment", async () => {
    const worker = { XDG_RUNTIME_DIR: "/run/own", CLIO_RELAY_API_TOKEN: "t", DBUS_SESSION_BUS_ADDRESS: "" };
    expect((await choice(own, 7, ["user"], false, worker)).environments).toEqual([{ ...SHIM_ENVIRONMENT, XDG_RUNTIME_DIR: "/run/own" }]);
    // A system unit's environment has none.
    expect((await choice(system, 7, ["user"])).environments).toEqual([{ ...SHIM_ENVIRONMENT, XDG_RUNTIME_DIR: "/run/user/7" }]);
    expect((await choice(system, 0, ["system"], false, worker)).environments).toEqual([SHIM_ENVIRONMENT]);
  });
});
