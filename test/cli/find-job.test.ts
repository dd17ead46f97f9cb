import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type SourceRelay, withWorker } from "./source-relay.ts";

let relay: SourceRelay;
/** Jobs of the clusters local and two. */
let [here, there]: string[] = [];

beforeAll(async () => {
  relay = await withWorker();
  await relay.ok("cluster", "add", "two");
  await relay.ok("worker", "start", "--cluster", "two");
  here = await relay.submit("--cluster", "local", "--wait", "--", "echo", "here");
  there = await relay.submit("--cluster", "two", "--wait", "--output", "*.txt", "--", "sh", "-c", "echo there | tee said.txt");
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** The longest beginning that two ids share, with so many digits more of the first. */
function shared(one: string, other: string, more = 0): string {
  let length = 0;
  while (one[length] === other[length]) length++;
  return one.slice(0, length + more);
}

test("an id finds its cluster among several, whatever it is the id of", async () => {
  expect(await relay.ok("job", "read-log", here!)).toBe("here");
  expect(await relay.ok("job", "read-log", there!)).toBe("there");
  expect(await relay.json("job", "status", there!)).toMatchObject({ job: { cluster: "two" } });
  const { artifacts } = await relay.json<{ artifacts: { artifact_id: string; name: string }[] }>("job", "list-artifacts", there!);
  const said = artifacts.find(({ name }) => name === "said.txt")!.artifact_id;
  expect(await relay.ok("job", "read-artifact", said, "-o", "-")).toBe("there");
  const { tasks } = await relay.json<{ tasks: { task_id: string }[] }>("job", "tasks", there!);
  expect(await relay.json("job", "task-events", tasks[0]!.task_id)).toMatchObject({ total: 0 });
  expect((await relay.run(["job", "cancel", there!])).code).toBe(0);
  // What is named, or set, is the only one that is asked.
  for (const run of [
    await relay.run(["job", "status", there!, "--cluster", "local"]),
    await relay.run(["job", "status", there!], { env: { CLIO_RELAY_CLUSTER: "local" } }),
  ])
    expect([run.code, run.stderr]).toEqual([3, `error: there is no job ${there} [job_not_found]\n`]);
  const none = `job_${"0".repeat(32)}`;
  expect(await relay.run(["job", "status", none])).toEqual({
    code: 3,
    stdout: "",
    stderr: `error: there is no job ${none} on local, two [job_not_found]\n`,
  });
});

test("the beginning of an id stands for it where there is no other", async () => {
  expect(await relay.json("job", "status", here!.slice(4, 35))).toMatchObject({ job: { job_id: here } });
  expect(await relay.json("job", "status", there!.slice(0, 35))).toMatchObject({ job: { job_id: there } });
  const ids = [here!, await relay.submit("--cluster", "local", "--", "true"), await relay.submit("--cluster", "local", "--", "true")];
  // Of three that follow each other, two begin alike.
  const [one, other] = shared(ids[0]!, ids[1]!).length >= 12 ? [ids[0]!, ids[1]!] : [ids[1]!, ids[2]!];
  const both = shared(one, other);
  const ambiguous = await relay.run(["job", "status", both.slice(4), "--cluster", "local"]);
  expect([ambiguous.code, ambiguous.stdout]).toEqual([2, ""]);
  expect(ambiguous.stderr).toMatch(
    new RegExp(`^error: \\d+ jobs begin with ${both.slice(4)}: .*${other}.*\\nhint: more digits, or the whole id\\n$`),
  );
  expect(ambiguous.stderr).toContain(one);
  expect(await relay.json("job", "status", shared(one, other, 1), "--cluster", "local")).toMatchObject({ job: { job_id: one } });
  const none = await relay.run(["job", "status", "ffffffff"]);
  expect(none).toMatchObject({ code: 3, stderr: "error: no job of local, two begins with ffffffff [job_not_found]\n" });
  for (const word of ["5", "job_01a2", "newest"]) {
    const run = await relay.run(["job", "status", word]);
    expect([run.code, run.stderr]).toEqual([
      3,
      `error: there is no job ${word} [job_not_found]\nhint: a job is named by its id, by at least 8 digits of its beginning, or as last\n`,
    ]);
  }
});

test("last is the job that was submitted last from here, and is said", async () => {
  const id = await relay.submit("--cluster", "two", "--", "true");
  const status = await relay.run(["job", "status", "last", "--json"], { env: { CLIO_RELAY_CLUSTER: "local" } });
  expect([status.code, status.stderr]).toEqual([0, `notice: last is ${id} of two\n`]);
  expect(JSON.parse(status.stdout)).toMatchObject({ job: { job_id: id } });
  const elsewhere = await relay.run(["job", "status", "last", "--cluster", "local"]);
  expect([elsewhere.code, elsewhere.stderr]).toEqual([
    3,
    "error: the last job that was submitted from here went to two [job_not_found]\nhint: --cluster two\n",
  ]);
  const file = path.join(relay.home, "state", "last-job.json");
  fs.rmSync(file);
  fs.mkdirSync(file);
  const unkept = await relay.run(["job", "submit", "--cluster", "two", "--", "true"]);
  expect([unkept.code, unkept.stderr.startsWith("notice: `last` does not mean this job: ")]).toEqual([0, true]);
  fs.rmdirSync(file);
  const none = await relay.run(["job", "status", "last"]);
  expect([none.code, none.stderr]).toEqual([3, "error: no job was submitted from here [job_not_found]\nhint: clio-relay job list\n"]);
});

test("a cluster that does not answer holds no id up, and what it may have is not called absent", async () => {
  await relay.ok("cluster", "add", "hung");
  const connections = new Set<unknown>();
  const hung = Bun.listen({
    unix: path.join(relay.home, "run", "worker-hung.sock"),
    socket: {
      open: (connection) => void connections.add(connection),
      close: (connection) => void connections.delete(connection),
      data: () => undefined,
    },
  });
  try {
    expect(await relay.ok("job", "read-log", there!)).toBe("there");
    const none = `job_${"0".repeat(32)}`;
    const missing = await relay.run(["job", "status", none]);
    expect([missing.code, missing.stderr]).toEqual([
      5,
      `error: job ${none} may be of hung, which could not be asked [link_down]\nhint: --cluster NAME\n`,
    ]);
    const short = await relay.run(["job", "status", there!.slice(0, 35)]);
    expect([short.code, short.stderr]).toEqual([
      5,
      `error: job ${there!.slice(0, 35)} may be of hung, which could not be asked [link_down]\nhint: --cluster NAME, or give the whole id\n`,
    ]);
  } finally {
    hung.stop(true);
    await relay.ok("cluster", "remove", "hung", "--yes");
  }
});
