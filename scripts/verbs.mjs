const BUILD = ["build.ts", "--if-stale"];
const CLIENT = ["scripts/client-package.ts"];
const bin = (name) => `node_modules/${name}`;

/** Verbs whose steps do not build on each other: all are run, whatever one of them says. */
export const INDEPENDENT = ["check"];

/** Each verb: what Bun runs after setup, in this order. `args` are the user's. */
export const VERBS = {
  setup: () => [],
  build: (args) => [["build.ts", ...args], CLIENT],
  demo: (args) => [BUILD, ["demo/run.ts", ...args]],
  test: (args) => [BUILD, CLIENT, ["test/runner/run.ts", ...(args.length > 0 ? args : ["fast", "rig", "soak", "--reduced"])]],
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

/** Each verb's arguments, null for none, and what it does; lines of its options below. */
export const USAGE = {
  setup: [null, "Install what building and testing need into node_modules."],
  build: [
    "[--outdir DIR] [--target TARGET] [--if-stale] [--digest] [--release] [--releases-url URL]",
    "Build the executable, dist/clio-relay, and the package for other programs, dist/client.",
    "--outdir DIR          put it there",
    "--target TARGET       for another platform, by Bun's name of it, such as bun-linux-arm64",
    "--if-stale            only where the sources have changed since",
    "--digest              print its size and SHA-256",
    "--release             everything that is published, into dist/release",
    "--releases-url URL    with --release: the page that the installer asks",
  ],
  demo: [null, "Show that a job survives its worker, and where there is an sshd, the link, and check every claim."],
  test: [
    "[fast|rig|soak|project …] [--reduced] [--again] [FILE …]",
    "Run the tests; without arguments all suites, soak reduced.",
    "--reduced             the soak suite in a tenth of its size, for 15 minutes at most",
    "--again               a file that failed runs once more by itself; what failed once only is told as unsteady",
  ],
  soak: ["[--reduced]", "Run the soak suite.", "--reduced             in a tenth of its size"],
  bench: [
    "[ROW …] [--directory DIR] [--scale N]",
    "Measure, and print one table.",
    "--directory DIR       where durable work is measured",
    "--scale N             size of the work; 1 without it",
  ],
  check: [null, "Formatting, lint, types, unused code, and the rules of the project."],
  fix: ["[PATH …]", "Format, and mend what lint can mend."],
};

/** The help of one verb, or of all where none is named. */
export function usage(verb) {
  if (verb === undefined) {
    const widest = Math.max(...Object.keys(USAGE).map((name) => name.length));
    const lines = Object.entries(USAGE).map(([name, [, does]]) => `  ${name.padEnd(widest)}  ${does}`);
    return [
      "usage: npm run VERB -- [arguments]        (or: bun run VERB [arguments])",
      "",
      ...lines,
      "",
      "--help after a verb lists its arguments",
    ].join("\n");
  }
  const [takes, does, ...options] = USAGE[verb];
  const first = `usage: npm run ${verb}${takes === null ? "" : ` -- ${takes}`}`;
  return [first, "", does, ...(options.length === 0 ? [] : ["", ...options.map((line) => `  ${line}`)])].join("\n");
}
