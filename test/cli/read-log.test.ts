import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { eventually } from "../runner/wait.ts";
import { withWorker } from "./source-relay.ts";

const TIMEOUT = 60_000;

test(
  "--tail begins that many bytes before the end, whatever else is asked",
  async () => {
    await using relay = await withWorker();
    const gate = path.join(relay.directory, "gate");
    const text = "0123456789".repeat(10);
    const id = await relay.submit("--", "sh", "-c", `printf %s ${text}; while [ ! -e "${gate}" ]; do sleep 0.05; done; printf é-end`);
    const size = () => relay.json<{ logs: { size_bytes: number }[] }>("job", "status", id).then((s) => s.logs[0]!.size_bytes);
    await eventually(async () => (await size()) === 100, { timeoutMs: 20_000 });
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
  },
  TIMEOUT,
);
