import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { Event } from "../../../src/domain/event.ts";
import { eventually } from "../../runner/wait.ts";
import { Collected } from "../collected.ts";
import { type SourceRelay, withWorker } from "../source-relay.ts";

/** A job that writes `count` numbered lines, each cut in the middle of a character, and waits for a file before the last. */
function longJob(relay: SourceRelay, count: number): { args: string[]; release: () => void; expected: string } {
  const gate = path.join(relay.directory, "gate");
  const script = `i=0; while [ $i -lt ${count} ]; do printf 'line %d \\303' $i; sleep 0.01; printf '\\251\\n'; i=$((i+1)); done; while [ ! -e "${gate}" ]; do sleep 0.05; done; echo end`;
  const expected = `${Array.from({ length: count }, (_, i) => `line ${i} é\n`).join("")}end\n`;
  return { args: ["--", "sh", "-c", script], release: () => fs.writeFileSync(gate, ""), expected };
}

const bytesSeen = (relay: SourceRelay, id: string) =>
  relay.json<{ logs: { size_bytes: number }[] }>("job", "status", id).then((s) => s.logs[0]!.size_bytes);

/** Kill worker and daemon, each while output is on its way, and start the worker again once that was noticed. */
async function unsettle(relay: SourceRelay, noticed: () => boolean): Promise<void> {
  const [worker] = relay.processes("worker run");
  await relay.kill(worker!);
  const [daemon] = relay.daemons();
  if (daemon !== undefined) await relay.kill(daemon);
  await eventually(noticed, { what: "a follower that tries again" });
  await relay.ok("worker", "start", "--cluster", "local");
}

test("followers get every byte and every event once, through the death of worker and daemon", async () => {
  await using relay = await withWorker();
  const job = longJob(relay, 500);
  const id = await relay.submit(...job.args);
  const follow = (...args: string[]) => new Collected(relay.start(args));
  const log = follow("job", "read-log", "-f", "--raw", id);
  const pieces = follow("job", "read-log", "-f", "--json", id);
  const events = follow("job", "watch", "--json", id);
  const lines = follow("job", "watch", id);
  const waiter = follow("job", "wait", "--json", id, "--timeout-seconds", "10m");
  // What never came through would be an error.
  await eventually(() => [log, pieces, events, lines].every(({ stdout }) => stdout.includes("line 5")), { what: "the first lines" });
  // The wait; what streams has been answered.
  await eventually(
    async () => {
      if ((await relay.json<{ active_requests: number }>("desktop", "status")).active_requests > 0) return true;
      throw new Error(`nobody waits: ${waiter.stderr}`);
    },
    { what: "a wait under way" },
  );
  await unsettle(relay, () => events.stderr.includes("; trying again until it is back\n"));
  job.release();

  expect(await Promise.all([log, pieces, events, lines, waiter].map(({ exited }) => exited))).toEqual([0, 0, 0, 0, 0]);
  expect(log.stdout).toBe(job.expected);

  const chunks = pieces.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { offset: number; next_offset: number; eof: boolean; text: string });
  expect(chunks.map(({ text }) => text).join("")).toBe(job.expected);
  expect(chunks.slice(1).map(({ offset }) => offset)).toEqual(chunks.slice(0, -1).map(({ next_offset }) => next_offset));
  expect(chunks.map(({ eof }) => eof)).toEqual([...chunks.slice(1).map(() => false), true]);

  const seen = events.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Event);
  expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, at) => at + 1));
  expect(seen.at(-1)!.event_type).toBe("job.succeeded");
  // A start that takes long under load is told of by the command for it.
  const outage = "notice: .*; trying again until it is back\n(?:notice: .*: clio-relay .*\n)?notice: connected again\n";
  expect(events.stderr).toMatch(new RegExp(`^(?:${outage})+$`));

  const shown = lines.stdout.split("\n").filter((line) => line.startsWith("stdout | "));
  expect(`${shown.map((line) => line.slice("stdout | ".length)).join("\n")}\n`).toBe(job.expected);

  expect(JSON.parse(waiter.stdout)).toMatchObject({
    state: "succeeded",
    observation: { outcome: "terminal", timeout_seconds: 600, scheduler_action: "none", relay_action: "none" },
  });
});

describe("a worker that is stopped in order", () => {
  test("ends no follower, and the job goes on", async () => {
    await using relay = await withWorker();
    const job = longJob(relay, 60);
    const id = await relay.submit(...job.args);
    const log = relay.start(["job", "read-log", "-f", id]);
    const events = relay.start(["job", "watch", "--json", id]);
    await eventually(async () => (await bytesSeen(relay, id)) > 100);
    const before = await relay.json<{ attempt: { process: { pid: number } } }>("job", "status", id);
    await relay.ok("worker", "stop");
    await relay.ok("desktop", "stop");
    await relay.ok("worker", "start");
    expect((await relay.json<typeof before>("job", "status", id)).attempt.process).toEqual(before.attempt.process);
    job.release();
    expect(await log.stdout.text()).toBe(job.expected);
    const seen = (await events.stdout.text())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Event);
    expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, at) => at + 1));
  });
});

describe("Ctrl-C", () => {
  test("detaches and cancels nothing, and what it says brings one back", async () => {
    await using relay = await withWorker();
    const job = longJob(relay, 5);
    const id = await relay.submit(...job.args);
    await eventually(async () => (await bytesSeen(relay, id)) > 40);
    const watch = relay.start(["job", "watch", "--json", id]);
    const reader = watch.stdout.getReader();
    let first = "";
    while (!first.includes("line 4")) first += Buffer.from((await reader.read()).value!).toString();
    watch.kill("SIGINT");
    expect(await watch.exited).toBe(130);
    const said = await watch.stderr.text();
    const back = /^detached; the job goes on\. Come back with: clio-relay (job watch \S+ --cluster local --cursor (\d+))\n$/.exec(said);
    expect(back).not.toBeNull();
    expect(await relay.json("job", "status", id)).toMatchObject({ job: { state: "running", cancellation_request: null } });
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      first += Buffer.from(value).toString();
    }
    job.release();
    const rest = await relay.ok(...back![1]!.split(" "), "--json");
    const seqs = `${first}${rest}`
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as Event).seq);
    expect(seqs).toEqual(seqs.map((_, at) => at + 1));
  });

  test.each<[string, string, string, string, string[]]>([
    ["an open line", "half ", "end", "half ", ["end"]],
    ["half a character", "half \\303", "\\251 end", "half ", ["é end"]],
  ])("passes over no output: %s", async (_what, begun, rest, shown, afterwards) => {
    await using relay = await withWorker();
    const [come, gate] = [path.join(relay.directory, "come"), path.join(relay.directory, "gate")];
    const until = (file: string): string => `until [ -e "${file}" ]; do sleep 0.05; done`;
    const script = `printf '${begun}'; ${until(come)}; echo mark >&2; ${until(gate)}; printf '${rest}'`;
    const id = await relay.submit("--", "sh", "-c", script);
    const child = relay.start(["job", "watch", id]);
    const watch = new Collected(child);
    // The second stream says that the first one's bytes have come.
    const told = async (): Promise<boolean> =>
      (await relay.json<{ events: Event[] }>("job", "monitor", id)).events.some(({ event_type }) => event_type === "stdout.delta");
    await eventually(told, { what: "the first bytes" });
    fs.writeFileSync(come, "");
    await eventually(() => watch.stdout.includes("stderr | mark"));
    child.kill("SIGINT");
    expect(await watch.exited).toBe(130);
    const output = (text: string) => text.split("\n").filter((line) => line.startsWith("stdout | "));
    expect(output(watch.stdout)).toEqual([`stdout | ${shown}`]);
    fs.writeFileSync(gate, "");
    const back = /Come back with: clio-relay (.*)\n/.exec(watch.stderr)![1]!;
    const later = await relay.ok(...back.split(" "));
    expect(output(later)).toEqual(afterwards.map((line) => `stdout | ${line}`));
    // A line that nothing ended is one of the job's, before its end.
    const end = (lines: string[], word: string) => lines.findIndex((line) => line.includes(word));
    const lines = later.split("\n");
    expect(end(lines, "end")).toBeLessThan(end(lines, "job.succeeded"));
  });

  test.each(["wait", "read-log -f"])("%s", async (verb) => {
    await using relay = await withWorker();
    const id = await relay.submit("--", "sh", "-c", "echo here; exec sleep 100");
    await eventually(async () => (await bytesSeen(relay, id)) > 0);
    const child = relay.start(["job", ...verb.split(" "), id]);
    // Its handler is there before its first request is.
    await eventually(
      async () => (await relay.json<{ active_requests: number }>("desktop", "status")).active_requests > 0 || verb !== "wait",
    );
    if (verb !== "wait") await child.stdout.getReader().read();
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
    expect(await relay.json("job", "status", id)).toMatchObject({ job: { state: "running" } });
  });
});

test("waiting", async () => {
  await using relay = await withWorker();
  const id = await relay.submit("--", "sh", "-c", "exec sleep 100");
  const late = await relay.run(["job", "wait", id, "--timeout-seconds", "0.2", "--poll-seconds", "1"]);
  expect(late.code).toBe(6);
  expect(late.stderr).toBe("notice: --poll-seconds is ignored: waiting is by notification\nnotice: the time is over; the job goes on\n");
  const now = await relay.run(["job", "wait", id, "--timeout-seconds", "0", "--json"]);
  expect([now.code, JSON.parse(now.stdout)]).toMatchObject([6, { observation: { outcome: "observation_unknown", timeout_seconds: 0 } }]);
  const canceled = await relay.run(["job", "cancel", id, "--wait"]);
  expect([canceled.code, canceled.stderr]).toEqual([0, ""]);
  expect(canceled.stdout).toStartWith(`${id} canceled`);
  expect((await relay.run(["job", "wait", id])).code).toBe(10);
  expect((await relay.run(["job", "watch", id])).code).toBe(10);
  expect(await relay.run(["job", "cancel", id])).toEqual({
    code: 0,
    stdout: `${id} canceled\n`,
    stderr: "notice: it was over already; nothing was canceled\n",
  });
});

test("whoever waits in vain for the end of a canceled job is told that the request stands", async () => {
  await using relay = await withWorker();
  const id = await relay.submit("--", "sh", "-c", 'trap "" TERM; echo ready; while :; do sleep 0.1; done');
  await eventually(async () => (await relay.ok("job", "read-log", id)) === "ready");
  const cancel = await relay.run(["job", "cancel", id, "--wait", "--timeout-seconds", "0"]);
  const next = `clio-relay job wait ${id} --cluster local`;
  expect([cancel.code, cancel.stderr]).toEqual([
    6,
    `notice: the time is over; cancel is requested, and the request stands. Wait for its end with: ${next}\n`,
  ]);
});

test("what cannot be reached or found at all is said at once", async () => {
  await using relay = await withWorker();
  const none = `job_${"0".repeat(32)}`;
  for (const verb of [["watch"], ["wait"], ["read-log"], ["read-log", "-f"], ["status"], ["cancel"], ["tasks"], ["list-artifacts"]]) {
    const result = await relay.run(["job", ...verb, none]);
    expect([verb, result.code, result.stdout]).toEqual([verb, 3, ""]);
    expect(result.stderr).toContain("[job_not_found]");
  }
  await relay.ok("worker", "stop");
  for (const verb of [["watch"], ["wait"], ["read-log", "-f"], ["status"]]) {
    const result = await relay.run(["job", ...verb, none]);
    expect([verb, result.code, result.stdout]).toEqual([verb, 5, ""]);
    expect(result.stderr).toBe(
      "error: no worker is running for local [worker_not_running]\nhint: clio-relay worker start --cluster local\n",
    );
  }
});
