import { expect, test } from "bun:test";
import { type CommandResult, startRelay } from "../runner/relay.ts";

test("a second worker on the same directory is refused, naming the first, which goes on", async () => {
  await using relay = await startRelay();
  const { workers } = await relay.json<{ workers: { process: { pid: number } }[] }>("worker", "status", "--cluster", "local");
  const second = await relay.run(["worker", "run", "--cluster", "local"]);
  expect(second.code).toBe(7);
  expect(second.stderr).toContain("[queue_owned]");
  expect(second.stderr).toContain(String(workers[0]!.process.pid));
  expect(await relay.run(["job", "submit", "--wait", "--", "true"])).toMatchObject({ code: 0, stderr: "succeeded: exited with code 0\n" });
});

test("many commands with one key at once are one job, and another body under the key is a conflict", async () => {
  await using relay = await startRelay();
  const submit = (word: string): Promise<CommandResult> =>
    relay.run(["job", "submit", "--idempotency-key", "nightly 'x'\n\u00e9", "--json", "--", "echo", word]);
  const answers: CommandResult[] = [];
  for (let round = 0; round < 5; round++) answers.push(...(await Promise.all(Array.from({ length: 20 }, () => submit("one")))));
  expect(answers.map(({ code }) => code)).toEqual(answers.map(() => 0));
  const receipts = answers.map((answer) => answer.json<{ job_id: string; existing: boolean }>());
  expect(new Set(receipts.map(({ job_id }) => job_id)).size).toBe(1);
  expect(receipts.filter(({ existing }) => !existing).length).toBe(1);
  const other = await submit("other");
  expect(other.code).toBe(7);
  expect(JSON.parse(other.stderr)).toMatchObject({ reason: "job_submission_conflict" });
  expect(await relay.json("queue", "list", "--include-terminal")).toMatchObject({ source_total: 1 });
});
