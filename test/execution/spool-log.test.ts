import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { LogSegment, LogStream, StreamCapture } from "../../src/domain/log.ts";
import { logSize, readLogBytes, readLogText, type SpoolLog, tailLogText } from "../../src/execution/spool-log.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const temporary = temporaryDirectories();

function captured(kept: number): StreamCapture {
  return { observed: kept, kept, dropped: 0, truncated: null, complete: true };
}

/** A job's log with these attempts; the last is live unless `ended`. */
function log(attempts: readonly (string | Uint8Array | null)[], ended = false, stream: LogStream = "stdout"): SpoolLog {
  const directory = temporary();
  let base = 0;
  const segments: LogSegment[] = attempts.map((content, index) => {
    const bytes = content === null ? null : Buffer.from(content as string);
    const attempt = index + 1;
    fs.mkdirSync(path.join(directory, `attempt-${attempt}`));
    if (bytes !== null) fs.writeFileSync(path.join(directory, `attempt-${attempt}`, `${stream}.log`), bytes);
    const live = index === attempts.length - 1 && !ended;
    const kept = bytes?.length ?? 0;
    const segment = { job_id: "job_a", attempt, stream, base, length: live ? 0 : kept, capture: live ? null : captured(kept) };
    base += kept;
    return segment;
  });
  return { directory, stream, segments };
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");

describe("bytes of a log", () => {
  test("that a crash of the machine took are missing, never made up, and what follows keeps its place", async () => {
    const two = log(["12345", "second"], true);
    // Ten bytes of the first attempt had been recorded; five are left, and that is what its end counted.
    const [first, second] = two.segments;
    const torn = {
      ...two,
      segments: [
        { ...first!, length: 10 },
        { ...second!, base: 10 },
      ],
    };
    expect(await logSize(torn)).toBe(16);
    expect(text(await readLogBytes(torn, 0, 5))).toBe("12345");
    expect(text(await readLogBytes(torn, 0, 16))).toBe("12345");
    for (const offset of [5, 8]) await expect(readLogBytes(torn, offset, 8)).rejects.toMatchObject({ code: "log_not_found" });
    expect(text(await readLogBytes(torn, 10, 9))).toBe("second");
  });

  test("are those of its attempts, one after the other, by offset", async () => {
    const three = log(["first", "", "second and more"]);
    expect(await logSize(three)).toBe(20);
    expect(text(await readLogBytes(three, 0, 100))).toBe("firstsecond and more");
    expect(text(await readLogBytes(three, 3, 5))).toBe("stsec");
    expect(text(await readLogBytes(three, 5, 6))).toBe("second");
    expect(text(await readLogBytes(three, 19, 9))).toBe("e");
    for (const offset of [20, 21, 1e12]) expect((await readLogBytes(three, offset, 9)).length).toBe(0);
    expect((await readLogBytes(three, 2, 0)).length).toBe(0);
  });

  test("of a job without attempts, or without output, are none", async () => {
    for (const none of [log([]), log([null]), log([""], true)]) {
      expect(await logSize(none)).toBe(0);
      expect((await readLogBytes(none, 0, 10)).length).toBe(0);
      expect(await readLogText(none, 0, 10)).toEqual({ offset: 0, next_offset: 0, text: "", missing_bytes: 0 });
      expect(await tailLogText(none, 10)).toEqual({ offset: 0, next_offset: 0, text: "", missing_bytes: 0 });
    }
  });

  test("of a live attempt are there before anybody recorded them", async () => {
    const live = log(["abc"]);
    fs.appendFileSync(path.join(live.directory, "attempt-1/stdout.log"), "def");
    expect(text(await readLogBytes(live, 2, 10))).toBe("cdef");
  });

  test("of an ended attempt are no more than were kept", async () => {
    const ended = log(["abc"], true);
    fs.appendFileSync(path.join(ended.directory, "attempt-1/stdout.log"), "def");
    expect(text(await readLogBytes(ended, 0, 10))).toBe("abc");
  });

  test("that were recorded and are no longer there are a typed error", async () => {
    const cut = log(["abcdef", "x"], true);
    fs.truncateSync(path.join(cut.directory, "attempt-1/stdout.log"), 3);
    const refusal = expect.objectContaining({ code: "log_not_found" });
    await expect(readLogBytes(cut, 3, 10)).rejects.toThrow(refusal);
    expect(text(await readLogBytes(cut, 0, 10))).toBe("abc");
    expect(text(await readLogBytes(cut, 6, 3))).toBe("x");
    fs.rmSync(path.join(cut.directory, "attempt-1"), { recursive: true });
    await expect(readLogBytes(cut, 0, 10)).rejects.toThrow(refusal);
  });

  test("of the other stream are not mixed in", async () => {
    const both = log(["out"]);
    fs.writeFileSync(path.join(both.directory, "attempt-1/stderr.log"), "err");
    const stderr = { ...both.segments[0]!, stream: "stderr" as const };
    expect(text(await readLogBytes({ ...both, segments: [...both.segments, stderr] }, 0, 10))).toBe("out");
    expect(text(await readLogBytes({ ...both, stream: "stderr", segments: [...both.segments, stderr] }, 0, 10))).toBe("err");
  });
});

/** The whole text, read piece by piece. */
async function readAll(source: SpoolLog, limit: number): Promise<{ text: string; pieces: string[] }> {
  const pieces: string[] = [];
  for (let offset = 0; ; ) {
    const piece = await readLogText(source, offset, limit);
    expect(piece.offset).toBe(offset);
    if (piece.next_offset === offset) return { text: pieces.join(""), pieces };
    pieces.push(piece.text);
    offset = piece.next_offset;
  }
}

describe("text of a log", () => {
  const sample = "a€😀é\r\u0000z\ufeffb";

  for (const limit of [1, 2, 3, 4, 5, 7, 100]) {
    test(`in pieces of ${limit} bytes is whole, and no character is cut`, async () => {
      for (const source of [log([sample], true), log([sample]), log(["a€", "😀é\r\u0000z\ufeffb"], true)]) {
        const { text: all, pieces } = await readAll(source, limit);
        expect(all).toBe(sample);
        for (const piece of pieces) expect(piece).not.toContain("\ufffd");
      }
    });
  }

  test("of bytes that are no UTF-8 goes on past them", async () => {
    const bytes = Buffer.from([0x61, 0xff, 0x80, 0x80, 0x80, 0x80, 0xf0, 0x9f, 0x62, 0xc3]);
    for (const limit of [1, 2, 3, 64]) {
      const { text: all } = await readAll(log([bytes], true), limit);
      expect(all).toStartWith("a\ufffd");
      expect(all).toContain("b");
      expect(all.replaceAll("\ufffd", "")).toBe("ab");
    }
  });

  test("of a live log waits for the rest of a begun character", async () => {
    const live = log([Buffer.from([0x61, 0xe2, 0x82])]);
    expect(await readLogText(live, 0, 10)).toEqual({ offset: 0, next_offset: 1, text: "a", missing_bytes: 0 });
    expect(await readLogText(live, 1, 10)).toEqual({ offset: 1, next_offset: 1, text: "", missing_bytes: 0 });
    fs.appendFileSync(path.join(live.directory, "attempt-1/stdout.log"), Buffer.from([0xac]));
    expect(await readLogText(live, 1, 1)).toEqual({ offset: 1, next_offset: 4, text: "€", missing_bytes: 0 });
  });

  test("of an ended log gives the begun character as it is", async () => {
    const ended = log([Buffer.from([0x61, 0xe2, 0x82])], true);
    expect(await readLogText(ended, 1, 10)).toEqual({ offset: 1, next_offset: 3, text: "\ufffd", missing_bytes: 0 });
    expect(await readLogText(ended, 1, 1)).toMatchObject({ next_offset: 3 });
  });
});

describe("where a log lacks bytes", () => {
  const gap = (offset: number, next_offset: number) => ({ offset, next_offset, text: "", missing_bytes: next_offset - offset });

  test("text is passed over them with their number, and goes on behind them", async () => {
    const cut = log(["ab€def", "next"], true);
    // In the middle of a character: nothing can complete it.
    fs.truncateSync(path.join(cut.directory, "attempt-1/stdout.log"), 4);
    expect(await readLogText(cut, 0, 100)).toEqual({ offset: 0, next_offset: 4, text: "ab\ufffd", missing_bytes: 0 });
    expect(await readLogText(cut, 4, 1)).toEqual(gap(4, 8));
    expect(await readLogText(cut, 6, 100)).toEqual(gap(6, 8));
    expect(await readLogText(cut, 8, 100)).toEqual({ offset: 8, next_offset: 12, text: "next", missing_bytes: 0 });
    expect(await tailLogText(cut, 6)).toEqual(gap(6, 8));
    fs.rmSync(path.join(cut.directory, "attempt-1"), { recursive: true });
    expect(await readLogText(cut, 0, 100)).toEqual(gap(0, 8));
  });

  const instead = {
    "a pipe": (file: string) => expect(Bun.spawnSync(["mkfifo", file]).exitCode).toBe(0),
    "a directory": (file: string) => fs.mkdirSync(file),
    "a link to another file": (file: string) => {
      fs.writeFileSync(`${file}.secret`, "secret");
      fs.symlinkSync(`${file}.secret`, file);
    },
    "a link to a device": (file: string) => fs.symlinkSync("/dev/zero", file),
  };
  test.each(Object.entries(instead))("%s in the place of its file gives nothing and holds nothing up", async (_name, put) => {
    const source = log(["abcdef", "x"], true);
    const file = path.join(source.directory, "attempt-1/stdout.log");
    fs.rmSync(file);
    put(file);
    await expect(readLogBytes(source, 0, 6)).rejects.toMatchObject({ code: "log_not_found", data: { offset: 0, next_offset: 6 } });
    expect(await readLogText(source, 0, 6)).toEqual(gap(0, 6));
    const [first] = source.segments;
    const live = { ...source, segments: [{ ...first!, length: 0, capture: null }] };
    expect(await logSize(live)).toBe(0);
    expect(await readLogText(live, 0, 6)).toEqual({ offset: 0, next_offset: 0, text: "", missing_bytes: 0 });
  });
});

describe("the tail", () => {
  test("begins between two characters", async () => {
    const source = log(["0123é", "😀end"], true);
    expect(await tailLogText(source, 3)).toEqual({ offset: 10, next_offset: 13, text: "end", missing_bytes: 0 });
    for (const bytes of [4, 5, 6])
      expect(await tailLogText(source, bytes)).toEqual({ offset: 10, next_offset: 13, text: "end", missing_bytes: 0 });
    expect(await tailLogText(source, 7)).toEqual({ offset: 6, next_offset: 13, text: "😀end", missing_bytes: 0 });
    expect(await tailLogText(source, 8)).toEqual({ offset: 6, next_offset: 13, text: "😀end", missing_bytes: 0 });
    expect(await tailLogText(source, 9)).toEqual({ offset: 4, next_offset: 13, text: "é😀end", missing_bytes: 0 });
    expect(await tailLogText(source, 1_000)).toEqual({ offset: 0, next_offset: 13, text: "0123é😀end", missing_bytes: 0 });
    expect(await tailLogText(source, 0)).toEqual({ offset: 13, next_offset: 13, text: "", missing_bytes: 0 });
  });

  test("of bytes that are no UTF-8 is given too", async () => {
    const source = log([Buffer.alloc(100, 0x80)], true);
    expect(await tailLogText(source, 10)).toEqual({ offset: 90, next_offset: 100, text: "\ufffd".repeat(10), missing_bytes: 0 });
  });
});
