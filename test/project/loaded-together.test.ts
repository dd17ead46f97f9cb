import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { loadedTogether } from "../../scripts/loaded-together.ts";
import { removeTree } from "../runner/remove.ts";

const root = path.resolve(import.meta.dir, "../..");

let outdir: string;
let outputs: Bun.BuildMetafile["outputs"];

beforeAll(async () => {
  outdir = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-chunks-"));
  const { metafile } = await Bun.build({
    entrypoints: [path.join(root, "src/main.ts")],
    root,
    outdir,
    target: "bun",
    format: "esm",
    splitting: true,
    metafile: true,
    external: ["cpu-features", "*/sshcrypto.node"],
    plugins: [loadedTogether(path.join(root, "src"))],
  });
  outputs = metafile!.outputs;
});
afterAll(() => removeTree(outdir));

const chunkOf = (module: string): string => Object.keys(outputs).find((name) => module in outputs[name]!.inputs)!;

/** The chunk of a module and all that are loaded before it. */
function loaded(module: string, seen = new Set<string>()): ReadonlySet<string> {
  const add = (name: string): void => {
    if (seen.has(name)) return;
    seen.add(name);
    for (const { path: imported, kind } of outputs[name]!.imports) {
      const other = Object.keys(outputs).find((one) => path.basename(one) === path.basename(imported));
      if (kind === "import-statement" && other !== undefined) add(other);
    }
  };
  add(chunkOf(module));
  return seen;
}

const modulesIn = (chunks: ReadonlySet<string>): string[] => [...chunks].flatMap((name) => Object.keys(outputs[name]!.inputs));

test("what a command needs lies in a few chunks", () => {
  const chunks = new Set([...loaded("src/cli/main.ts"), ...loaded("src/cli/job/status.ts")]);
  expect(modulesIn(chunks).length).toBeGreaterThan(50);
  expect(chunks.size).toBeLessThanOrEqual(12);
});

test("what an answer is checked with adds a few more", () => {
  const before = new Set([...loaded("src/cli/main.ts"), ...loaded("src/cli/job/status.ts")]);
  const added = [...loaded("src/api/answers.ts"), ...loaded("src/api/client/checked-answer.ts")].filter((chunk) => !before.has(chunk));
  expect(new Set(added).size).toBeLessThanOrEqual(6);
});

test.each(["src/execution/shim/main.ts", "src/main.ts"])("%s loads nothing of the command line and no schemas", (module) => {
  const others = modulesIn(loaded(module)).filter(
    (one) => one.startsWith("src/cli/") || one.startsWith("src/api/") || one.includes("valibot"),
  );
  expect(others).toEqual([]);
});
