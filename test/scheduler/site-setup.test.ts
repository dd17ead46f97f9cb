import { afterAll, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { schedulersOf } from "../../src/roles/worker/allocation/scheduling.ts";
import { runSiteCommand } from "../../src/scheduler/site-command.ts";
import { environmentBehind } from "../../src/scheduler/site-setup.ts";
import { removeTree } from "../runner/remove.ts";

const place = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-site-setup-"));
afterAll(() => removeTree(place));
const VARIABLES = { PATH: "/usr/bin:/bin", HOME: place, USER: "ada", LOGNAME: "ada" };

test("a setup text makes the environment of a site's commands, whatever it prints, and no more of it than they get", async () => {
  const setup = `echo noise; printf '\\0'; echo warning >&2\nmodule() { export PATH=$HOME/$1:$PATH SGE_ROOT="two\nlines" SECRET=x; }\nmodule load`;
  expect(await environmentBehind(setup, VARIABLES, runSiteCommand)).toEqual({
    LC_ALL: "C",
    ...VARIABLES,
    PATH: `${place}/load:/usr/bin:/bin`,
    SGE_ROOT: "two\nlines",
  });
});

test.each([
  ["exit 3", "ended with 3"],
  ["exec echo gone", "ended with 0: gone"],
])("one that does %s makes none", async (setup, said) => {
  expect(await environmentBehind(setup, VARIABLES, runSiteCommand)).toBe(said);
});

test("a worker's scheduler is where its cluster's setup text says", async () => {
  fs.mkdirSync(path.join(place, "tools"));
  // A PATH without a scheduler, whatever this machine has.
  fs.mkdirSync(path.join(place, "few"));
  fs.symlinkSync(Bun.which("env")!, path.join(place, "few", "env"));
  const variables = { ...VARIABLES, PATH: path.join(place, "few") };
  fs.writeFileSync(path.join(place, "tools", "squeue"), "#!/bin/sh\necho slurm 25.05.1\n", { mode: 0o755 });
  const troubles: string[] = [];
  const around = {
    store: { openSchedulerJobs: async () => [] } as never,
    clock: systemClock,
    laneFailed: (_where: string, error: unknown) => void troubles.push(String(error)),
  };
  const site = (envSetup: string | null) =>
    schedulersOf({ scheduling: { choice: "slurm" }, environment: variables, envSetup, coreDir: place }, around);
  const code = (error: { code: string }) => error.code;
  expect(await site(null).provider("slurm").catch(code)).toBe("scheduler_unavailable");
  expect(await site("exit 1").provider("slurm").catch(code)).toBe("scheduler_unavailable");
  expect(troubles).toEqual([expect.stringContaining("the cluster's setup text does not tell where the scheduler is: it ended with 1")]);
  const schedulers = site('PATH="$HOME/tools:$PATH"');
  expect(await schedulers.provider("slurm")).toMatchObject({ name: "slurm" });
  await schedulers.stop();
});
