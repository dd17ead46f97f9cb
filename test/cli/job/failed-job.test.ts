import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type SourceRelay, withWorker } from "../source-relay.ts";

let relay: SourceRelay;
beforeAll(async () => {
  relay = await withWorker();
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** The commands that a text says to run next. */
const hints = (stderr: string): string[] => [...stderr.matchAll(/^hint: clio-relay (.*)$/gm)].map(([, command]) => command!);

/** Whoever waits for such a job is told the same by each of the three verbs. */
async function told(...command: string[]): Promise<{ id: string; hints: string[] }> {
  const submitted = await relay.run(["job", "submit", "--wait", "--", ...command]);
  const id = submitted.stdout.trim();
  const [waited, watched] = [await relay.run(["job", "wait", id]), await relay.run(["job", "watch", id])];
  expect([waited.code, watched.code]).toEqual([submitted.code, submitted.code]);
  const said = [submitted, waited, watched].map(({ stderr }) => hints(stderr));
  expect([said[1], said[2]]).toEqual([said[0]!, said[0]!]);
  return { id, hints: said[0]! };
}

describe("a job that failed, and that somebody waited for", () => {
  test("is followed by the command that prints what it said went wrong", async () => {
    const { id, hints: said } = await told("sh", "-c", "echo result; echo reason >&2; exit 3");
    expect(said).toEqual([`job read-log ${id} --cluster local --stream stderr`]);
    expect(await relay.ok(...said[0]!.split(" "))).toBe("reason");
  });

  test("which is standard output where it wrote to nothing else", async () => {
    const { id, hints: said } = await told("sh", "-c", "echo reason; exit 3");
    expect(said).toEqual([`job read-log ${id} --cluster local`]);
    expect(await relay.ok(...said[0]!.split(" "))).toBe("reason");
  });

  test("by none where it wrote nothing, or has succeeded, or a document is asked for", async () => {
    expect((await told("sh", "-c", "exit 3")).hints).toEqual([]);
    const { id, hints: said } = await told("sh", "-c", "echo warning >&2");
    expect([said, (await relay.run(["job", "wait", id])).code]).toEqual([[], 0]);
    const failed = await relay.run(["job", "submit", "--wait", "--json", "--", "sh", "-c", "echo reason >&2; exit 3"]);
    const { job_id } = JSON.parse(failed.stdout) as { job_id: string };
    for (const verb of ["wait", "watch"]) expect((await relay.run(["job", verb, "--json", job_id])).stderr).toBe("");
    expect([failed.code, failed.stderr]).toEqual([10, ""]);
  });
});

describe("a log that is empty, of a job that wrote to the other one", () => {
  test("says so, with the command that prints that", async () => {
    const id = await relay.submit("--wait", "--", "sh", "-c", "echo warning >&2");
    const said = `notice: nothing was written to stdout; clio-relay job read-log ${id} --cluster local --stream stderr prints 8 B\n`;
    for (const more of [[], ["-f"], ["-n", "5"], ["--attempt", "1"]])
      expect([more, await relay.run(["job", "read-log", id, ...more])]).toEqual([more, { code: 0, stdout: "", stderr: said }]);
  });

  test("but not where bytes or a document are asked for, a part was, or there is nothing at all", async () => {
    const id = await relay.submit("--wait", "--", "sh", "-c", "echo warning >&2");
    for (const more of [["--raw"], ["--json"], ["--stream", "stderr"]])
      expect([more, (await relay.run(["job", "read-log", id, ...more])).stderr]).toEqual([more, ""]);
    const both = await relay.submit("--wait", "--", "sh", "-c", "echo out; echo warning >&2");
    expect(await relay.run(["job", "read-log", both, "--tail", "0"])).toEqual({ code: 0, stdout: "", stderr: "" });
    const nothing = await relay.submit("--wait", "--", "true");
    expect(await relay.run(["job", "read-log", nothing])).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});
