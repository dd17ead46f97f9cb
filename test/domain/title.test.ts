import { describe, expect, test } from "bun:test";
import type { JobSubmission } from "../../src/domain/job.ts";
import { givenTitle, titleOf, workTitle } from "../../src/domain/title.ts";

const argv = (...words: string[]) => titleOf({ kind: "command", spec: { argv: words } } as unknown as JobSubmission);
const script = (text: string) => titleOf({ kind: "command", spec: { script: text } } as unknown as JobSubmission);

describe("titleOf", () => {
  test("quotes what a shell would need quoted, and nothing else", () => {
    expect(argv("python3", "train.py", "--lr=1e-3", "/data/été")).toBe("python3 train.py --lr=1e-3 /data/été");
    expect(argv("sh", "-c", "echo $HOME; exit", "")).toBe("sh -c 'echo $HOME; exit' ''");
    expect(argv("echo", "it's")).toBe("echo 'it'\\''s'");
  });

  test("shows control characters, so that a title is one line and moves no cursor", () => {
    expect(argv("printf", "b\t\u001b[2Jc\u0000")).toBe("printf 'b\\t\\x1b[2Jc\\x00'");
  });

  test("joins lines, and begins with the first word", () => {
    expect(argv("sh", "-c", "\n  cd /data\n\n  make -j 4 \n")).toBe("sh -c 'cd /data ↵ make -j 4'");
    expect(argv("sh", "-c", "\n".repeat(100_000))).toBe("sh -c ''");
  });

  test("is cut where it is too long, between characters", () => {
    const title = argv("echo", "🚀".repeat(600));
    expect(title.length).toBeLessThanOrEqual(512);
    expect(title.endsWith("…")).toBe(true);
    expect(title.isWellFormed()).toBe(true);
    expect(argv(...Array.from({ length: 4_000 }, () => "word")).length).toBe(512);
  });

  test("of a script is its first line that says something", () => {
    expect(script("#!/bin/bash\n\n  # set up\n  module load gcc\nsrun x\n")).toBe("module load gcc");
    expect(script("#!/bin/bash\n# nothing else")).toBe("#!/bin/bash");
    expect(script("\n")).toBe("script");
  });

  test("of a script whose file is named is that name", () => {
    const named = (script_name: unknown) =>
      titleOf({ kind: "command", spec: { script: "make\n" }, metadata: { script_name } } as unknown as JobSubmission);
    expect(named("prepare.sh")).toBe("prepare.sh");
    expect(named("a\u001b\n.sh")).toBe("a\\x1b\\n.sh");
    expect([named(""), named(7)]).toEqual(["make", "make"]);
  });

  test("is the one that its submitter gave it, where there is one", () => {
    const named = (title: unknown) => ({ kind: "command", spec: { argv: ["make"] }, metadata: { title } }) as unknown as JobSubmission;
    expect(titleOf(named(" first\u001b\ntry "))).toBe("first\\x1b\\ntry");
    expect([workTitle(named("first")), givenTitle(named("first"))]).toEqual(["make", "first"]);
    expect(titleOf(named("x".repeat(5_000))).length).toBe(512);
    for (const none of ["", "  ", 7, null, undefined]) expect([titleOf(named(none)), givenTitle(named(none))]).toEqual(["make", null]);
  });

  test("of other kinds names their subject", () => {
    const of = (kind: string, spec: object) => titleOf({ kind, spec } as unknown as JobSubmission);
    expect(of("jarvis", { pipeline_name: "ior" })).toBe("ior");
    const pipeline = (pipeline_yaml: string) => of("jarvis", { pipeline_yaml });
    expect(["name: x", "# two\n\"name\": a\nname: 'y.1'  # it\npkgs: []\n", "pkgs:\n- name: z\n\r\nname:\tw\r\n"].map(pipeline)).toEqual([
      "x",
      "y.1",
      "w",
    ]);
    for (const nameless of ["", "pkgs:\n  name: x\n", "name: >\n  x\n", "name: a b\n", "name: 'x\n", "{name: x}"])
      expect(pipeline(nameless)).toBe("pipeline");
    expect(of("remote_agent", { prompt_path: "/p/ask.md" })).toBe("/p/ask.md");
    expect(of("mcp_call", { server: "files", tool: "read", operation: "tools/call" })).toBe("files read");
    expect(of("mcp_call", { server: "files", tool: null, operation: "tools/list" })).toBe("files tools/list");
    expect(of("input_ingest", { logical_name: "mesh.bin" })).toBe("mesh.bin");
  });
});
