import { describe, expect, test } from "bun:test";
import { neighboursOf, type Planned, runBeside } from "./neighbours.ts";

const nobody = { alone: false, takes: [] };
const planned = (file: string, neighbours: Partial<Planned["neighbours"]> = {}): Planned => ({
  file,
  neighbours: { ...nobody, ...neighbours },
});

/** Run files that end only when nothing else moves; what ran at once, at each start. */
async function together(files: readonly Planned[], lanes: number): Promise<string[]> {
  const seen: string[] = [];
  const now = new Set<string>();
  await runBeside(files, lanes, async (file) => {
    now.add(file);
    seen.push([...now].join("+"));
    await new Promise((resolve) => setImmediate(resolve));
    now.delete(file);
  });
  return seen;
}

describe("marks", () => {
  test("are lines of their own, and a file may have several", () => {
    const text = 'import a from "a";\n// @takes systemd one boots at a time\n// @takes ports why not\nconst x = "// @alone no";\n';
    expect(neighboursOf("a", text)).toEqual({ alone: false, takes: ["systemd", "ports"] });
    expect(neighboursOf("a", "// @alone it counts processes\n")).toEqual({ alone: true, takes: [] });
    expect(neighboursOf("a", "// it stands alone\n  // @alone so it is\n")).toEqual(nobody);
  });

  test.each(["// @alone", "// @alone  \n", "// @takes", "// @takes systemd", "// @takes systemd \n"])("%p gives no reason", (text) => {
    expect(() => neighboursOf("test/a.test.ts", text)).toThrow(/test\/a\.test\.ts says @\w+, and not why/);
  });
});

describe("files", () => {
  test("run so many at a time, in their order", async () => {
    expect(
      await together(
        ["a", "b", "c", "d"].map((file) => planned(file)),
        2,
      ),
    ).toEqual(["a", "a+b", "b+c", "c+d"]);
    expect(
      await together(
        ["a", "b", "c"].map((file) => planned(file)),
        1,
      ),
    ).toEqual(["a", "b", "c"]);
    expect(await together([], 2)).toEqual([]);
  });

  test("that take the same follow each other, others run meanwhile", async () => {
    const files = [planned("a"), planned("s", { takes: ["systemd"] }), planned("t", { takes: ["x", "systemd"] }), planned("b")];
    const seen = await together(files, 3);
    expect(seen.flatMap((one) => one.split("+")).filter((file) => file === "a").length).toBeGreaterThan(0);
    expect(seen[0]).toBe("s");
    expect(seen.filter((one) => one.includes("s") && one.includes("t"))).toEqual([]);
    expect(seen.some((one) => one.includes("a+b"))).toBe(true);
  });

  test("that stand no neighbour run at last, one by one", async () => {
    const files = [planned("x", { alone: true }), planned("a"), planned("y", { alone: true }), planned("b")];
    expect(await together(files, 2)).toEqual(["a", "a+b", "x", "y"]);
  });

  test("of which one cannot be run end it, with what was wrong", async () => {
    const run = runBeside([planned("a"), planned("b")], 2, (file) =>
      file === "a" ? Promise.reject(new Error("no room")) : Promise.resolve(),
    );
    await expect(run).rejects.toThrow("no room");
  });
});
