import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type SourceRelay, withWorker } from "../source-relay.ts";

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
  // What is named is the only one that is asked.
  const named = await relay.run(["job", "status", there!, "--cluster", "local"]);
  expect([named.code, named.stderr]).toEqual([3, `error: there is no job ${there} [job_not_found]\n`]);
  const none = `job_${"0".repeat(32)}`;
  expect(await relay.run(["job", "status", none])).toEqual({
    code: 3,
    stdout: "",
    stderr: `error: there is no job ${none} on local, two [job_not_found]\n`,
  });
});

test("the setting is for submissions: an id in full finds its cluster beyond it, a beginning does not", async () => {
  const env = { CLIO_RELAY_CLUSTER: "local" };
  const run = async (...args: string[]) => relay.run(args, { env });
  expect(await run("job", "read-log", there!)).toEqual({ code: 0, stdout: "there\n", stderr: "" });
  expect(await run("job", "read-log", here!)).toEqual({ code: 0, stdout: "here\n", stderr: "" });
  const { artifacts } = await relay.json<{ artifacts: { artifact_id: string }[] }>("job", "list-artifacts", there!);
  expect((await run("job", "read-artifact", artifacts[0]!.artifact_id, "-o", "-")).code).toBe(0);
  const none = `job_${"0".repeat(32)}`;
  expect(await run("job", "status", none)).toMatchObject({
    code: 3,
    stderr: `error: there is no job ${none} on local, two [job_not_found]\n`,
  });
  expect(await run("job", "status", there!.slice(0, 35))).toEqual({
    code: 3,
    stdout: "",
    stderr:
      `error: no job of local begins with ${there!.slice(0, 35)} [job_not_found]\n` +
      "hint: an id in full is looked for on every cluster, its beginning on another with --cluster\n",
  });
});

test("the beginning of an id stands for it where there is no other", async () => {
  expect(await relay.json("job", "status", here!.slice(4, 35))).toMatchObject({ job: { job_id: here } });
  expect(await relay.json("job", "status", there!.slice(0, 35))).toMatchObject({ job: { job_id: there } });
  // All of its digits are no less than some of them.
  expect(await relay.json("job", "status", there!.slice(4))).toMatchObject({ job: { job_id: there } });
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
    "error: the last job that a command submitted from here went to two [job_not_found]\nhint: --cluster two\n",
  ]);
  const file = path.join(relay.home, "state", "last-job.json");
  fs.rmSync(file);
  fs.mkdirSync(file);
  const unkept = await relay.run(["job", "submit", "--cluster", "two", "--", "true"]);
  expect([unkept.code, unkept.stderr.startsWith("notice: `last` does not mean this job: ")]).toEqual([0, true]);
  fs.rmdirSync(file);
  const none = await relay.run(["job", "status", "last"]);
  expect([none.code, none.stderr]).toEqual([
    3,
    "error: no command has submitted a job from here [job_not_found]\nhint: clio-relay job list\n",
  ]);
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
      `error: job ${there!.slice(0, 35)} is ${there} of two, or another of hung, which could not be asked [link_down]\n` +
        `hint: --cluster NAME; or ${there}\n`,
    ]);
  } finally {
    hung.stop(true);
    await relay.ok("cluster", "remove", "hung", "--yes");
  }
});

/** A cluster whose worker is not reached, for a reason. */
async function unreached(name: string, reason: string): Promise<AsyncDisposable> {
  await relay.ok("cluster", "add", name);
  const server = Bun.serve({
    unix: path.join(relay.home, "run", `worker-${name}.sock`),
    fetch: () =>
      Response.json(
        { type: "about:blank", title: "down", status: 503, detail: "the link is down", reason, hint: `clio-relay connect ${name}` },
        { status: 503, headers: { "content-type": "application/problem+json" } },
      ),
  });
  return {
    async [Symbol.asyncDispose]() {
      await server.stop(true);
      await relay.ok("cluster", "remove", name, "--yes");
    },
  };
}

test("who is to be connected before an id can be looked for is said, and where that takes a person it is 4", async () => {
  const none = `job_${"0".repeat(32)}`;
  await using _one = await unreached("far", "authorization_required");
  expect(await relay.ok("job", "read-log", there!)).toBe("there");
  const one = await relay.run(["job", "status", none]);
  expect([one.code, one.stderr]).toEqual([
    4,
    `error: job ${none} may be of far, which could not be asked [authorization_required]\nhint: clio-relay connect far\n`,
  ]);
  const short = await relay.run(["job", "status", here!]);
  expect(short.code).toBe(0);
  await using _two = await unreached("farther", "authorization_required");
  const both = await relay.run(["job", "status", none]);
  expect([both.code, both.stderr]).toEqual([
    4,
    `error: job ${none} may be of far, farther, which could not be asked [authorization_required]\n` +
      "hint: clio-relay connect far; clio-relay connect farther\n",
  ]);
  await using _three = await unreached("gone", "link_down");
  const hint = "hint: clio-relay connect far; clio-relay connect farther; clio-relay connect gone\n";
  const said = (reason: string): string => `error: job ${none} may be of far, farther, gone, which could not be asked [${reason}]\n${hint}`;
  const three = await relay.run(["job", "status", none]);
  expect([three.code, three.stderr]).toEqual([5, said("link_down")]);
  // Of the one that the setting has it says most why it could not be asked.
  const meant = await relay.run(["job", "status", none], { env: { CLIO_RELAY_CLUSTER: "far" } });
  expect([meant.code, meant.stderr]).toEqual([4, said("authorization_required")]);
});
