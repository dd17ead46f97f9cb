import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { version } from "../../package.json";
import { Wine } from "../rigs/wine.ts";
import { describeWith } from "../runner/components.ts";
import type { CommandResult } from "../runner/relay.ts";
import { eventually } from "../runner/wait.ts";
import { builtFor } from "./target.ts";

describeWith("wine", "the build for Windows", () => {
  let wine: Wine;
  let executable: string;
  beforeAll(() => {
    executable = builtFor("bun-windows-x64");
    wine = Wine.start();
  });
  afterAll(() => wine[Symbol.asyncDispose]());

  /** An installation of its own, below a directory of this machine. */
  function installation(name: string) {
    const home = path.join(wine.scratch, name);
    const run = (...args: string[]): Promise<CommandResult> => wine.run(executable, args, { CLIO_RELAY_HOME: Wine.path(home) });
    return { home, run, json: async <T>(...args: string[]) => succeeded(await run(...args, "--json")).json<T>() };
  }
  function succeeded(result: CommandResult): CommandResult {
    expect(result.code, result.stderr).toBe(0);
    return result;
  }

  test("starts and knows its version", async () => {
    expect(await wine.run(executable, ["--version"])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  test("keeps a registry, and serves it through a daemon on loopback that starts by itself and stops when it is told", async () => {
    const { home, run, json } = installation("desktop");
    succeeded(await run("init"));
    expect(await json("cluster", "list")).toEqual({ clusters: [] });
    succeeded(await run("cluster", "add", "--name", "remote", "--ssh-host", "login.example"));
    expect(await json("cluster", "list")).toMatchObject({ clusters: [{ name: "remote", ssh_host: "login.example" }] });
    const status = await json<{ socket: string; process: { pid: number; start_time: number } }>("desktop", "status");
    expect(status.socket).toStartWith("http://127.0.0.1:");
    expect(status.process.start_time).toBeGreaterThan(Date.parse("2020-01-01"));
    expect(await json("desktop", "start")).toMatchObject({ started: false, process: status.process });
    expect(await json("desktop", "stop")).toEqual({ state: "stopped", pid: status.process.pid });
    expect((await run("desktop", "status")).code).toBe(5);
    // It went by itself and in order.
    expect(fs.readFileSync(path.join(home, "log", "desktop.log"), "utf8")).toContain("info stopped");
    expect(fs.existsSync(path.join(home, "run", "desktop.json"))).toBe(false);
  });

  test("of commands at once, one starts the daemon, and all get their answer", async () => {
    const { home, run, json } = installation("at-once");
    succeeded(await run("init"));
    const answers = await Promise.all(
      Array.from({ length: 4 }, (_, n) => run("cluster", "add", "--name", `c${n}`, "--ssh-host", `host${n}`)),
    );
    for (const answer of answers) succeeded(answer);
    const { clusters } = await json<{ clusters: { name: string }[] }>("cluster", "list");
    expect(clusters.map(({ name }) => name).sort()).toEqual(["c0", "c1", "c2", "c3"]);
    expect(fs.readFileSync(path.join(home, "log", "desktop.log"), "utf8").match(/ runs as process /g)).toHaveLength(1);
    expect((await json<{ state: string }>("desktop", "stop")).state).toBe("stopped");
  });

  test("refuses to be a worker, with what to do instead", async () => {
    const { run } = installation("worker");
    succeeded(await run("init"));
    for (const verb of ["run", "start"]) {
      const refused = await run("worker", verb, "--cluster", "local");
      expect(refused.code).toBe(1);
      expect(refused.stderr).toContain("[platform_unsupported]");
      expect(refused.stderr).toContain("clio-relay cluster add");
    }
    expect((await run("job", "list", "--cluster", "nowhere")).code).toBe(3);
  });

  test("a lock excludes other processes, ends with its holder, and leaves the content to everybody", async () => {
    const file = path.join(wine.scratch, "lock");
    const child = (command: string) =>
      wine.run(executable, [Wine.path(`${import.meta.dir}/windows-locks-child.ts`), Wine.path(file), command], { BUN_BE_BUN: "1" });
    expect((await child("release")).stdout).toBe("locked\nagain\n");
    const staying = child("stay");
    await eventually(() => fs.existsSync(`${file}.pid`) && fs.readFileSync(`${file}.pid`, "utf8") !== "", {
      what: "the holder of the lock",
    });
    expect((await child("release")).stdout).toBe("held\n");
    const [held, identity] = (await child("identity")).stdout.trim().split("\n");
    expect(held).toBe("held");
    const pid = Number(fs.readFileSync(`${file}.pid`, "utf8"));
    expect(JSON.parse(identity!)).toMatchObject({ other: { pid }, alive: true, impostor: false, content: "written while locked\n" });
    await wine.run("taskkill", ["/F", "/PID", String(pid)]);
    await staying;
    expect((await child("release")).stdout).toBe("locked\nagain\n");
    expect(JSON.parse((await child("identity")).stdout.trim().split("\n")[1]!)).toMatchObject({ other: null });
  });

  test("a file is replaced as soon as its reader is done", async () => {
    const file = path.join(wine.scratch, "replaced");
    fs.writeFileSync(`${file}.target`, "old");
    const child = await wine.run(executable, [Wine.path(`${import.meta.dir}/windows-locks-child.ts`), Wine.path(file), "replace"], {
      BUN_BE_BUN: "1",
    });
    expect(child.stdout, child.stderr).toBe("locked\nnew\n");
  });
});
