import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { LAYERS, RULES, type Rule } from "./rules.ts";
import { importsOf, readSources, scannedByBun, source } from "./sources.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));
const sources = readSources(ROOT, "src");
const others = readSources(ROOT, "test", "bench", "demo");

/** What a rule finds in a small project. */
const found = (rule: Rule, files: Record<string, string>): string[] =>
  rule.check(Object.entries(files).map(([file, text]) => source(file, text)));

describe("src", () => {
  test("is there to be looked at", () => {
    expect(sources.length).toBeGreaterThan(30);
    expect(sources.flatMap(({ imports }) => imports).length).toBeGreaterThan(100);
  });

  for (const rule of Object.values<Rule>(RULES)) {
    test(rule.name, () => {
      expect(rule.check(sources), `${rule.name}, because ${rule.why}`).toEqual([]);
    });
  }

  for (const rule of [RULES.names, RULES.patching, RULES.cycles]) {
    test(`${rule.name}, in tests and benchmarks too`, () => {
      expect(others.length).toBeGreaterThan(10);
      expect(rule.check(others), `${rule.name}, because ${rule.why}`).toEqual([]);
    });
  }

  test("has no import that the reading of imports overlooks", () => {
    for (const { file, text, imports } of sources) {
      const known = imports.map(({ specifier }) => specifier);
      expect(known, file).toEqual(expect.arrayContaining(scannedByBun(text)));
    }
  });

  test("consists of the layers, and every layer is in the table once", () => {
    const parts = fs.readdirSync(path.join(ROOT, "src"));
    const known = LAYERS.flat();
    expect(known).toEqual(expect.arrayContaining(parts));
    expect(new Set(known).size).toBe(known.length);
  });
});

describe("importsOf", () => {
  test("sees every form", () => {
    const text = `
import fs from "node:fs";
import * as v from "valibot";
import type { A } from "./a.ts";
import { type B, b } from "../b.ts";
import {
  type C,
  type D,
} from "./c.ts";
import "./effect.ts";
export type { E } from "./e.ts";
export { f } from './f.ts';
// import { no } from "./comment.ts";
/* import { no } from "./block.ts"; */
const late = await import("./late.ts");
type G = import("./g.ts").G;
`;
    const seen = importsOf("src/x/y.ts", text).map(({ specifier, typeOnly, reExport, target }) => [specifier, typeOnly, reExport, target]);
    expect(seen).toEqual([
      ["node:fs", false, false, null],
      ["valibot", false, false, null],
      ["./a.ts", true, false, "src/x/a.ts"],
      ["../b.ts", false, false, "src/b.ts"],
      ["./c.ts", true, false, "src/x/c.ts"],
      ["./effect.ts", false, false, "src/x/effect.ts"],
      ["./e.ts", true, true, "src/x/e.ts"],
      ["./f.ts", false, true, "src/x/f.ts"],
      ["./late.ts", false, false, "src/x/late.ts"],
      ["./g.ts", false, false, "src/x/g.ts"],
    ]);
  });
});

describe("each rule can fail", () => {
  test.each([
    ["up", { "src/domain/a.ts": 'import { x } from "../lib/x.ts";' }],
    ["sideways", { "src/queue/a.ts": 'import type { X } from "../execution/x.ts";' }],
    ["up, lazily", { "src/api/a.ts": 'const x = await import("../roles/x.ts");' }],
    ["to main", { "src/cli/a.ts": 'import { main } from "../main.ts";' }],
    ["from nowhere", { "src/extra/a.ts": "" }],
  ])("layers: %s", (_what, files) => {
    expect(found(RULES.layers, files)).toHaveLength(1);
  });

  test("layers: down and within is fine", () => {
    const files = { "src/api/a.ts": 'import { x } from "../queue/x.ts";\nimport { y } from "./y.ts";\nimport fs from "node:fs";' };
    expect(found(RULES.layers, files)).toEqual([]);
  });

  test("domain", () => {
    const files = { "src/domain/a.ts": 'import fs from "node:fs";\nimport * as v from "valibot";\nimport { b } from "./b.ts";' };
    expect(found(RULES.domain, files)).toEqual(["src/domain/a.ts imports node:fs"]);
  });

  test.each([
    "const home = process.env.HOME;",
    "const home = Bun.env.HOME;",
    "const home = import.meta.env.HOME;",
    'const home = process["env"].HOME;',
    "const { env, pid } = process;",
    'import { env } from "node:process";\nconsole.log(env);',
  ])("environment: %s", (text) => {
    expect(found(RULES.environment, { "src/api/a.ts": text })).toEqual(["src/api/a.ts"]);
    expect(found(RULES.environment, { "src/config/a.ts": text })).toEqual([]);
  });

  test("environment: a comment about it is fine", () => {
    expect(found(RULES.environment, { "src/api/a.ts": "// not process.env\nexport const env = { a: 1 };\n" })).toEqual([]);
  });

  test("sqlite", () => {
    const text = 'import { Database } from "bun:sqlite";';
    expect(found(RULES.sqlite, { "src/roles/a.ts": text, "src/queue/a.ts": text })).toEqual(["src/roles/a.ts imports bun:sqlite"]);
    expect(found(RULES.sqlite, { "src/cli/a.ts": 'await import("bun:sqlite");' })).toHaveLength(1);
  });

  test("ssh2", () => {
    const text = 'import { Client } from "ssh2";';
    expect(found(RULES.ssh2, { "src/transport/ssh/a.ts": text, "src/transport/session/a.ts": text })).toEqual([
      "src/transport/ssh/a.ts imports ssh2",
    ]);
    expect(found(RULES.ssh2, { "src/cli/a.ts": 'await import("ssh2/lib/agent.js");' })).toHaveLength(1);
  });

  test.each([
    'net.connect(22, "host");',
    'net.createConnection({ host: "host", port: 22 });',
    "tls.connect({ host });",
    "await Bun.connect({ hostname, port });",
    'import { connect } from "node:net";\nconnect(22);',
    "new ProcessStream({ argv });",
    'import { dialTcp } from "../transport/dial-tcp.ts";\nawait dialTcp();',
  ])("dial: %s", (text) => {
    expect(found(RULES.dial, { "src/roles/a.ts": text })).toHaveLength(1);
  });

  test("dial: where it is done, and sockets of this machine", () => {
    const own = {
      "src/transport/dial-tcp.ts": "net.connect({ host, port });",
      "src/transport/dial.ts": 'import { dialTcp } from "./dial-tcp.ts";',
    };
    const local = { "src/roles/a.ts": "net.connect({ path });\nawait Bun.connect({ unix, socket });" };
    expect(found(RULES.dial, { ...own, ...local })).toEqual([]);
  });

  test("exit", () => {
    expect(found(RULES.exit, { "src/cli/a.ts": "process.exit(1);", "src/main.ts": "process.exit(0);" })).toEqual(["src/cli/a.ts"]);
    expect(found(RULES.exit, { "src/cli/a.ts": 'import { exit } from "node:process";\nexit(1);' })).toEqual(["src/cli/a.ts"]);
    expect(found(RULES.exit, { "src/cli/a.ts": "process.exitCode = 1;" })).toEqual([]);
  });

  test("shim: through a module in between", () => {
    const files = {
      "src/execution/shim/main.ts": 'import { a } from "./a.ts";\nimport type { T } from "../big.ts";\nimport fs from "node:fs";',
      "src/execution/shim/a.ts": 'import { x } from "../../lib/x.ts";\nimport * as v from "valibot";\nimport { y } from "../big.ts";',
      "src/lib/x.ts": 'import { z } from "../domain/z.ts";',
    };
    expect(found(RULES.shim, files)).toEqual([
      "src/lib/x.ts imports src/domain/z.ts",
      "src/execution/shim/a.ts imports the package valibot",
      "src/execution/shim/a.ts imports src/execution/big.ts",
    ]);
  });

  test("client", () => {
    const text = 'import { x } from "../execution/x.ts";';
    expect(found(RULES.client, { "src/cli/job.ts": text, "src/cli/emit.ts": text, "src/cli/emit/a.ts": text })).toEqual([
      "src/cli/job.ts imports src/execution/x.ts",
    ]);
    expect(found(RULES.client, { "src/cli/emit.ts": 'import type { S } from "../queue/store.ts";' })).toHaveLength(1);
  });

  test("barrels", () => {
    expect(found(RULES.barrels, { "src/lib/index.ts": "export const a = 1;" })).toHaveLength(1);
    expect(found(RULES.barrels, { "src/lib/all.ts": 'export * from "./a.ts";\nexport type { B } from "./b.ts";' })).toHaveLength(2);
  });

  test.each(["src/lib/utils.ts", "src/core/a.ts", "src/api/helpers/a.ts", "src/cli/support.test.ts"])("names: %s", (file) => {
    expect(found(RULES.names, { [file]: "" })).toEqual([file]);
    expect(found(RULES.names, { "src/cli/corefile.ts": "", "src/lib/utf8.ts": "" })).toEqual([]);
  });

  test("patching", () => {
    // put together here, because this file is looked at too
    const files = { "test/a.test.ts": `${"mock"}.module("../src/a.ts", () => ({}));`, "test/b.test.ts": `${"spy"}On(fs, "openSync");` };
    expect(found(RULES.patching, files)).toEqual(["test/a.test.ts", "test/b.test.ts"]);
  });

  test("cycles, through types too", () => {
    const files = {
      "src/lib/a.ts": 'import { b } from "./b.ts";',
      "src/lib/b.ts": 'import { c } from "./c.ts";',
      "src/lib/c.ts": 'import type { A } from "./a.ts";',
    };
    expect(found(RULES.cycles, files)).toEqual(["src/lib/a.ts -> src/lib/b.ts -> src/lib/c.ts -> src/lib/a.ts"]);
    expect(found(RULES.cycles, { ...files, "src/lib/c.ts": "" })).toEqual([]);
  });
});

test("printing past the command line's own output is found", () => {
  for (const text of ["process.stdout.write(a);", "await Bun.write(Bun.stderr, a);", "console.error(a);", "fs.writeSync(1, a);"]) {
    expect(found(RULES.printing, { "src/roles/a.ts": `${text}\n` })).toEqual(["src/roles/a.ts"]);
    expect(found(RULES.printing, { "src/cli/io.ts": `${text}\n` })).toEqual([]);
  }
  expect(found(RULES.printing, { "src/cli/a.ts": "await io.stdout.write(a);\nfor await (const line of console) use(line);\n" })).toEqual(
    [],
  );
});
