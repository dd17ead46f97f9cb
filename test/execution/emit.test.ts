import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { EmitLine } from "../../src/domain/emit-line.ts";
import { LIMITS } from "../../src/domain/limits.ts";
import { type Emission, emit, emitFileName } from "../../src/execution/emit.ts";
import { type EmitFiles, readEmitFiles } from "../../src/execution/emit-files.ts";
import { parseEmitLine } from "../../src/execution/emit-line.ts";
import { firstEntries } from "../../src/lib/files/first-entries.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const temporary = temporaryDirectories();
const parse = (text: string | Uint8Array): EmitLine | null => parseEmitLine(typeof text === "string" ? Buffer.from(text) : text);
const progress = (members: Record<string, unknown> = {}): string => JSON.stringify({ type: "progress", current: 1, ...members });

/** Read until there is no more, as a worker does. */
function readAll(
  directory: string,
  offsets = new Map<string, number>(),
): { lines: EmitLine[]; offsets: Map<string, number>; calls: number } {
  const lines: EmitLine[] = [];
  for (let calls = 1; ; calls++) {
    const result = readEmitFiles(directory, offsets);
    for (const batch of result.batches) {
      expect(batch.offset).toBe(offsets.get(batch.file) ?? 0);
      expect(batch.next_offset).toBeGreaterThan(batch.offset);
      offsets.set(batch.file, batch.next_offset);
      lines.push(...batch.lines);
    }
    if (!result.more) return { lines, offsets, calls };
  }
}

describe("a line", () => {
  test("is a report with its defaults filled in", () => {
    expect(parse('{"type":"progress","label":"epoch","current":3,"total":10}')).toMatchObject({
      type: "progress",
      progress: { label: "epoch", current: 3, total: 10, unit: null, metadata: {} },
    });
    expect(parse('{"type":"task-event","event_type":"phase","label":"l","summary":"s"}')).toMatchObject({
      type: "task-event",
      event: { event_type: "phase", status: "running", path_refs: [] },
    });
  });

  test("has U+FFFD for each lone half of a surrogate pair, in what it names, too", () => {
    const line = String.raw`{"type":"progress","label":"a\ud800","current":1,"metadata":{"\uDC80":"\ud83d\ude00"}}`;
    expect(parse(line)).toMatchObject({ progress: { label: "a\uFFFD", metadata: { "\uFFFD": "\u{1f600}" } } });
  });

  test("of white space is nothing", () => {
    for (const text of ["", "  \t", "\r"]) expect(parse(text)).toBeNull();
  });

  const refusals: [title: string, line: string | Uint8Array, reason: RegExp][] = [
    ["not JSON", "50%", /not JSON/],
    ["cut short", '{"type":"progress"', /not JSON/],
    ["not UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), /not UTF-8/],
    ["another kind of JSON", "[1]", /not a JSON object/],
    ["null", "null", /not a JSON object/],
    ["of an unknown type", '{"type":"job.succeeded"}', /neither progress nor task-event/],
    ["without a type", "{}", /neither progress nor task-event/],
    ["with an unknown member", progress({ currant: 1 }), /currant/],
    ["with a wrong value", progress({ total: 0 }), /total/],
    ["without what is needed", '{"type":"task-event","label":"l"}', /event_type/],
    ["nested too deeply", `{"type":"progress","metadata":{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}}`, /nested too deeply|not JSON/],
    ["too long", progress({ message: "m".repeat(LIMITS.emitLineBytes) }), /longer than/],
  ];
  for (const [title, line, reason] of refusals) {
    test(`that is ${title} is refused, and says why`, () => {
      const parsed = parse(line);
      if (parsed?.type !== "refused") throw new Error(`not refused: ${JSON.stringify(parsed)}`);
      expect(parsed.reason).toMatch(reason);
      expect(parsed.reason.length).toBeLessThanOrEqual(500);
    });
  }
});

describe("event files", () => {
  const write = (directory: string, file: string, text: string | Uint8Array): void => fs.appendFileSync(path.join(directory, file), text);

  test("that are not there are empty", () => {
    expect(readEmitFiles("/no/such/directory", new Map())).toEqual({ batches: [], more: false, ignored: 0 });
  });

  test("give complete lines only, and go on where they were left", () => {
    const directory = temporary();
    write(directory, "h-1-1.jsonl", `${progress({ current: 1 })}\n${progress({ current: 2 })}`);
    const first = readEmitFiles(directory, new Map());
    expect(first.batches).toHaveLength(1);
    expect(first.batches[0]).toMatchObject({ file: "h-1-1.jsonl", offset: 0, next_offset: progress({ current: 1 }).length + 1 });
    const offsets = new Map([["h-1-1.jsonl", first.batches[0]!.next_offset]]);
    expect(readEmitFiles(directory, offsets).batches).toEqual([]);
    write(directory, "h-1-1.jsonl", "\n\nnonsense\n");
    const second = readEmitFiles(directory, offsets).batches[0]!;
    expect(second.lines.map(({ type }) => type)).toEqual(["progress", "refused"]);
    expect(second.next_offset).toBe(fs.statSync(path.join(directory, "h-1-1.jsonl")).size);
  });

  test("of blank lines alone still move on", () => {
    const directory = temporary();
    write(directory, "a.jsonl", "\n\n \n");
    expect(readEmitFiles(directory, new Map()).batches).toEqual([{ file: "a.jsonl", offset: 0, next_offset: 4, lines: [] }]);
  });

  test("are read from several processes, names of other kinds are not", () => {
    const directory = temporary();
    for (const name of ["b.jsonl", "a.jsonl", ".hidden.jsonl", "notes.txt", "a.jsonl.tmp", "x y.jsonl"]) {
      write(directory, name, `${progress({ label: name })}\n`);
    }
    fs.symlinkSync("/etc/passwd", path.join(directory, "link.jsonl"));
    fs.mkdirSync(path.join(directory, "dir.jsonl"));
    expect(Bun.spawnSync(["mkfifo", path.join(directory, "pipe.jsonl")]).exitCode).toBe(0);
    const { lines } = readAll(directory);
    expect(lines.map((line) => (line.type === "progress" ? line.progress.label : line.type))).toEqual(["a.jsonl", "b.jsonl"]);
  });

  test("come in bounded pieces, and nothing is missed or doubled between them", () => {
    const directory = temporary();
    const count = 3_000;
    for (const file of ["a.jsonl", "b.jsonl"]) {
      write(directory, file, Array.from({ length: count }, (_, i) => `${progress({ label: file, current: i })}\n`).join(""));
    }
    const { lines, calls } = readAll(directory);
    expect(calls).toBeGreaterThan(10);
    for (const file of ["a.jsonl", "b.jsonl"]) {
      const numbers = lines.flatMap((line) => (line.type === "progress" && line.progress.label === file ? [line.progress.current] : []));
      expect(numbers).toEqual(Array.from({ length: count }, (_, i) => i));
    }
    expect(readEmitFiles(directory, new Map()).batches.flatMap((batch) => batch.lines).length).toBeLessThanOrEqual(500);
  });

  test("take a line of exactly the bound and refuse one byte more", () => {
    const directory = temporary();
    const line = (bytes: number): string => {
      const empty = JSON.stringify({ type: "progress", metadata: { pad: "" } });
      return JSON.stringify({ type: "progress", metadata: { pad: "x".repeat(bytes - empty.length) } });
    };
    write(directory, "a.jsonl", `${line(LIMITS.emitLineBytes)}\n${line(LIMITS.emitLineBytes + 1)}\n${progress()}\n`);
    expect(readAll(directory).lines.map(({ type }) => type)).toEqual(["progress", "refused", "progress"]);
  });

  test("with a line of many megabytes refuse it once, when it has ended", () => {
    const directory = temporary();
    const memory = new Map<string, number>();
    const offsets = new Map<string, number>();
    const look = (): EmitFiles => readEmitFiles(directory, offsets, memory);
    write(directory, "a.jsonl", "x".repeat(3_000_000));
    expect(look().batches).toEqual([]);
    expect(memory.get("a.jsonl")).toBe(3_000_000);
    write(directory, "a.jsonl", "x".repeat(3_000_000));
    expect(look().batches).toEqual([]);
    write(directory, "a.jsonl", `x\n${progress()}\n`);
    const ended = look();
    expect(ended).toMatchObject({ more: true, batches: [{ offset: 0, next_offset: 6_000_002, lines: [{ type: "refused" }] }] });
    expect(memory.size).toBe(0);
    // Without the memory, as after a restart, the same is read.
    expect(readAll(directory).lines.map(({ type }) => type)).toEqual(["refused", "progress"]);
  });

  test("with a line that takes long to search are searched a piece at a time, and the others are read meanwhile", () => {
    const directory = temporary();
    const memory = new Map<string, number>();
    const offsets = new Map<string, number>();
    const size = 40 * 1024 * 1024;
    write(directory, "a.jsonl", "");
    // A hole: it reads as zeros, and takes no room.
    fs.truncateSync(path.join(directory, "a.jsonl"), size);
    write(directory, "a.jsonl", `\n${progress({ label: "after" })}\n`);
    write(directory, "b.jsonl", `${progress({ label: "other" })}\n`);
    const lines: EmitLine[] = [];
    const searched: number[] = [];
    for (let more = true; more; ) {
      const result = readEmitFiles(directory, offsets, memory);
      for (const batch of result.batches) {
        offsets.set(batch.file, batch.next_offset);
        lines.push(...batch.lines);
      }
      searched.push(memory.get("a.jsonl") ?? size);
      more = result.more;
    }
    expect(lines.map((line) => (line.type === "progress" ? line.progress.label : line.type))).toEqual(["other", "refused", "after"]);
    expect(searched.length).toBeGreaterThanOrEqual(3);
    for (const [i, at] of searched.entries()) expect(at - (searched[i - 1] ?? 0)).toBeLessThan(17 * 1024 * 1024);
  });

  test("that are very many are not all looked at; one that was read is found nevertheless", () => {
    const directory = temporary();
    for (let i = 0; i < 3 * LIMITS.emitFiles; i++) write(directory, `f${i}.jsonl`, "");
    const { names, more } = firstEntries(directory, 10);
    expect(names).toHaveLength(10);
    expect(more).toBe(true);
    const seen = new Set(firstEntries(directory, 2 * LIMITS.emitFiles).names);
    const last = fs.readdirSync(directory).find((name) => !seen.has(name))!;
    write(directory, last, `${progress()}\n`);
    expect(readEmitFiles(directory, new Map([[last, 0]]))).toMatchObject({ batches: [{ file: last }], ignored: LIMITS.emitFiles + 2 });
  });

  test("beyond the bound are ignored and counted; one that was read stays in", () => {
    const directory = temporary();
    for (let i = 0; i < LIMITS.emitFiles + 3; i++) write(directory, `f${String(i).padStart(5, "0")}.jsonl`, `${progress()}\n`);
    const offsets = new Map([["zzz.jsonl", 0]]);
    write(directory, "zzz.jsonl", `${progress({ label: "late" })}\n`);
    const result = readEmitFiles(directory, offsets);
    expect(result.ignored).toBe(4);
    expect(result.batches[0]).toMatchObject({ file: "zzz.jsonl" });
  });
});

describe("emit", () => {
  test("appends whole lines to one file a session", () => {
    const directory = temporary();
    const reports: Emission[] = [
      { type: "progress", label: "läuft", current: 1, total: 3 },
      { type: "task-event", event_type: "phase", label: "l", summary: "two\nlines" },
    ];
    for (const report of reports) emit(directory, report);
    expect(fs.readdirSync(directory)).toEqual([emitFileName()]);
    expect(readAll(directory).lines).toMatchObject([
      { type: "progress", progress: { label: "läuft", total: 3 } },
      { type: "task-event", event: { summary: "two\nlines", status: "running" } },
    ]);
    expect(fs.statSync(path.join(directory, emitFileName())).mode & 0o777).toBe(0o600);
  });

  test("names files that the reader takes, whatever the host is called", () => {
    for (const host of ["node17.cluster.example", "..", "", "ho st/é", "h".repeat(300)]) {
      const directory = temporary();
      fs.writeFileSync(path.join(directory, emitFileName(host)), `${progress()}\n`);
      expect(readAll(directory).lines).toHaveLength(1);
    }
  });

  test("from many processes at once loses and mixes nothing", async () => {
    const directory = temporary();
    const script = `
      import { emit } from ${JSON.stringify(path.join(import.meta.dir, "../../src/execution/emit.ts"))};
      for (let i = 0; i < 200; i++) emit(${JSON.stringify(directory)}, { type: "progress", label: process.argv[1], current: i, message: "m".repeat(i * 10) });
    `;
    const writers = ["a", "b", "c", "d"].map((name) =>
      Bun.spawn([process.execPath, "-e", script, name], { stdin: "ignore", stderr: "inherit" }),
    );
    for (const writer of writers) expect(await writer.exited).toBe(0);
    const { lines } = readAll(directory);
    for (const name of ["a", "b", "c", "d"]) {
      const numbers = lines.flatMap((line) => (line.type === "progress" && line.progress.label === name ? [line.progress.current] : []));
      expect(numbers).toEqual(Array.from({ length: 200 }, (_, i) => i));
    }
    expect(fs.readdirSync(directory)).toHaveLength(1);
  });

  test("refuses what the worker would refuse, and writes nothing then", () => {
    const directory = temporary();
    const refused = expect.objectContaining({ code: "request_validation_failed" });
    expect(() => emit(directory, { type: "progress", total: -1 })).toThrow(refused);
    expect(() => emit(directory, { type: "task-event", event_type: "Not Lower", label: "l", summary: "s" })).toThrow(refused);
    expect(() => emit(directory, { type: "progress", metadata: { a: "x".repeat(LIMITS.emitLineBytes) } })).toThrow(refused);
    expect(fs.readdirSync(directory)).toEqual([]);
    expect(() => emit(path.join(directory, "gone"), { type: "progress" })).toThrow(expect.objectContaining({ code: "not_found" }));
  });
});
