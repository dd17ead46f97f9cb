const BUILD = ["build.ts", "--if-stale"];
const bin = (name) => `node_modules/${name}`;

/** Verbs whose steps do not build on each other: all are run, whatever one of them says. */
export const INDEPENDENT = ["check"];

/** Each verb: what Bun runs after setup, in this order. `args` are the user's. */
export const VERBS = {
  setup: () => [],
  build: (args) => [["build.ts", ...args]],
  demo: (args) => [BUILD, ["demo/run.ts", ...args]],
  test: (args) => [BUILD, ["test/runner/run.ts", ...(args.length > 0 ? args : ["fast", "rig", "soak", "--reduced"])]],
  soak: (args) => [BUILD, ["test/runner/run.ts", "soak", ...args]],
  bench: (args) => [BUILD, ["bench/run.ts", ...args]],
  check: () => [
    // Biome colours its output on CI, where nobody sees colours.
    [bin("@biomejs/biome/bin/biome"), "ci", ...(process.stdout.isTTY ? [] : ["--colors=off"]), "."],
    [bin("typescript/bin/tsc"), "--noEmit"],
    [bin("knip/bin/knip.js")],
    // What only tests use is dead, too.
    [bin("knip/bin/knip.js"), "--production"],
    ["test/runner/run.ts", "project"],
  ],
  fix: (args) => [[bin("@biomejs/biome/bin/biome"), "check", "--write", ...(args.length > 0 ? args : ["."])]],
};
