import { expect, test } from "bun:test";
import path from "node:path";
import { readSources } from "../project/sources.ts";

const ROOT = path.resolve(import.meta.dir, "../..");
const byFile = new Map(readSources(ROOT, "src").map((source) => [source.file, source]));

/** Packages that are loaded with a module: those that it imports itself, and through others, but not those that it imports when they are needed. */
function packagesOf(start: string): string[] {
  const packages = new Set<string>();
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    // What is not a module of ours is the manifest, which has no imports.
    const { imports = [], text = "" } = byFile.get(file) ?? {};
    for (const { specifier, target, typeOnly } of imports) {
      if (typeOnly || text.includes(`import("${specifier}")`)) continue;
      if (target !== null) visit(target);
      else if (!/^(?:node|bun):/.test(specifier)) packages.add(specifier);
    }
  };
  visit(start);
  return [...packages];
}

// A command is over in the time that a validator or a web framework takes to load.
test("commands that ask the daemon load no package but the one that finds them", () => {
  const verbs = [...byFile.keys()].filter((file) => file.startsWith("src/cli/job/") || file === "src/cli/queue/list.ts");
  expect(verbs.length).toBeGreaterThan(15);
  for (const file of ["src/main.ts", ...verbs]) expect([file, packagesOf(file)]).toEqual([file, []]);
  expect(packagesOf("src/cli/main.ts")).toEqual(["citty"]);
  // That the way of looking sees them where they are.
  expect(packagesOf("src/cli/cluster/add.ts")).toContain("valibot");
  expect(packagesOf("src/cli/desktop/run.ts")).toContain("hono");
});
