import { describe, expect, test } from "bun:test";
import { Counter, Exposition, Histogram } from "../../../src/lib/text/exposition.ts";
import { readExposition, sampleValue } from "./exposition-reader.ts";

describe("a document", () => {
  test("has what a scraper reads, whatever the values", () => {
    const odd = 'quote " backslash \\ line\nend';
    const text = new Exposition()
      .add("a_total", "counter", "Things\nof \\ a kind", [
        [{ kind: odd }, 1],
        [{ kind: "b", more: "" }, 2.5e-9],
      ])
      .one("b", "gauge", "One", 0)
      .one("c", "gauge", "None", null)
      .add("d", "gauge", "Odd numbers", [
        [{ n: "1" }, Number.POSITIVE_INFINITY],
        [{ n: "2" }, Number.NaN],
        [{ n: "3" }, 1e21],
      ])
      .text();
    const samples = readExposition(text);
    expect(samples.map(({ name, labels, value }) => [name, labels, value])).toEqual([
      ["a_total", { kind: odd }, 1],
      ["a_total", { kind: "b", more: "" }, 2.5e-9],
      ["b", {}, 0],
      ["d", { n: "1" }, Number.POSITIVE_INFINITY],
      ["d", { n: "2" }, Number.NaN],
      ["d", { n: "3" }, 1e21],
    ]);
    expect(text).toContain("# HELP a_total Things\\nof \\\\ a kind.\n# TYPE a_total counter\n");
    expect(text).toContain("# TYPE c gauge\n# HELP d");
  });

  test("counts from nothing, by label or without one", () => {
    const [plain, by] = [new Counter(), new Counter("kind", ["x"])];
    by.add("y", 3);
    by.add("y");
    const samples = readExposition(
      new Exposition().add("p_total", "counter", "P", plain.samples()).add("q_total", "counter", "Q", by.samples()).text(),
    );
    expect([
      sampleValue(samples, "p_total"),
      sampleValue(samples, "q_total", { kind: "x" }),
      sampleValue(samples, "q_total", { kind: "y" }),
    ]).toEqual([0, 0, 4]);
  });

  test("has a histogram whose buckets hold what is at most their bound", () => {
    const times = new Histogram([0.1, 1]);
    for (const value of [0.05, 0.1, 0.2, 1, 3]) times.observe(value);
    const samples = readExposition(new Exposition().histogram("t_seconds", "T", times).text());
    expect(samples.map(({ labels, value }) => [labels["le"], value])).toEqual([
      ["0.1", 2],
      ["1", 4],
      ["+Inf", 5],
      [undefined, 4.35],
      [undefined, 5],
    ]);
  });

  test("with nothing counted is a histogram, too", () => {
    const samples = readExposition(new Exposition().histogram("t_seconds", "T", new Histogram([1])).text());
    expect(sampleValue(samples, "t_seconds_count")).toBe(0);
  });
});

describe("what is no document is not read as one", () => {
  test.each([
    ["no end", "# HELP a A.\n# TYPE a gauge\na 1"],
    ["no type", "a 1\n"],
    ["a series twice", "# HELP a A.\n# TYPE a gauge\na 1\na 2\n"],
    ["a label without quotes", "# HELP a A.\n# TYPE a gauge\na{x=1} 1\n"],
    ["a bare quote", '# HELP a A.\n# TYPE a gauge\na{x="""} 1\n'],
    ["a family in pieces", "# HELP a A.\n# TYPE a gauge\na 1\n# HELP b B.\n# TYPE b gauge\na 2\n"],
    ["buckets that shrink", '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n'],
  ])("%s", (_, text) => {
    expect(() => readExposition(text)).toThrow();
  });
});
