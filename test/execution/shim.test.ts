import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import { readProcess, readStart } from "../../src/execution/attempt-dir.ts";
import { bootId } from "../../src/lib/system/process-identity.ts";
import { bash, sh, testAttempts } from "./attempts.ts";

const attempt = testAttempts();

describe("a job that ends by itself", () => {
  test("leaves its records, its output and its exit code", async () => {
    const job = attempt(sh("echo out; echo err >&2; exit 3"));
    const exit = await job.run();
    expect(exit.outcome).toEqual({ reason: "exit_nonzero", exit_code: 3, signal: null, message: "exited with code 3", residual: [] });
    expect(job.text("stdout.log")).toBe("out\n");
    expect(job.text("stderr.log")).toBe("err\n");
    expect(exit.streams.stdout).toEqual({
      observed: 4,
      kept: 4,
      dropped: 0,
      truncated: null,
      complete: true,
      sha256: new Bun.CryptoHasher("sha256").update("out\n").digest("hex"),
    });
    expect(exit.leftover).toBe(0);
    expect(exit.usage!.user_seconds + exit.usage!.system_seconds).toBeGreaterThanOrEqual(0);
    expect(exit.usage!.max_rss_bytes).toBeGreaterThan(0);
    expect(job.shim!.exitCode).toBe(0);

    const start = readStart(job.directory);
    expect(start).toMatchObject({ record_version: 1, claimed_by: "shim", shim: { pid: job.shim!.pid, boot_id: bootId() } });
    const { process: first, started_at } = readProcess(job.directory)!;
    expect(first.pid).not.toBe(job.shim!.pid);
    expect(exit.started_at).toBe(started_at);
    expect(Date.parse(exit.ended_at)).toBeGreaterThanOrEqual(Date.parse(started_at));
    expect(fs.readdirSync(job.directory).sort()).toEqual(
      ["events", "exit.json", "process.json", "shim.err", "spec.json", "start.json", "stderr.log", "stdout.log"].sort(),
    );
    for (const file of ["exit.json", "process.json", "spec.json", "start.json", "stderr.log", "stdout.log"]) {
      expect(fs.statSync(job.file(file)).mode & 0o777, file).toBe(0o600);
    }
  });

  test("succeeds with code 0", async () => {
    expect((await attempt(["true"]).run()).outcome).toMatchObject({ reason: "completed", exit_code: 0, signal: null });
  });

  test("that a signal ended is told apart from one that exited", async () => {
    expect((await attempt(sh("kill -KILL $$")).run()).outcome).toMatchObject({ reason: "signaled", exit_code: null, signal: "SIGKILL" });
    expect((await attempt(sh("exit 137")).run()).outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 137, signal: null });
    const realTime = (await attempt(sh("kill -40 $$")).run()).outcome;
    expect(realTime).toMatchObject({ reason: "signaled", exit_code: null });
    expect(realTime.signal).toContain("40");
  });
});

describe("what the first process is given", () => {
  test("exactly the environment of the spec and the mark of the attempt", async () => {
    const env = { PATH: "/usr/bin:/bin", EMPTY: "", UNICODE: "räksmörgås ☃", LINES: "a\nb", EQUALS: "x=y" };
    const job = attempt(["env", "-0"], { env });
    expect((await job.run()).outcome.reason).toBe("completed");
    const seen = Object.fromEntries(
      job
        .text("stdout.log")
        .split("\0")
        .filter(Boolean)
        .map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]),
    );
    expect(seen).toEqual({ ...env, CLIO_RELAY_ATTEMPT: job.mark });
  });

  test("its arguments, byte for byte", async () => {
    const words = ["", " ", "a b", "'\"$(echo no)`", "new\nline", "-n", "ünïcödé", "\t*"];
    const job = attempt(["printf", "%s\\0", ...words]);
    await job.run();
    expect(job.text("stdout.log")).toBe(words.map((word) => `${word}\0`).join(""));
  });

  test("its working directory, nothing on standard input, real pipes, no other file", async () => {
    const job = attempt(
      sh("pwd; cat; echo through > /dev/stdout; ls -l /proc/self/fd | sed 1d | wc -l; readlink /proc/$$/fd/1 | cut -c1-4"),
    );
    await job.run();
    const lines = job.text("stdout.log").trim().split("\n");
    // ls has the three standard files and the directory that it lists.
    expect(lines).toEqual([fs.realpathSync(job.workdir), "through", "4", "pipe"]);
  });

  test("a session of its own, and no signal ignored or blocked", async () => {
    const job = attempt(["grep", "-E", "^(NSsid|NSpgid|SigBlk|SigIgn)", "/proc/self/status"]);
    await job.run();
    const { pid } = readProcess(job.directory)!.process;
    const none = "0000000000000000";
    expect(job.text("stdout.log")).toBe(`NSpgid:\t${pid}\nNSsid:\t${pid}\nSigBlk:\t${none}\nSigIgn:\t${none}\n`);
  });

  test("the name by which it was called", async () => {
    const job = attempt(bash("echo $0"), { argv: ["bash", "-c", "tr '\\0' ' ' < /proc/$$/cmdline"] });
    await job.run();
    expect(job.text("stdout.log")).toStartWith("bash -c ");
  });
});

describe("finding the program", () => {
  test("by the job's PATH, and relative to its working directory", async () => {
    const job = attempt(["./tool", "x"], { env: { PATH: "bin:/usr/bin:/bin" } });
    fs.mkdirSync(`${job.workdir}/bin`);
    fs.writeFileSync(`${job.workdir}/tool`, "#!/bin/sh\nexec named $1\n", { mode: 0o755 });
    fs.writeFileSync(`${job.workdir}/bin/named`, "#!/bin/sh\necho named $1\n", { mode: 0o755 });
    await job.run();
    expect(job.text("stdout.log")).toBe("named x\n");
  });

  const cases: [title: string, argv: string[], expected: RegExp, prepare?: (workdir: string) => void][] = [
    ["a program that is nowhere", ["no-such-program"], /not found: no-such-program \(.*127/],
    [
      "a command line in one word",
      ["echo hi there"],
      /^program not found: echo hi there; no shell reads a command, sh -c '…' runs one \(.*127/,
    ],
    ["a word of the shell", ["cd", "/tmp"], /^program not found: cd; no shell reads/],
    ["a path that is not there", ["/no/such/program"], /not found.*127/],
    [
      "a file that may not be executed",
      ["./data"],
      /cannot be executed.*126/,
      (dir) => fs.writeFileSync(`${dir}/data`, "x", { mode: 0o644 }),
    ],
    ["a directory", ["./dir"], /not a program.*126/, (dir) => fs.mkdirSync(`${dir}/dir`)],
    ["a file of no known format", ["./text"], /format.*126/, (dir) => fs.writeFileSync(`${dir}/text`, "echo hi\n", { mode: 0o755 })],
    [
      "a script without its interpreter",
      ["./s"],
      /interpreter.*127/,
      (dir) => fs.writeFileSync(`${dir}/s`, "#!/no/such\n", { mode: 0o755 }),
    ],
    ["arguments too large for the system", ["/bin/echo", "x".repeat(200_000)], /too large.*126/],
  ];
  for (const [title, argv, expected, prepare] of cases) {
    test(`${title} is a failed start`, async () => {
      const job = attempt(argv);
      prepare?.(job.workdir);
      const exit = await job.run();
      expect(exit.outcome).toMatchObject({ reason: "spawn_failed", exit_code: null, signal: null });
      expect(exit.outcome.message).toMatch(expected);
      expect(exit.started_at).toBeNull();
      expect(exit.usage).toBeNull();
      expect(readProcess(job.directory)).toBeNull();
      expect(fs.readdirSync(job.directory).filter((name) => name.endsWith(".tmp"))).toEqual([]);
    });
  }

  for (const [title, make] of [
    ["missing", () => undefined],
    ["a file", (dir: string) => fs.writeFileSync(dir, "")],
  ] as const) {
    test(`a working directory that is ${title} is a failed start`, async () => {
      const job = attempt(["true"]);
      const spec = { ...job.json("spec.json"), workdir: `${job.root}/elsewhere` };
      make(`${job.root}/elsewhere`);
      fs.writeFileSync(job.file("spec.json"), JSON.stringify(spec));
      const exit = await job.run();
      expect(exit.outcome.reason).toBe("spawn_failed");
      expect(exit.outcome.message).toContain("working directory");
    });
  }

  for (const [title, text] of [
    ["is missing", null],
    ["is cut short", '{"record_version":1,"argv":["tr'],
    ["has no arguments", '{"record_version":1,"argv":[]}'],
    ["is larger than records may be", `{"pad":"${"x".repeat(1024 * 1024)}"}`],
  ] as const) {
    test(`a spec that ${title} is a failed start, recorded`, async () => {
      const job = attempt(["true"]);
      if (text === null) fs.rmSync(job.file("spec.json"));
      else fs.writeFileSync(job.file("spec.json"), text);
      expect((await job.run()).outcome.reason).toBe("spawn_failed");
    });
  }
});

describe("setup text and login shells", () => {
  test("setup text is sourced before the program, and cannot change its arguments or directory", async () => {
    const job = attempt(["printf", "%s\\n", "one", "two words"], {
      env_setup: 'export FROM_SETUP=yes\nset -- lost\ncd /\necho "setup: $FROM_SETUP"',
    });
    await job.run();
    expect(job.text("stdout.log")).toBe("setup: yes\none\ntwo words\n");
    const where = attempt(sh("pwd; echo $FROM_SETUP"), { env_setup: "cd /; export FROM_SETUP=yes" });
    await where.run();
    expect(where.text("stdout.log")).toBe(`${fs.realpathSync(where.workdir)}\nyes\n`);
  });

  const strict: [title: string, setup: string, login: boolean, code: number][] = [
    ["a command that is not there", "no-such-module load x\nexport LATER=yes", false, 127],
    ["a function that fails", "f() { return 3; }\nf\ntrue", true, 3],
    ["a text that exits", "exit 0", false, 0],
    ["a text that no shell understands", "if", false, 2],
  ];
  for (const [title, env_setup, login, code] of strict) {
    test(`strict setup text ends the attempt before its program: ${title}`, async () => {
      const env = { PATH: "/usr/bin:/bin", SHELL: "/bin/bash" };
      const job = attempt(sh("echo ran"), { env_setup, env_setup_strict: true, login, env });
      expect((await job.run()).outcome).toMatchObject({
        reason: "env_setup_failed",
        exit_code: code,
        message: `the cluster's setup text ended with code ${code}, and the program was not started`,
      });
      expect(job.text("stdout.log")).toBe("");
    });
  }

  test("strict setup text that succeeds leaves neither set -e nor a trap, and the exit code is the program's", async () => {
    const job = attempt(["sh", "-c", "false; echo $FROM_SETUP; exit 3"], {
      env_setup: "export FROM_SETUP=yes; false || true; set -- lost",
      env_setup_strict: true,
    });
    expect((await job.run()).outcome).toMatchObject({ reason: "exit_nonzero", exit_code: 3 });
    expect(job.text("stdout.log")).toBe("yes\n");
  });

  test("setup text is not in any argument list, and the exit code is the program's", async () => {
    const job = attempt(sh("tr '\\0' '\\n' < /proc/self/cmdline; exit 4"), { env_setup: "SECRET_LOOKING=hunter2" });
    expect((await job.run()).outcome.exit_code).toBe(4);
    expect(job.text("stdout.log")).not.toContain("hunter2");
  });

  test("the login shell's profile applies, and its directory does not", async () => {
    const job = attempt(sh("pwd; echo $FROM_PROFILE; printf '<%s>' \"$@\"").concat("sh", "a b", ""), {
      login: true,
      env: { PATH: "/usr/bin:/bin", SHELL: "/bin/bash" },
    });
    fs.writeFileSync(`${job.workdir}/.profile`, "export FROM_PROFILE=bash-login\ncd /\n");
    const spec = job.json("spec.json");
    fs.writeFileSync(job.file("spec.json"), JSON.stringify({ ...spec, env: { ...(spec["env"] as object), HOME: job.workdir } }));
    expect((await job.run()).outcome.reason).toBe("completed");
    expect(job.text("stdout.log")).toBe(`${fs.realpathSync(job.workdir)}\nbash-login\n<a b><>`);
  });

  test("functions of the login shell can be used by the setup text", async () => {
    const job = attempt(sh("echo $LOADED"), {
      login: true,
      env_setup: "module load thing",
      env: { PATH: "/usr/bin:/bin", SHELL: "/bin/bash" },
    });
    fs.writeFileSync(`${job.workdir}/.profile`, 'module() { export LOADED="$2"; }\n');
    const spec = job.json("spec.json");
    fs.writeFileSync(job.file("spec.json"), JSON.stringify({ ...spec, env: { ...(spec["env"] as object), HOME: job.workdir } }));
    await job.run();
    expect(job.text("stdout.log")).toBe("thing\n");
  });

  test("a login shell that is not there is a failed start", async () => {
    const job = attempt(["true"], { login: true, env: { PATH: "/bin", SHELL: "/no/such/shell" } });
    const exit = await job.run();
    expect(exit.outcome.reason).toBe("spawn_failed");
    expect(exit.outcome.message).toContain("/no/such/shell");
  });
});
