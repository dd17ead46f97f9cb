const BUILD = ["build.ts", "--if-stale"];
const bin = (name) => `node_modules/${name}`;

/** Each verb: what Bun runs after setup, in this order, up to the first failure. `args` are the user's. */
export const VERBS = {
  setup: () => [],
  build: (args) => [["build.ts", ...args]],
  demo: (args) => [BUILD, ["demo/run.ts", ...args]],
  test: (args) => [BUILD, ["test/runner/run.ts", ...(args.length > 0 ? args : ["fast", "rig", "soak", "--reduced"])]],
  soak: (args) => [BUILD, ["test/runner/run.ts", "soak", ...args]],
  bench: (args) => [BUILD, ["bench/run.ts", ...args]],
  check: () => [
    [bin("@biomejs/biome/bin/biome"), "ci", "."],
    [bin("typescript/bin/tsc"), "--noEmit"],
    [bin("knip/bin/knip.js")],
    ["test/runner/run.ts", "project"],
  ],
  fix: (args) => [[bin("@biomejs/biome/bin/biome"), "check", "--write", ...(args.length > 0 ? args : ["."])]],
};
