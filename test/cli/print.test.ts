import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Lines } from "../../src/cli/follow/log-lines.ts";
import { progressBar, progressLine, progressText } from "../../src/cli/print/progress-text.ts";
import { agoText, bytesText, durationText } from "../../src/cli/print/quantities.ts";
import { jsonText, oneLine, SafeStream, shownText } from "../../src/cli/print/safe-text.ts";
import { styleFor } from "../../src/cli/print/style.ts";
import { cut, printTable } from "../../src/cli/print/table.ts";
import { readEnvironment } from "../../src/config/environment.ts";
import { safeText } from "../../src/lib/text/safe-text.ts";
import { Captured } from "./captured-io.ts";

describe("text for a terminal", () => {
  test("controls are shown, layout stays", () => {
    expect(safeText("a\x1b[31mred\x07\x00\x7f\tb\r\nc")).toBe("a^[[31mred^G^@^?\tb\r\nc");
    expect(safeText("\u009b31m \u202eevil")).toBe("\\u009b31m \\u202eevil");
    expect(oneLine("a\nb\rc\td")).toBe("a\\nb\\rc\\td");
  });

  test("nothing that a terminal obeys is left", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(safeText(text)).not.toMatch(/(?![\t\n\r])\p{Cc}/u);
        expect(oneLine(text)).not.toMatch(/\p{Cc}/u);
      }),
    );
  });

  test("whatever a verb hands on, a terminal obeys nothing but our own colours and erasing", () => {
    expect(shownText("\r\x1b[K\x1b[1mbold\x1b[0m \x1b]0;owned\x07 \x1b[2J\x1b[2K \x1b[31;5m \x9b31m\n")).toBe(
      "\r\x1b[K\x1b[1mbold\x1b[0m ^[]0;owned^G ^[[2J^[[2K ^[[31;5m \\u009b31m\n",
    );
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(shownText(text.replaceAll("\x1b", ""))).not.toMatch(/(?![\t\n\r])\p{Cc}/u);
        expect(shownText(`\x1b]${text.replaceAll("\x1b[", "")}`)).not.toContain("\x1b");
      }),
    );
  });

  test("JSON means the same, and holds nothing that a terminal obeys", () => {
    expect(jsonText({ name: "é\x7f\u009b31m\u202eevil\n\x1b" })).toBe('{"name":"é\\u007f\\u009b31m\\u202eevil\\n\\u001b"}');
    fc.assert(
      fc.property(fc.jsonValue(), fc.string({ unit: "binary" }), fc.constantFrom(0, 2), (value, text, indent) => {
        const said = jsonText([value, text], indent);
        expect(said).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
        expect(JSON.parse(said)).toEqual(JSON.parse(JSON.stringify([value, text])));
      }),
    );
  });

  test("a stream of it writes nothing over, however it is cut", () => {
    const shown = (...pieces: string[]) => {
      const safe = new SafeStream();
      return pieces.map((piece) => safe.push(piece)).join("") + safe.end();
    };
    expect(shown("10%\r20%\r\nsecret\rx\x1b[2K\r")).toBe("10%\n20%\r\nsecret\nx^[[2K\n");
    expect(shown("a\r", "\nb\r", "c")).toBe("a\r\nb\nc");
    fc.assert(
      fc.property(fc.array(fc.constantFrom("a", "\r", "\n", "\r\n", "\x07")), (pieces) => {
        expect(shown(...pieces)).toBe(shown(pieces.join("")));
        expect(shown(...pieces)).not.toMatch(/\r(?!\n)/);
      }),
    );
  });

  test("other text is as it was", () => {
    expect(safeText("日本語 ünïcode 🚀 <&>'\"")).toBe("日本語 ünïcode 🚀 <&>'\"");
  });
});

describe("lines of output", () => {
  test("come when they end, and the last at the end", () => {
    const lines = new Lines("overwrite");
    expect(lines.push("a\nb")).toEqual(["a"]);
    expect(lines.open).toBe("b");
    expect(lines.push("c\n\nd")).toEqual(["bc", ""]);
    expect(lines.end()).toBe("d");
    expect(lines.end()).toBeNull();
  });

  test("a bar that overwrites itself is one line, in its last state", () => {
    const lines = new Lines("overwrite");
    expect(lines.push("10%\r20%\r")).toEqual([]);
    expect(lines.open).toBe("20%");
    expect(lines.push("100%\r\ndone\r\n")).toEqual(["100%", "done"]);
  });

  test("one that never ends is shown in pieces, and nothing of it is lost", () => {
    const lines = new Lines("overwrite");
    const shown = Array.from({ length: 100 }, () => lines.push("x".repeat(1_000))).flat();
    expect(shown.length).toBeGreaterThan(3);
    expect(shown.join("").length + (lines.end() ?? "").length).toBe(100_000);
  });

  test("where nobody looks on, each state of a bar is a line", () => {
    const lines = new Lines("end-lines");
    expect(lines.push("\r10%\r20%\r")).toEqual(["10%"]);
    expect(lines.open).toBe("20%");
    expect(lines.push("100%\r\ndone\r\n\r\nlast\rwords")).toEqual(["20%", "100%", "done", "", "last"]);
    expect(lines.end()).toBe("words");
  });

  test("where nobody looks on, no text is lost", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("a", "bc", "\n", "\r", "\r\n", "é")), (pieces) => {
        const lines = new Lines("end-lines");
        const shown = [...pieces.flatMap((text) => lines.push(text)), lines.end() ?? ""].join("");
        expect(shown).toBe(pieces.join("").replaceAll(/[\r\n]/g, ""));
      }),
    );
  });

  test.each(["overwrite", "end-lines"] as const)("however the text is cut, the lines are the same (%s)", (returns) => {
    const piece = fc.constantFrom("a", "bc", "\n", "\r", "\r\n", "é");
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const whole = new Lines(returns);
        const once = [...whole.push(pieces.join("")), whole.end()];
        const cutUp = new Lines(returns);
        const many = [...pieces.flatMap((text) => cutUp.push(text)), cutUp.end()];
        expect(many).toEqual(once);
      }),
    );
  });
});

test("quantities", () => {
  expect([0, 0.04, 9.96, 59.6, 61, 3_600, 90_000].map(durationText)).toEqual([
    "0.0s",
    "0.0s",
    "10s",
    "1m 00s",
    "1m 01s",
    "1h 00m",
    "1d 01h",
  ]);
  expect([0, 1, 1_023, 1_024, 1_572_864, 2 ** 40].map(bytesText)).toEqual(["0 B", "1 B", "1023 B", "1.0 KiB", "1.5 MiB", "1.0 TiB"]);
  expect(agoText("2026-01-01T00:00:00.000Z", Date.parse("2026-01-01T00:01:05.000Z"))).toBe("1m 05s ago");
  expect(agoText("2026-01-01T00:00:00.000Z", 0)).toBe("0.0s ago");
});

test("progress", () => {
  const report = { label: "epoch", current: 3, total: 10, unit: "steps", message: "warm" };
  expect(progressText(report)).toBe("epoch 3/10 steps (30%) warm");
  expect(progressText({ ...report, total: null, unit: null, message: null })).toBe("epoch 3");
  expect(progressText({ ...report, current: 12 })).toBe("epoch 12/10 steps (120%) warm");
  expect(progressLine({ ...report, current: 12 }, 10)).toBe("[##########] 120% 12/10 steps epoch warm");
  expect(progressBar(0.5, 10)).toBe("[#####-----]");
  expect(progressBar(1, 4)).toBe("[####]");
  expect(progressLine(report, 10)).toBe("[###-------] 30% 3/10 steps epoch warm");
  expect(progressLine({ ...report, total: null, message: null }, 10)).toBe("3 steps epoch");
});

describe("a table", () => {
  const rows = [
    ["a", 1, "日本"],
    ["long\nname", null, "x".repeat(100)],
  ];
  const style = styleFor(new Captured(), readEnvironment({}, "/"));

  test("has columns and a header on a terminal, and fits", async () => {
    const output = new Captured(true, 40);
    await printTable(output, style, ["NAME", "N", "WHAT"], rows);
    const lines = output.text.trimEnd().split("\n");
    expect(lines[0]).toBe("NAME        N  WHAT");
    expect(lines[1]).toBe("a           1  日本");
    expect(lines[2]).toMatch(/^long\\nname {2}- {2}x+…$/);
    for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(40);
  });

  test("leaves out what can be spared before it cuts the last column, and cuts no other", async () => {
    const wide = [["job_0123456789", "command", "workload", "a name that is long"]];
    const shown = async (columns: number) => {
      const output = new Captured(true, columns);
      await printTable(output, style, ["JOB", { spare: "KIND" }, { spare: "LANE" }, "NAME"], wide);
      return output.text.trimEnd().split("\n").at(-1);
    };
    expect(await shown(80)).toBe("job_0123456789  command  workload  a name that is long");
    expect(await shown(45)).toBe("job_0123456789  command  a name that is long");
    expect(await shown(40)).toBe("job_0123456789  a name that is long");
    expect(await shown(32)).toBe("job_0123456789  a name that is …");
    expect(await shown(20)).toBe("job_0123456789  a n…");
    expect(await shown(16)).toBe("job_0123456789  a name that is …");
    const output = new Captured(false, 10);
    await printTable(output, style, ["JOB", { spare: "KIND" }, { spare: "LANE" }, "NAME"], wide);
    expect(output.text).toBe("job_0123456789\tcommand\tworkload\ta name that is long\n");
  });

  test("cuts a path at its front", async () => {
    const output = new Captured(true, 36);
    await printTable(
      output,
      style,
      ["ID", { spare: "SIZE" }, { keepsEnd: "NAME" }],
      [["artifact_0123456789", "12 KiB", "a/日本/result.csv"]],
    );
    expect(output.text.trimEnd().split("\n").at(-1)).toBe("artifact_0123456789  …本/result.csv");
    const narrow = new Captured(true, 22);
    await printTable(narrow, style, ["ID", { keepsEnd: "NAME" }], [["artifact_0123456789", "a/long/way/to/result.csv"]]);
    expect(narrow.text.trimEnd().split("\n").at(-1)).toBe("artifact_0123456789  …y/to/result.csv");
  });

  test("is tab-separated elsewhere, one line a row, nothing cut", async () => {
    const output = new Captured();
    await printTable(output, style, ["NAME", "N", "WHAT"], rows);
    expect(output.text).toBe(`a\t1\t日本\nlong\\nname\t-\t${"x".repeat(100)}\n`);
  });

  test("without rows has no header", async () => {
    const output = new Captured(true);
    await printTable(output, style, ["NAME", "N"], []);
    expect(output.text).toBe("");
  });

  test("cutting counts cells", () => {
    expect(cut("日本語", 5)).toBe("日本…");
    expect(cut("abc", 3)).toBe("abc");
  });
});

test("colours only on a terminal that wants them", () => {
  const bold = (terminal: boolean, variables: Record<string, string>) =>
    styleFor(new Captured(terminal), readEnvironment(variables, "/")).bold("x");
  expect(bold(true, {})).toBe("\x1b[1mx\x1b[0m");
  expect(bold(false, {})).toBe("x");
  expect(bold(true, { NO_COLOR: "1" })).toBe("x");
  expect(bold(true, { NO_COLOR: "" })).toBe("\x1b[1mx\x1b[0m");
  expect(bold(true, { TERM: "dumb" })).toBe("x");
});
