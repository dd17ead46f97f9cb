import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { eventually } from "../../runner/wait.ts";
import { withWorker } from "../source-relay.ts";

test("--tail begins that many bytes before the end, whatever else is asked", async () => {
  await using relay = await withWorker();
  const gate = path.join(relay.directory, "gate");
  const text = "0123456789".repeat(10);
  const id = await relay.submit("--", "sh", "-c", `printf %s ${text}; while [ ! -e "${gate}" ]; do sleep 0.05; done; printf é-end`);
  const size = () => relay.json<{ logs: { size_bytes: number }[] }>("job", "status", id).then((s) => s.logs[0]!.size_bytes);
  await eventually(async () => (await size()) === 100);
  const limited = ["job", "read-log", id, "--tail", "20", "--limit", "5"];
  expect(await relay.ok(...limited)).toBe("01234");
  expect(await relay.json(...limited)).toMatchObject({ offset: 80, next_offset: 85, text: "01234", eof: false });
  const raw = relay.start(["job", "read-log", "-f", "--tail", "13", id]);
  const pieces = relay.start(["job", "read-log", "-f", "--json", "--tail", "13", id]);
  const all = relay.start(["job", "read-log", "-f", "--tail", "1000", id]);
  const reader = raw.stdout.getReader();
  const { value } = await reader.read();
  const other = pieces.stdout.getReader();
  const piece = await other.read();
  const third = all.stdout.getReader();
  const whole = await third.read();
  fs.writeFileSync(gate, "");
  const rest = async (from: typeof reader) => {
    let said = "";
    for (let next = await from.read(); !next.done; next = await from.read()) said += Buffer.from(next.value).toString();
    return said;
  };
  expect(Buffer.from(value!).toString() + (await rest(reader))).toBe("7890123456789é-end");
  expect(Buffer.from(whole.value!).toString() + (await rest(third))).toBe(`${text}é-end`);
  const lines = (Buffer.from(piece.value!).toString() + (await rest(other))).trimEnd().split("\n");
  const chunks = lines.map((line) => JSON.parse(line) as { offset: number; text: string });
  expect(chunks[0]!.offset).toBe(87);
  expect(chunks.map((chunk) => chunk.text).join("")).toBe("7890123456789é-end");
  // Text is not begun within a character; bytes are what they are.
  expect(await relay.json("job", "read-log", id, "--tail", "5")).toMatchObject({ offset: 102, text: "-end", eof: true });
  expect(await relay.json("job", "read-log", id, "--tail", "0")).toMatchObject({ offset: 106, text: "", eof: true });
});

test("what one attempt wrote is read in pages, from its first byte to its last", async () => {
  await using relay = await withWorker();
  const id = await relay.submit(
    "--retries",
    "1",
    "--",
    "sh",
    "-c",
    'if [ ! -e tried ]; then touch tried; printf "a1a2a"; exit 1; fi; printf "b1b2b"',
  );
  await relay.ok("job", "wait", id);
  for (const [attempt, wrote, first] of [
    ["1", "a1a2a", 0],
    ["2", "b1b2b", 5],
  ] as const) {
    let [text, offset] = ["", 0];
    for (let pages = 1; ; pages++) {
      const page = await relay.json<{ offset: number; next_offset: number; text: string; eof: boolean }>(
        ...["job", "read-log", id, "--attempt", attempt, "--offset", String(offset), "--limit", "2"],
      );
      if (pages === 1) expect(page.offset).toBe(first);
      text += page.text;
      offset = page.next_offset;
      if (page.eof) break;
      expect(pages).toBeLessThan(4);
    }
    expect([text, offset]).toEqual([wrote, first + 5]);
  }
  expect(await relay.json("job", "read-log", id, "--attempt", "1", "--offset", "7")).toMatchObject({ offset: 5, text: "", eof: true });
  expect(await relay.ok("job", "read-log", id, "--attempt", "1", "--offset", "2")).toBe("a2a");
});

test("--attempt prints what one attempt wrote, --lines so many lines from the end", async () => {
  await using relay = await withWorker();
  const script = 'if [ ! -e tried ]; then touch tried; printf "a1\\na2\\n"; exit 1; fi; printf "b1\\nb2\\nb3 has no end"';
  const id = await relay.submit("--retries", "1", "--", "sh", "-c", script);
  await relay.ok("job", "wait", id);
  const log = (...options: string[]) => relay.ok("job", "read-log", id, "--raw", ...options);
  expect(await log()).toBe("a1\na2\nb1\nb2\nb3 has no end");
  expect(await log("--attempt", "1")).toBe("a1\na2");
  expect(await log("--attempt", "2")).toBe("b1\nb2\nb3 has no end");
  expect(await log("--attempt", "1", "--tail", "4")).toBe("\na2");
  expect(await log("--attempt", "1", "-n", "1")).toBe("a2");
  expect(await log("--attempt", "1", "--limit", "2")).toBe("a1");
  expect(await log("--lines", "2")).toBe("b2\nb3 has no end");
  expect(await log("--lines", "4")).toBe("a2\nb1\nb2\nb3 has no end");
  expect(await log("--lines", "100")).toBe("a1\na2\nb1\nb2\nb3 has no end");
  expect(await log("--lines", "0")).toBe("");
  expect(await log("-f", "--lines", "1")).toBe("b3 has no end");
  expect(await relay.json("job", "read-log", id, "--attempt", "1")).toMatchObject({
    offset: 0,
    next_offset: 6,
    text: "a1\na2\n",
    eof: true,
  });
  expect(await relay.json("job", "read-log", id, "--attempt", "2", "--stream", "stderr")).toMatchObject({
    offset: 0,
    text: "",
    eof: true,
  });
  const none = await relay.run(["job", "read-log", id, "--attempt", "3"]);
  expect([none.code, none.stderr]).toEqual([3, `error: ${id} has no attempt 3; it has had 2 [not_found]\n`]);
  for (const [options, words] of [
    [["--attempt", "1", "-f"], "--follow and --attempt exclude each other"],
    [["--tail", "1", "--lines", "3"], "--tail and --lines exclude each other"],
  ] as const) {
    const refused = await relay.run(["job", "read-log", id, ...options]);
    expect([refused.code, refused.stderr]).toEqual([2, `error: ${words} [usage]\n`]);
  }
});

test("lines are counted from the end of a log that is longer than what is read at a time", async () => {
  await using relay = await withWorker();
  const id = await relay.submit("--", "sh", "-c", "seq 1 40000");
  await relay.ok("job", "wait", id);
  const last = (count: number) => Array.from({ length: count }, (_, at) => 40_000 - count + at + 1).join("\n");
  for (const count of [1, 1_000, 11_000, 30_000]) expect(await relay.ok("job", "read-log", id, "-n", String(count))).toBe(last(count));
});

test("bytes that a log has lost are passed over and counted, by every reader", async () => {
  await using relay = await withWorker();
  const script = 'if [ ! -e tried ]; then touch tried; head -c 6000 /dev/zero | tr "\\0" x; exit 1; fi; echo again';
  const id = await relay.submit("--retries", "1", "--", "sh", "-c", script);
  await relay.ok("job", "wait", id);
  fs.truncateSync(path.join(relay.home, "spool/local", id, "attempt-1/stdout.log"), 1_000);
  const left = `${"x".repeat(1_000)}again\n`;
  const notice = "notice: 5000 bytes of stdout, from byte 1000 on, are no longer there\n";
  for (const options of [[], ["-f"]]) {
    expect(await relay.run(["job", "read-log", id, "--raw", ...options])).toEqual({ code: 0, stdout: left, stderr: notice });
  }
  const pieces = (await relay.ok("job", "read-log", id, "-f", "--json")).trimEnd().split("\n");
  expect(pieces.map((piece) => JSON.parse(piece) as unknown)).toMatchObject([
    { offset: 0, next_offset: 1_000, missing_bytes: 0 },
    { offset: 1_000, next_offset: 6_000, text: "", missing_bytes: 5_000 },
    { offset: 6_000, next_offset: 6_006, text: "again\n", eof: true, missing_bytes: 0 },
  ]);
  const watched = await relay.run(["job", "watch", id]);
  expect(watched.stdout + watched.stderr).toContain("again");
  expect(watched.stderr).toContain(notice);
  const within = await relay.run(["job", "read-log", id, "--raw", "--offset", "2000", "--limit", "4003"]);
  expect(within).toMatchObject({ code: 0, stdout: "aga", stderr: expect.stringContaining("4000 bytes of stdout, from byte 2000 on") });
});
