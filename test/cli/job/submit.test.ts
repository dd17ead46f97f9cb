import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { initialized, MAIN, type SourceRelay, withWorker } from "../source-relay.ts";

let relay: SourceRelay;
beforeAll(async () => {
  relay = await withWorker();
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** Print each word and chosen variables between marks, and where it runs. */
const SHOW = ["sh", "-c", 'for w in "$@"; do printf "<%s>" "$w"; done; printf "|%s|%s" "$GREETING" "$(pwd)"', "show"];
const ODD = ["", " ", "a b", "it's", '"quoted"', "two\nlines", "tab\there", "ünïcode 🚀 日本", "$HOME `id` \\", "--login", "-x", "*"];

describe("what is submitted is what runs", () => {
  test("words, variables and directory, whatever is in them", async () => {
    const workdir = path.join(relay.directory, "my 'work'\ndir é");
    fs.mkdirSync(workdir);
    const greeting = "hé\n'llo' \"=$X\"";
    const child = relay.start(["job", "submit", "--wait", "--env", `GREETING=${greeting}`, "--", ...SHOW, ...ODD], { cwd: workdir });
    const [id, code] = [(await child.stdout.text()).trimEnd(), await child.exited];
    expect(code).toBe(0);
    const output = await relay.ok("job", "read-log", id);
    expect(output).toBe(`${ODD.map((word) => `<${word}>`).join("")}|${greeting}|${workdir}`);
    // The title is one line whatever the command was.
    expect((await relay.ok("job", "list")).split("\n")[0]).toContain(id);
  });

  test("a relative directory is taken from where the command was typed", async () => {
    fs.mkdirSync(path.join(relay.directory, "sub"), { recursive: true });
    const id = await relay.submit("--wait", "--workdir", "sub", "--", "pwd");
    expect(await relay.ok("job", "read-log", id)).toBe(path.join(relay.directory, "sub"));
  });

  test("a script from a file and from standard input", async () => {
    fs.writeFileSync(path.join(relay.directory, "s.sh"), "#!/bin/sh\necho from file; exit 4\n");
    const file = await relay.run(["job", "submit", "--wait", "--script", "s.sh"]);
    expect(file.code).toBe(10);
    expect(await relay.ok("job", "read-log", file.stdout.trim())).toBe("from file");
    const stdin = await relay.run(["job", "submit", "--wait", "--stdin"], { stdin: "echo from stdin é\n" });
    expect(stdin.code).toBe(0);
    expect(await relay.ok("job", "read-log", stdin.stdout.trim())).toBe("from stdin é");
  });

  test("a script with lines for a scheduler is said to have them where nobody reads them", async () => {
    fs.writeFileSync(path.join(relay.directory, "job.sbatch"), "#!/bin/sh\n#SBATCH -N 2\ntrue\n");
    const file = await relay.run(["job", "submit", "--script", "job.sbatch"]);
    expect([file.code, file.stderr]).toEqual([0, "notice: job.sbatch has #SBATCH lines, which only --sbatch FILE reads\n"]);
    const stdin = await relay.run(["job", "submit", "--stdin"], { stdin: "#$ -l gpu=1\n#SBATCHED\ntrue\n" });
    expect([stdin.code, stdin.stderr]).toEqual([0, "notice: the script has #$ lines, which only --qsub FILE reads\n"]);
  });

  test("a script is called by its file's name, has no arguments, and /bin/sh where it names no interpreter", async () => {
    fs.mkdirSync(path.join(relay.directory, "scripts"), { recursive: true });
    fs.writeFileSync(path.join(relay.directory, "scripts", "plain.py"), "echo $0 $#\n");
    const plain = await relay.run(["job", "submit", "--wait", "--script", "scripts/plain.py"]);
    expect(plain).toMatchObject({
      code: 0,
      stderr: "notice: scripts/plain.py has no #! line, so that /bin/sh runs it\nsucceeded: exited with code 0\n",
    });
    const id = plain.stdout.trim();
    expect(await relay.ok("job", "read-log", id)).toEndWith(" 0");
    expect((await relay.ok("job", "list")).split("\n")[0]).toEndWith("\tplain.py");
    const status = await relay.ok("job", "status", id);
    expect(status).toMatch(/^what +plain\.py$/m);
    expect(status).toMatch(new RegExp(`^runs in +${relay.directory}$`, "m"));
    expect(await relay.run(["job", "submit", "--script", "s.sh", "--", "x"])).toEqual({
      code: 2,
      stdout: "",
      stderr:
        "error: a command after -- and --script exclude each other [usage]\nhint: a script gets no arguments; --env NAME=VALUE hands it values\n",
    });
  });

  test("the record has what was asked for", async () => {
    const job = await relay.json(
      "job",
      "submit",
      "--timeout",
      "2h",
      "--retries",
      "2",
      "--output",
      "a/*",
      "--output",
      "b",
      "--login",
      "--",
      "true",
    );
    expect(job).toMatchObject({
      state: "queued",
      existing: false,
      kind: "command",
      spec: { argv: ["true"], timeout_seconds: 7_200, retries: 2, outputs: ["a/*", "b"], login: true, workdir: relay.directory },
    });
    expect(job["job_id"]).toMatch(/^job_[0-9a-f]{32}$/);
  });
});

test("a directory elsewhere is named in full, and what to do without is said", async () => {
  await relay.ok("cluster", "add", "--name", "far", "--ssh-host", "nowhere.invalid");
  for (const given of ["data", "~/data"]) {
    const { code, stderr } = await relay.run(["job", "submit", "--cluster", "far", "--workdir", given, "--", "true"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`--workdir "${given}" must be an absolute path on the cluster`)]);
    expect(stderr).toContain("hint: without it the job begins in that home directory: -- sh -c 'cd DIR && exec COMMAND'");
  }
  await relay.ok("cluster", "remove", "far", "--yes");
});

test("a name takes the command's place in lists, and not in the status", async () => {
  const id = await relay.submit("--name", " first try ", "--", "sh", "-c", "true\nfalse || true");
  expect(await relay.ok("job", "list", "--limit", "5")).toMatch(new RegExp(`^${id}\\t.*\\tfirst try$`, "m"));
  const status = await relay.ok("job", "status", id);
  expect(status).toMatch(/^name +first try$/m);
  expect(status).toMatch(/^what +sh -c 'true ↵ false \|\| true'$/m);
  expect(await relay.json("job", "status", id)).toMatchObject({ job: { metadata: { title: "first try" } } });
  for (const name of ["", " ", "two\nlines", "x".repeat(201)])
    expect((await relay.run(["job", "submit", "--name", name, "--", "true"])).code).toBe(2);
});

describe("keys", () => {
  test("the same under the same key is the same job; another one is a conflict", async () => {
    const first = await relay.run(["job", "submit", "--idempotency-key", "k 1", "--", "true"]);
    expect(first).toMatchObject({ code: 0, stderr: "" });
    const again = await relay.run(["job", "submit", "--idempotency-key", "k 1", "--", "true"]);
    expect(again.stdout).toBe(first.stdout);
    expect(again.stderr).toMatch(/^notice: existing job job_[0-9a-f]{32}, \w+\n$/);
    const other = await relay.run(["job", "submit", "--json", "--idempotency-key", "k 1", "--", "false"]);
    expect(other).toMatchObject({ code: 7, stdout: "" });
    const problem = JSON.parse(other.stderr) as Record<string, unknown>;
    expect(problem).toMatchObject({ reason: "job_submission_conflict", status: 409 });
  });

  test("without one, each command is a job of its own", async () => {
    const [one, other] = await Promise.all([relay.submit("--", "true"), relay.submit("--", "true")]);
    expect(one).not.toBe(other);
  });
});

test("whose answer is lost says under which key it can be repeated, and repeating it makes no second job", async () => {
  await using other = await initialized();
  const socket = path.join(other.home, "run", "worker-local.sock");
  const hangsUp = Bun.listen({ unix: socket, socket: { data: (connection) => void connection.end() } });
  const lost = await other.run(["job", "submit", "--json", "--", "true"]);
  hangsUp.stop(true);
  expect(lost).toMatchObject({ code: 5, stdout: "" });
  const problem = JSON.parse(lost.stderr) as { reason: string; hint: string; idempotency_key: string };
  expect(problem.reason).toBe("link_down");
  expect(problem.hint).toBe(`repeat it with --idempotency-key ${problem.idempotency_key}`);
  await other.ok("worker", "start");
  const repeat = ["job", "submit", "--idempotency-key", problem.idempotency_key, "--", "true"];
  expect(await other.ok(...repeat)).toBe(await other.ok(...repeat));
});

test("with --wait and --json prints one document, the one of the end", async () => {
  const result = await relay.run(["job", "submit", "--wait", "--json", "--", "false"]);
  expect(result.code).toBe(10);
  expect(JSON.parse(result.stdout)).toMatchObject({ state: "failed", observation: { outcome: "terminal", timeout_seconds: null } });
});

describe("refusals", () => {
  test.each<[string, string[], number, RegExp]>([
    ["nothing to run", [], 2, /what is to be run\?/],
    ["two sources", ["--stdin", "--", "true"], 2, /a command after -- and --stdin exclude each other/],
    ["--new for a command", ["--new", "--", "true"], 2, /--new is for pipelines: every submission of a command is a new job/],
    ["a command without --", ["true"], 2, /COMMAND… comes after --/],
    ["a file that is not there", ["--script", "none.sh"], 2, /^error: --script none\.sh: there is no such file \[local_file_missing\]$/m],
    ["a directory for a script", ["--script", "."], 1, /^error: --script \.: that is a directory \[local_file_unusable\]$/m],
    ["a file for a directory", ["--script", "binary/x"], 2, /^error: --script binary\/x: there is no such file \[local_file_missing\]$/m],
    ["an empty script", ["--script", "empty"], 2, /^error: --script empty is empty: there is nothing to run \[usage\]$/m],
    ["an empty pipeline", ["--jarvis-yaml", "empty"], 2, /^error: --jarvis-yaml empty is empty/m],
    ["empty standard input", ["--stdin"], 2, /^error: the script on standard input is empty: there is nothing to run \[usage\]$/m],
    ["a program without a name", ["--", ""], 2, /^error: the first word after -- is empty/m],
    ["a file that is not text", ["--script", "binary"], 1, /is not UTF-8 text/],
    ["a file that is too large", ["--script", "large"], 2, /\[payload_too_large\]/],
    [
      "a bad name of a variable",
      ["--env", "1A=x", "--", "true"],
      2,
      /^error: --env "1A" must be an environment variable name.*\[usage\]$/m,
    ],
    ["a credential of ours", ["--env", "CLIO_RELAY_API_TOKEN=x", "--", "true"], 2, /names a relay credential/],
    ["the same variable twice", ["--env", "A=1", "--env", "A=2", "--", "true"], 2, /--env A is given twice/],
    [
      "outputs outside",
      ["--output", "a/../../x", "--", "true"],
      2,
      /^error: --output "a\/\.\.\/\.\.\/x" leads upwards, but must lie below/m,
    ],
    [
      "absolute outputs",
      ["--output", "/etc/passwd", "--", "true"],
      2,
      /^error: --output "\/etc\/passwd" is absolute, but must lie below.*\[usage\]$/m,
    ],
    ["no outputs", ["--output", "", "--", "true"], 2, /^error: --output "" is empty/m],
    ["a cluster that is none", ["--cluster", "nowhere", "--", "true"], 3, /hint: clusters: local/],
    ["an engine that is not there", ["--jarvis-yaml", "p.yaml"], 1, /\[engine_unavailable\]/],
    ["options that do not go together", ["--jarvis-yaml", "p.yaml", "--retries", "1"], 2, /--retries does not go with --jarvis-yaml/],
  ])("%s", async (_what, args, code, message) => {
    fs.writeFileSync(path.join(relay.directory, "binary"), Buffer.from([0xff, 0xfe, 0x00]));
    fs.writeFileSync(path.join(relay.directory, "large"), "#".repeat(600_000));
    fs.writeFileSync(path.join(relay.directory, "empty"), "");
    fs.writeFileSync(path.join(relay.directory, "p.yaml"), "name: p\npkgs: []\n");
    const before = (await relay.json<{ source_total: number }>("queue", "list")).source_total;
    const result = await relay.run(["job", "submit", ...args]);
    expect([result.code, result.stdout]).toEqual([code, ""]);
    expect(result.stderr).toMatch(message);
    expect((await relay.json<{ source_total: number }>("queue", "list")).source_total).toBe(before);
  });
});

test("a directory that was removed under the command's feet is no reason to fail", async () => {
  const gone = path.join(relay.directory, "gone");
  fs.mkdirSync(gone);
  const child = Bun.spawn(
    ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", process.execPath, path.resolve(import.meta.dir, "../../../src/main.ts"), "job", "list"],
    {
      cwd: gone,
      env: { ...relay.environment, PWD: gone },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const [stderr, code] = [await child.stderr.text(), await child.exited];
  expect([stderr, code]).toEqual(["", 0]);
});

test("where the id cannot be printed, it is said on standard error", async () => {
  const child = Bun.spawn(["sh", "-c", '"$0" "$1" job submit -- true > /dev/full', process.execPath, MAIN], {
    env: relay.environment,
    cwd: relay.directory,
    stdin: "ignore",
    stderr: "pipe",
  });
  const said = await child.stderr.text();
  expect(await child.exited).toBe(1);
  const [, id] = /^notice: (job_[0-9a-f]{32}) was submitted\nerror: standard output cannot be written to: .*\n$/.exec(said)!;
  expect((await relay.run(["job", "wait", id!])).code).toBe(0);
});
