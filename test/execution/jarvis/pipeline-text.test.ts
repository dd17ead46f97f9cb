import { describe, expect, test } from "bun:test";
import { isRelayError } from "../../../src/domain/errors.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { PipelineText } from "../../../src/execution/jarvis/pipeline-text.ts";

/** Why a text is refused, as programs see it. */
function refusal(text: string): Readonly<Record<string, unknown>> {
  try {
    new PipelineText(text);
  } catch (error) {
    if (isRelayError(error, "jarvis_submission_refused")) return error.data;
    throw error;
  }
  throw new Error("it was taken");
}

const DEMO = `# what it is for
name: demo   # the name
pkgs:
  - pkg_type: demo.counter
    pkg_name: c1
    steps: 4   # four
    deck: ./in.lj
    yes: no
    limit: 00:05:00
  - {pkg_type: demo.counter, pkg_name: c2}
scheduler:
  name: slurm
  time: "00:05:00"
`;

describe("a pipeline's text", () => {
  test("says its name, its packages with their settings, and its scheduler", () => {
    const { name, packages, scheduler } = new PipelineText(DEMO);
    const ownFiles = { stdout: false, stderr: false };
    expect({ name, scheduler }).toEqual({
      name: "demo",
      scheduler: { name: "slurm", jobName: null, options: ["--time=00:05:00"], ownFiles },
    });
    expect(packages.map(({ id, type }) => [id, type])).toEqual([
      ["c1", "demo.counter"],
      ["c2", "demo.counter"],
    ]);
    expect(packages[0]!.settings).toMatchObject({ steps: 4, deck: "./in.lj" });
  });

  test("is written back byte for byte", () => {
    expect(new PipelineText(DEMO).toString()).toBe(DEMO);
  });

  test("changes where a value is put in, and nowhere else", () => {
    const pipeline = new PipelineText(DEMO);
    pipeline.set("c1", "deck", '/spool/a "b": #c');
    pipeline.set("c2", "deck", "/spool/d");
    pipeline.setScheduler("exclusive", true);
    const text = pipeline.toString();
    expect(text).toBe(
      DEMO.replace("./in.lj", '"/spool/a \\"b\\": #c"')
        .replace("{pkg_type", '{ deck: "/spool/d",pkg_type')
        .replace("  name: slurm", "  exclusive: true\n  name: slurm"),
    );
    const again = new PipelineText(text);
    expect(again.packages.map(({ settings }) => settings["deck"])).toEqual(['/spool/a "b": #c', "/spool/d"]);
  });

  test("takes the last of equal keys, as JARVIS does", () => {
    const pipeline = new PipelineText("name: a\nname: b\npkgs:\n- pkg_type: x.y\n  deck: 1\n  deck: 2\n");
    pipeline.set("y", "deck", "/f");
    expect(pipeline.name).toBe("b");
    expect(pipeline.toString()).toContain('deck: 1\n  deck: "/f"\n');
  });

  test("refuses to cut out a value that others refer to", () => {
    const pipeline = new PipelineText("name: a\nx: &x ./f\npkgs:\n- pkg_type: x.y\n  deck: *x\n");
    expect(() => pipeline.set("y", "deck", "/f")).toThrow("alias");
  });
});

describe("refused is", () => {
  test("what is no YAML, with line and column", () => {
    expect(refusal("name: x\npkgs:\n  - pkg_type: a.b\n    c: [1\n")).toMatchObject({ cause: "yaml", line: 5, column: 1 });
    expect(refusal("name: a\nb:\n\tc: 1\n")).toMatchObject({ cause: "yaml", line: 3, column: 1 });
    expect(refusal("name: a\n---\nname: b\n")).toMatchObject({ cause: "yaml", line: 2 });
  });

  test("aliases that explode, or lead nowhere", () => {
    const level = (name: string, of: string) => `${name}: &${name} [${Array(9).fill(of).join(",")}]\n`;
    expect(refusal(`name: x\n${level("a", "1")}${level("b", "*a")}${level("c", "*b")}${level("d", "*c")}`)).toEqual({ cause: "yaml" });
    expect(refusal("name: x\na: *b\n")).toEqual({ cause: "yaml", line: 2, column: 4 });
    expect(refusal("name: x\na:\n  <<: *b\n")).toEqual({ cause: "yaml", line: 3, column: 7 });
    expect(refusal("name: x\na: &a\n  b: [*a]\n")).toEqual({ cause: "yaml", line: 3, column: 7 });
    expect(refusal("name: x\na: [*b]\nc: &b 1\n")).toEqual({ cause: "yaml", line: 2, column: 5 });
    expect(new PipelineText("name: x\na: &a 1\nb: [*a, *a]\n&k c: *k\n").name).toBe("x");
  });

  test("what cannot be merged, is no key, and tags that JARVIS does not load", () => {
    expect(refusal("name: x\na:\n  <<: 5\n")).toMatchObject({ cause: "yaml" });
    expect(refusal("name: x\n? [a, b]\n: c\n")).toEqual({ cause: "yaml", line: 2, column: 3 });
    expect(refusal("name: x\na: !foo b\n")).toEqual({ cause: "yaml", line: 2, column: 4 });
    expect(refusal("name: !!python/object/apply:os.system [id]\n")).toEqual({ cause: "yaml", line: 1, column: 7 });
    expect(new PipelineText("name: x\na: !!str 1\nb: !!set {c, d}\n").name).toBe("x");
  });

  test("what is too long or too deep, before it is parsed", () => {
    expect(refusal(`name: x\na: "${"y".repeat(10 * 1024 * 1024)}"`)).toEqual({ cause: "pipeline" });
    expect(refusal("[".repeat(LIMITS.pipelineBytes))).toEqual({ cause: "yaml" });
    expect(refusal("- ".repeat(LIMITS.pipelineBytes / 2))).toEqual({ cause: "yaml" });
    expect(refusal(`name: x\nb:\n${" ".repeat(300)}- a`)).toEqual({ cause: "yaml" });
  });

  test.each([
    ["no mapping", "- a\n"],
    ["nothing", ""],
    ["no name", "pkgs: []\n"],
    ["a name for a shell", "name: $(reboot)\n"],
    ["a name that leads elsewhere", "name: ../x\n"],
    ["a package type for a shell", "name: a\npkgs: [{pkg_type: 'a;b'}]\n"],
    ["a package name for a shell", "name: a\npkgs: [{pkg_type: a.b, pkg_name: '`id`'}]\n"],
    ["packages that are no list", "name: a\npkgs: {a: 1}\n"],
    ["packages that are nothing", "name: a\npkgs:\n"],
    ["a package without a type", "name: a\npkgs: [{pkg_name: b}]\n"],
    ["a pipeline test", "config: {name: a}\nvars: {}\n"],
    ["a suite of tests", "experiments: []\n"],
  ])("%s", (_what, text) => {
    expect(refusal(text)).toMatchObject({ cause: "pipeline" });
  });

  test("two packages of one name, and a scheduler that JARVIS does not know", () => {
    expect(refusal("name: a\npkgs: [{pkg_type: a.b}, {pkg_type: c.b}]\n")).toEqual({ cause: "pipeline", package: "b" });
    expect(refusal("name: a\nscheduler: {name: pbs}\n")).toEqual({ cause: "scheduler" });
    expect(new PipelineText("name: a\nscheduler: {}\n").scheduler).toBeNull();
  });
});
