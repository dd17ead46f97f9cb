import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { initialized, MAIN, withWorker } from "./source-relay.ts";

/** Run the program through a shell, whose printf makes bytes that are no text of what a test's own argument cannot hold. */
function run(environment: Record<string, string>, cwd: string, line: string) {
  const script = `bad=$(printf 'caf\\351'); ${line.replaceAll("clio-relay", `'${process.execPath}' '${MAIN}'`)}`;
  const { status, stdout, stderr } = spawnSync("sh", ["-c", script], { cwd, env: environment, encoding: "utf8" });
  return { code: status, stdout, stderr };
}

const HINT = "hint: records hold text only; in a script (job submit --script FILE) a pattern stands for such a name\n";

test("an argument that is not UTF-8 is refused by its place and bytes, wherever it stands", async () => {
  await using relay = await initialized();
  for (const [line, at, bytes] of [
    ['clio-relay job submit -- cat "$bad"', 5, "caf\\xe9"],
    ['clio-relay job submit --workdir "/tmp/$bad" -- ls', 4, "/tmp/caf\\xe9"],
    ['clio-relay job submit --env "X=$bad" -- env', 4, "X=caf\\xe9"],
    ['clio-relay job submit --script "$bad"', 4, "caf\\xe9"],
    ['clio-relay job list "$bad" \u{FFFD}', 3, "caf\\xe9"],
    ['clio-relay emit progress --message "$bad"', 4, "caf\\xe9"],
    ['clio-relay "$bad"', 1, "caf\\xe9"],
  ] as const) {
    const result = run(relay.environment, relay.directory, line);
    expect([line, result]).toEqual([
      line,
      { code: 2, stdout: "", stderr: `error: argument ${at}, $'${bytes}', is not UTF-8 text [usage]\n${HINT}` },
    ]);
  }
  expect(relay.daemons()).toEqual([]);
  const home = run(relay.environment, relay.directory, 'CLIO_RELAY_HOME="/tmp/$bad" clio-relay init');
  expect(home).toEqual({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^error: CLIO_RELAY_HOME is \$'\/tmp\/caf\\xe9', which is not UTF-8 text \[configuration_error\]\n/),
  });
});

test("U+FFFD itself is text, and a directory whose name is none works but for what is recorded of it", async () => {
  await using relay = await withWorker();
  expect(run(relay.environment, relay.directory, "clio-relay job submit --wait -- echo \u{FFFD}")).toMatchObject({
    code: 0,
    stderr: "succeeded: exited with code 0\n",
  });
  run(relay.environment, relay.directory, 'mkdir "$bad" && printf "#!/bin/sh\\necho hi\\n" > "$bad/run.sh"');
  const here = run(relay.environment, relay.directory, 'cd "$bad" && clio-relay job submit --script run.sh');
  expect(here).toEqual({
    code: 2,
    stdout: "",
    stderr:
      "error: the name of the current directory is not UTF-8 text, which is all that a job's record holds [usage]\nhint: --workdir names another\n",
  });
  const elsewhere = run(relay.environment, relay.directory, 'cd "$bad" && clio-relay job submit --wait --workdir / --script run.sh');
  expect(elsewhere).toMatchObject({ code: 0 });
  const id = elsewhere.stdout.trim();
  const [stdout] = (await relay.json<{ artifacts: { artifact_id: string }[] }>("job", "list-artifacts", id)).artifacts;
  const fetched = run(
    relay.environment,
    relay.directory,
    `cd "$bad" && clio-relay job read-artifact ${stdout!.artifact_id} -o out && cat out`,
  );
  expect(fetched).toEqual({ code: 0, stdout: "out\nhi\n", stderr: "" });
  expect(fs.existsSync(path.join(relay.directory, "out"))).toBe(false);
});

test("variables of a worker's that are not UTF-8 do not reach jobs as something else, and its log says which", async () => {
  await using relay = await initialized();
  // Through the command that starts the worker, which hands on what its own runtime made of them.
  const started = run(
    relay.environment,
    relay.directory,
    'SCRATCH="/$bad" PATH="/$bad:$PATH" WORK=/w clio-relay worker start --cluster local',
  );
  expect(started).toMatchObject({ code: 0 });
  const id = await relay.submit("--wait", "--", "sh", "-c", 'echo "${SCRATCH-none} $WORK $PATH"');
  const [scratch, work, search] = (await relay.ok("job", "read-log", id)).split(" ");
  expect([scratch, work, search!.includes("\u{FFFD}"), search!.includes("/bin")]).toEqual(["none", "/w", false, true]);
  const log = fs.readFileSync(path.join(relay.home, "log/worker-local.log"), "utf8");
  expect(log).toMatch(/jobs do not get what is not UTF-8 text in (?:SCRATCH, PATH|PATH, SCRATCH)\n/);
});
