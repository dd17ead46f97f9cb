import { afterAll, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { SetupFailed, setupEnvironment } from "../../../src/execution/mcp-call/setup-environment.ts";
import type { AttemptSpec } from "../../../src/execution/spool-records.ts";
import { eventually } from "../../runner/wait.ts";

const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-setup-"));
afterAll(() => fs.rmSync(directory, { recursive: true, force: true }));

const spec: AttemptSpec = {
  record_version: 1,
  job_id: "job_1",
  attempt: 1,
  cluster: "local",
  argv: ["not run"],
  workdir: directory,
  env: { PATH: process.env["PATH"]!, GIVEN: "1" },
  login: false,
  env_setup: null,
  timeout_seconds: null,
  quota: { stream_bytes: 0, job_bytes: 0, used: { stdout: 0, stderr: 0 } },
  cancel_grace_seconds: 1,
};

const NEVER = new AbortController().signal;

function madeBy(setup: string, strict = false, signal = NEVER): Promise<Readonly<Record<string, string>>> {
  const file = path.join(directory, "env-setup");
  fs.writeFileSync(file, `${setup}\n`);
  return setupEnvironment({ ...spec, env_setup: setup, env_setup_strict: strict }, file, signal);
}

test("a kept server has what the cluster's setup text makes, whatever that prints", async () => {
  expect(await setupEnvironment(spec, null, NEVER)).toEqual(spec.env);
  const made = await madeBy(`echo noise; export MADE='two
lines = "it"'; export GIVEN=2; unset PATH_NOT_THERE`);
  expect(made).toMatchObject({ MADE: 'two\nlines = "it"', GIVEN: "2" });
  // It may fail, unless it is strict.
  expect(await madeBy("false; export A=1")).toMatchObject({ A: "1" });
});

test("a setup text is not waited for longer than it runs, and ends with its call", async () => {
  const file = path.join(directory, "pid");
  expect(await madeBy(`sleep 1000 & echo $! > ${file}; export A=1`)).toMatchObject({ A: "1" });
  process.kill(Number(fs.readFileSync(file, "utf8")), "SIGKILL");
  const over = new AbortController();
  const going = madeBy(`echo up > ${file}.up; exec sleep 1000`, false, over.signal);
  await eventually(() => fs.existsSync(`${file}.up`), { what: "the setup text" });
  over.abort(new Error("over"));
  await expect(going).rejects.toThrow("over");
});

test("a strict setup text that fails keeps it from being started", async () => {
  expect(await madeBy("true; export A=1", true)).toMatchObject({ A: "1" });
  for (const text of ["false; export A=1", "exit 7"]) {
    const failure = await madeBy(text, true).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    expect(failure).toBeInstanceOf(SetupFailed);
  }
});
