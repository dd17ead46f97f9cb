import { expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type ComponentName, describeWith } from "../runner/components.ts";
import { eventually } from "../runner/wait.ts";
import { HOST_FILE, Installing, program, SYSTEM } from "./installing.ts";

const layoutOf = (home: string, current: string, ...others: readonly string[]): string[] =>
  [
    `bin/clio-relay -> ${home}/.local/share/clio-relay/current/clio-relay`,
    `share/clio-relay/current -> versions/${current}`,
    ...(others[0] === undefined ? [] : [`share/clio-relay/previous -> versions/${others[0]}`]),
    ...[current, ...others].flatMap((digest) => [
      `share/clio-relay/versions/${digest}/clio-relay`,
      `share/clio-relay/versions/${digest}/version`,
    ]),
  ].sort();

const SHELLS: readonly (readonly [ComponentName, readonly string[]])[] = [
  ["linux", ["sh"]],
  ["linux", ["bash", "--posix"]],
  ["busybox", ["busybox", "ash"]],
  ["ksh", ["ksh"]],
  ["mksh", ["mksh"]],
];

for (const [component, shell] of SHELLS) {
  describeWith([component, "curl"], `the installer in ${shell.join(" ")}`, () => {
    test("installs, does nothing the second time, keeps the version before the next one, and goes back", async () => {
      await using site = new Installing();
      const first = site.publish("0.1.0");
      const installed = await site.run({ shell });
      expect(installed, installed.stderr).toMatchObject({ code: 0 });
      expect(installed.stdout).toBe(`clio-relay 0.1.0 is installed: ${site.home}/.local/share/clio-relay/current/clio-relay\n`);
      expect(installed.stderr).toContain(`${site.home}/.local/bin is not on PATH. Add it:`);
      expect(site.installed()).toEqual(layoutOf(site.home, first));
      expect(Bun.spawnSync([path.join(site.home, ".local/bin/clio-relay"), "--version"]).stdout.toString()).toBe("0.1.0\n");
      expect(fs.statSync(path.join(site.home, ".local/bin/clio-relay")).mode & 0o777).toBe(0o500);

      expect((await site.run({ shell })).code).toBe(0);
      expect(site.requests.filter((request) => request === `/${HOST_FILE}`)).toHaveLength(1);

      const second = site.publish("0.2.0");
      expect((await site.run({ shell })).stdout).toContain("clio-relay 0.2.0 is installed");
      expect(site.installed()).toEqual(layoutOf(site.home, second, first));
      site.publish("0.1.0");
      expect((await site.run({ shell })).code).toBe(0);
      expect(site.installed()).toEqual(layoutOf(site.home, first, second));
    });

    // In one shell at every line; the others differ in how they read on, which takes no more than some lines to see.
    const every = shell[0] === "sh" ? 1 : 23;
    test("does nothing when its text was cut at a line, or at any byte of the end", async () => {
      await using site = new Installing();
      site.publish("0.1.0");
      const lines = site.script.split("\n").slice(0, -1);
      const body = `${lines.slice(0, -1).join("\n")}\n`;
      const end = lines.at(-1)!;
      const cuts = [
        ...lines.flatMap((_, count) => (count % every === 0 ? [`${lines.slice(0, count).join("\n")}\n`] : [])),
        // All but the line break at the very end: with that one missing everything has been read.
        ...Array.from({ length: end.length }, (_, length) => body + end.slice(0, length)),
      ];
      expect(cuts.length).toBeGreaterThan(40);
      for (let at = 0; at < cuts.length; at += 8) await Promise.all(cuts.slice(at, at + 8).map((script) => site.run({ shell, script })));
      expect(site.requests).toEqual([]);
      expect(fs.readdirSync(site.home)).toEqual([]);
      expect((await site.run({ shell, script: body + end })).code).toBe(0);
    });
  });
}

describeWith("shellcheck", "the installer's text", () => {
  test("is POSIX sh without a fault that shellcheck knows", async () => {
    await using site = new Installing();
    const file = path.join(site.directory, "install.sh");
    fs.writeFileSync(file, site.script);
    // 2034: the scripts that are included share variables. 2015: `a && b || refuse` means what it says.
    const checked = Bun.spawnSync(["shellcheck", "--shell=sh", "--severity=info", "--exclude=SC2034,SC2015,SC2317,SC2012", file]);
    expect(checked.stdout.toString()).toBe("");
    expect(checked.exitCode).toBe(0);
  });
});

describeWith(["linux", "curl"], "the installer", () => {
  test("says what it would do, and does none of it", async () => {
    await using site = new Installing();
    const digest = site.publish("0.1.0");
    const said = await site.run({ args: ["--dry-run"] });
    expect(said.code, said.stderr).toBe(0);
    expect(said.stdout).toMatch(new RegExp(`^file +${HOST_FILE}$`, "m"));
    expect(said.stdout).toContain(digest);
    expect(site.requests).toEqual(["/SHA256SUMS"]);
    expect(fs.readdirSync(site.directory).filter((name) => name !== "home")).toEqual([]);
    expect(fs.readdirSync(site.home)).toEqual([]);
  });

  test("of a release knows its page and its version; another version is asked for by name", async () => {
    await using site = new Installing();
    const digest = site.publish("0.1.0");
    for (const name of ["SHA256SUMS", HOST_FILE]) site.files.set(`/page/download/v0.1.0/${name}`, site.files.get(`/${name}`)!);
    const { installerScript } = await import("../../scripts/release/installer.ts");
    const script = installerScript(process.cwd(), "0.1.0", `${site.url}/page`);
    const env = { CLIO_RELAY_BASE_URL: undefined };
    const run = await site.run({ script, env });
    expect(run, run.stderr).toMatchObject({ code: 0 });
    expect(site.requests).toEqual(["/page/download/v0.1.0/SHA256SUMS", `/page/download/v0.1.0/${HOST_FILE}`]);
    expect(site.installed()).toEqual(layoutOf(site.home, digest));
    expect((await site.run({ script, env, args: ["--version", "v9.9.9"] })).code).toBe(1);
    expect(site.requests.at(-1)).toBe("/page/download/v9.9.9/SHA256SUMS");
  });

  test("takes the files from a directory, without any network", async () => {
    await using site = new Installing();
    const digest = site.publish("0.1.0");
    const offline = path.join(site.directory, "a directory");
    fs.mkdirSync(offline);
    for (const name of ["SHA256SUMS", HOST_FILE]) fs.writeFileSync(path.join(offline, name), site.files.get(`/${name}`) as string);
    const PATH = site.tools([...SYSTEM, "sha256sum"]);
    const run = await site.run({ env: { PATH, CLIO_RELAY_OFFLINE_DIR: offline } });
    expect(run, run.stderr).toMatchObject({ code: 0 });
    expect(site.requests).toEqual([]);
    expect(site.installed()).toEqual(layoutOf(site.home, digest));
  });

  test("goes through the proxy that the environment names", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    const proxied: string[] = [];
    const proxy = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        proxied.push(request.url);
        return fetch(`${site.url}${new URL(request.url).pathname}`, { proxy: false } as unknown as RequestInit);
      },
    });
    try {
      // Nobody listens on port 1: only the proxy knows the way.
      const run = await site.run({ env: { CLIO_RELAY_BASE_URL: "http://localhost:1/", http_proxy: `http://127.0.0.1:${proxy.port}` } });
      expect(run, run.stderr).toMatchObject({ code: 0 });
      expect(proxied).toEqual(["http://localhost:1/SHA256SUMS", `http://localhost:1/${HOST_FILE}`]);
    } finally {
      await proxy.stop(true);
    }
  });

  test("installs below another place, with blanks in its name, and through a home that is a link", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    const prefix = path.join(site.directory, "another place");
    expect((await site.run({ args: ["--prefix", prefix] })).code).toBe(0);
    expect(Bun.spawnSync([path.join(prefix, "bin/clio-relay"), "--version"]).stdout.toString()).toBe("0.1.0\n");
    expect(fs.readdirSync(site.home)).toEqual([]);
    const HOME = path.join(site.directory, "link to home");
    fs.symlinkSync(site.home, HOME);
    expect((await site.run({ env: { HOME } })).code).toBe(0);
    expect(Bun.spawnSync([path.join(HOME, ".local/bin/clio-relay"), "--version"]).stdout.toString()).toBe("0.1.0\n");
  });

  test("what it says to add to PATH is what the shell makes of it, whatever is in the name", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    for (const name of ["plain", 'it\'s a "place" of $HOME `id` \\n']) {
      const prefix = path.join(site.home, name);
      const { code, stderr } = await site.run({ args: ["--prefix", prefix], env: { SHELL: "/bin/bash" } });
      expect(code, stderr).toBe(0);
      const command = /is not on PATH\. Add it:\n {2}(.*)\n/.exec(stderr)![1]!;
      fs.rmSync(path.join(site.home, ".bashrc"), { force: true });
      const env = { HOME: site.home, PATH: "/usr/bin:/bin" };
      const added = Bun.spawnSync(["sh", "-c", `${command}\n. "$HOME/.bashrc"; printf %s "$PATH"`], { env });
      expect(added.stdout.toString()).toBe(`${prefix}/bin:/usr/bin:/bin`);
      const shown = (shell: string) => site.run({ args: ["--prefix", prefix], env: { SHELL: shell } });
      expect((await shown("/bin/tcsh")).stderr).toContain(name === "plain" ? `setenv PATH "${prefix}/bin:` : "as a part of PATH");
    }
  });

  test("sweeps what killed installers have left, and nothing of those that run", async () => {
    await using site = new Installing();
    const digest = site.publish("0.1.0");
    const gone = Bun.spawn(["true"], { stdout: "ignore" });
    await gone.exited;
    const versions = path.join(site.home, ".local/share/clio-relay/versions");
    fs.mkdirSync(versions, { recursive: true });
    const host = os.hostname();
    const left = [
      [path.join(versions, `.incoming-${"0".repeat(64)}.${host}.`), false],
      [path.join(versions, `.incoming-${digest}.${host}.`), false],
      [path.join(versions, `.incoming-${digest}.another.host.`), true],
      [path.join(site.directory, "clio-relay-install."), false],
    ] as const;
    for (const [place] of left) for (const pid of [gone.pid, process.pid]) fs.writeFileSync(`${place}${pid}`, "x");
    const { code, stderr } = await site.run();
    expect(code, stderr).toBe(0);
    for (const [place, stays] of left) {
      expect([place, fs.existsSync(`${place}${gone.pid}`), fs.existsSync(`${place}${process.pid}`)]).toEqual([place, stays, true]);
    }
  });

  test("leaves a program of the same name alone, and says which one is found first", async () => {
    await using site = new Installing();
    site.publish("0.1.0");
    const PATH = `${site.tools([], { "clio-relay": "echo other" })}:${site.home}/.local/bin:${process.env.PATH}`;
    expect((await site.run({ env: { PATH } })).stderr).toContain(
      `another clio-relay comes first on PATH: ${PATH.split(":")[0]}/clio-relay`,
    );
    const launcher = path.join(site.home, ".local/bin/clio-relay");
    fs.rmSync(launcher);
    fs.writeFileSync(launcher, "mine");
    const run = await site.run();
    expect(run.code).toBe(0);
    expect(run.stderr).toContain("something else and stays as it is");
    expect(fs.readFileSync(launcher, "utf8")).toBe("mine");
  });

  test("two at once both succeed, or one says that the other is at work; what is there is whole", async () => {
    await using site = new Installing();
    const digest = site.publish("0.1.0");
    const runs = await Promise.all([site.run(), site.run(), site.run()]);
    expect(runs.filter(({ code }) => code === 0).length).toBeGreaterThan(0);
    for (const { code, stderr } of runs) if (code !== 0) expect(stderr).toContain("another installation is under way");
    expect(site.installed()).toEqual(layoutOf(site.home, digest));
  });

  test("removes what it installed, names what stays, and keeps a version that runs", async () => {
    await using site = new Installing();
    // A real program, so that the system knows which file runs.
    const digest = site.publish("0.1.0", program("0.1.0"));
    expect((await site.run()).code).toBe(0);
    const root = path.join(site.home, ".local/share/clio-relay");
    fs.mkdirSync(path.join(root, "core/local"), { recursive: true });
    fs.writeFileSync(path.join(root, "core/local/owner.json"), "{}");
    const refused = await site.run({ args: ["--uninstall"] });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("a worker has its record in");
    expect(site.installed()).toContain(`share/clio-relay/current -> versions/${digest}`);

    fs.renameSync(path.join(root, "core/local/owner.json"), path.join(root, "core/local/queue.db"));
    fs.rmSync(path.join(root, "versions", digest, "clio-relay"));
    fs.copyFileSync("/bin/sleep", path.join(root, "versions", digest, "clio-relay"));
    const running = Bun.spawn([path.join(root, "versions", digest, "clio-relay"), "60"]);
    await eventually(() => fs.readlinkSync(`/proc/${running.pid}/exe`).includes(digest), { what: "the program that runs" });
    const kept = await site.run({ args: ["--uninstall"] });
    expect(kept.code, kept.stderr).toBe(0);
    expect(kept.stderr).toContain("still running");
    running.kill("SIGKILL");
    await running.exited;
    const gone = await site.run({ args: ["--uninstall"] });
    expect(gone.code, gone.stderr).toBe(0);
    expect(gone.stderr).toContain("what remains is yours");
    expect(site.installed()).toEqual(["share/clio-relay/core/local/queue.db"]);
    expect((await site.run({ args: ["--uninstall", "--prefix", path.join(site.directory, "nowhere")] })).stderr).toContain(
      "nothing is installed",
    );
  });
});
