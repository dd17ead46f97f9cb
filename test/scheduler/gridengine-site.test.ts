import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { schedulerProvider } from "../../src/scheduler/schedulers.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const directory = temporaryDirectories();

const jobList = (id: number, name: string, state: string): string =>
  `<job_list state="x"><JB_job_number>${id}</JB_job_number><full_job_name>${name}</full_job_name><state>${state}</state><queue_name>q@h</queue_name><slots>1</slots></job_list>`;
const printed = (...jobs: readonly string[]): string =>
  `echo "<?xml version='1.0'?><job_info><queue_info>${jobs.join("").replaceAll('"', "'")}</queue_info></job_info>"`;
const record = (id: string, fields: string): string =>
  `printf '%s\\n' ============================================================== 'jobname clio-00-1' 'jobnumber ${id}' 'qsub_time Sat Mar  1 08:00:00 2025' ${fields}`;

/** A site whose commands are shell scripts, with accounts that can be read or not. */
function site(commands: Readonly<Record<string, string>>, accounts = true) {
  const place = directory();
  fs.mkdirSync(path.join(place, "default", "common"), { recursive: true });
  if (accounts) fs.writeFileSync(path.join(place, "default", "common", "accounting"), "");
  for (const [name, script] of Object.entries(commands)) {
    fs.writeFileSync(path.join(place, name), `#!/bin/sh\necho ${name} "$@" >>'${place}/calls'\n${script}\n`, { mode: 0o755 });
  }
  for (const name of ["sh", "yes", "head"]) fs.symlinkSync(Bun.which(name)!, path.join(place, name));
  const provider = schedulerProvider("gridengine", { variables: { PATH: place, SGE_ROOT: place, USER: "ada" } });
  const calls = (name: string): string[] => {
    const lines = fs.existsSync(path.join(place, "calls")) ? fs.readFileSync(path.join(place, "calls"), "utf8").trim().split("\n") : [];
    return lines.filter((line) => line.startsWith(`${name} `));
  };
  return { provider, calls };
}

const native = (id: string) => ({ id, cluster: null });

describe("observation", () => {
  test("what qstat has is active; of what it has not the accounts are asked, ten at a time", async () => {
    const { provider, calls } = site({
      qstat: printed(jobList(1, "clio-00-1", "r")),
      qacct: `case $2 in 2) ${record("2", "'failed 0' 'exit_status 7'")};; *) exit 1;; esac`,
    });
    const ids = Array.from({ length: 15 }, (_, index) => native(String(index + 1)));
    const { statuses, failures } = await provider.observe(ids);
    expect(failures.size).toBe(0);
    expect(statuses.get("1")).toMatchObject({ phase: "running", active_record_found: true });
    expect(statuses.get("2")).toMatchObject({ phase: "failed", exit_code: 7, active_record_found: false });
    expect(statuses.get("3")).toMatchObject({ phase: "unknown", record_found: false });
    expect([calls("qstat").length, calls("qacct").length, statuses.size]).toEqual([1, 10, 11]);
    const next = await provider.observe(ids);
    expect(["12", "13", "14", "15"].map((id) => next.statuses.has(id))).toEqual([true, true, true, true]);
  });

  test("of a number that was used again the newest job counts", async () => {
    const qacct = `${record("2", "'failed 0' 'exit_status 0'")}; ${record("2", "'failed 0' 'exit_status 3'")}`;
    const { provider } = site({ qstat: printed(), qacct });
    expect((await provider.observe([native("2")])).statuses.get("2")).toMatchObject({ phase: "failed", exit_code: 3 });
  });

  test("accounts that cannot be read are none, and one that fails is no answer", async () => {
    const without = site({ qstat: printed(), qacct: "exit 1" }, false);
    expect((await without.provider.observe([native("2")])).statuses.get("2")).toMatchObject({ record_found: false });
    expect(without.calls("qacct")).toEqual([]);
    const killed = site({ qstat: printed(), qacct: "kill -KILL $$" }).provider;
    const { statuses, failures } = await killed.observe([native("2")]);
    expect([statuses.size, [...failures.keys()]]).toEqual([0, ["qacct"]]);
    expect((await killed.find("clio-00-1")).complete).toBe(false);
  });

  test("a document of another kind, or one that is cut, is no answer", async () => {
    for (const qstat of ["echo error: commlib error", "echo \"<?xml version='1.0'?><job_info><queue_info>\"", "exit 1"]) {
      const { provider } = site({ qstat, qacct: "exit 1" });
      const { statuses, failures } = await provider.observe([native("2")]);
      expect([statuses.size, [...failures.keys()]]).toEqual([0, ["qstat"]]);
      expect(await provider.find("clio-00-1")).toMatchObject({ found: [], complete: false });
      expect((await provider.cancel(native("2"), "clio-00-1")).kind).toBe("doubt");
    }
  });

  test("more jobs than can be listed: the user's own are, and of others nothing is said", async () => {
    const qstat = `case $* in *'-u ada') ${printed(jobList(1, "clio-00-1", "qw"))};; *) yes 0123456789012345678901234567890123456789 | head -c 9000000;; esac`;
    const { provider, calls } = site({ qstat, qacct: "exit 1" });
    for (const times of [2, 3]) {
      const { statuses, failures } = await provider.observe([native("1"), native("2")], { positions: true });
      expect(statuses.get("1")).toMatchObject({ phase: "pending", queue_position: null });
      expect([statuses.size, failures.size, calls("qstat").length]).toEqual([1, 0, times]);
    }
  });
});

test("a job is ended only while it has the name", async () => {
  const { provider, calls } = site({
    qstat: printed(jobList(1, "clio-00-1", "r"), jobList(2, "other", "r")),
    qdel: "exit 0",
    qacct: "exit 1",
  });
  expect((await provider.cancel(native("2"), "clio-00-1")).kind).toBe("refused");
  expect((await provider.cancel(native("3"), "clio-00-1")).kind).toBe("refused");
  expect(calls("qdel")).toEqual([]);
  expect((await provider.cancel(native("1"), "clio-00-1")).kind).toBe("asked");
  expect(calls("qdel")).toEqual(["qdel 1"]);
});
