import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { version } from "../../package.json";
import { sha256Hex } from "../../src/lib/digest.ts";
import { EXECUTABLE } from "../runner/relay.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));
const directories = temporaryDirectories();
const NAME = path.basename(EXECUTABLE);

function bun(args: string[], cwd: string) {
  const result = Bun.spawnSync([process.execPath, ...args], { cwd, stdout: "pipe", stderr: "pipe" });
  return { code: result.exitCode, stdout: result.stdout.toString(), stderr: result.stderr.toString() };
}

/** A project with the real build script and a program of its own. */
function project(main: string, files: Record<string, string> = {}): string {
  const root = directories();
  fs.mkdirSync(path.join(root, "scripts"));
  for (const file of [
    "build.ts",
    "scripts/options.ts",
    "scripts/loaded-together.ts",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
  ]) {
    fs.copyFileSync(path.join(ROOT, file), path.join(root, file));
  }
  fs.mkdirSync(path.join(root, "src"));
  for (const [file, text] of Object.entries({ "main.ts": main, ...files })) fs.writeFileSync(path.join(root, "src", file), text);
  return root;
}

describe("the build", () => {
  test("gives the same bytes in another directory, from another directory", () => {
    const places = [
      { outdir: directories(), cwd: ROOT },
      { outdir: path.join(directories(), "one", "two"), cwd: directories() },
    ];
    const digests = places.map(({ outdir, cwd }) => {
      const built = bun([path.join(ROOT, "build.ts"), "--outdir", outdir, "--digest"], cwd);
      expect(built.stderr).toBe("");
      const bytes = fs.readFileSync(path.join(outdir, NAME));
      expect(built.stdout).toContain(sha256Hex(bytes));
      expect(built.stdout).toContain(`${bytes.length} bytes`);
      return sha256Hex(bytes);
    });
    expect(new Set(digests).size).toBe(1);
  });

  test("gives other bytes for another program", () => {
    const digests = ["console.log(1);", "console.log(2);"].map((main) => {
      const root = project(main);
      expect(bun(["build.ts"], root)).toMatchObject({ code: 0, stderr: "" });
      return sha256Hex(fs.readFileSync(path.join(root, "dist", NAME)));
    });
    expect(new Set(digests).size).toBe(2);
  });

  test("is done again when a source has changed, and only then", () => {
    const root = project('import { text } from "./text.ts";\nconsole.log(text);\n', { "text.ts": 'export const text = "one";' });
    const build = () => bun(["build.ts", "--if-stale"], root).stdout;
    const run = () => Bun.spawnSync([path.join(root, "dist", NAME)]).stdout.toString();
    expect(build()).toContain("built");
    expect(build()).toBe("");
    expect(run()).toBe("one\n");
    fs.writeFileSync(path.join(root, "src/text.ts"), 'export const text = "two";');
    expect(build()).toContain("built");
    expect(run()).toBe("two\n");
  });

  test("refuses a native addon, and leaves nothing", () => {
    const root = project('import addon from "./addon.node";\nconsole.log(addon);\n', { "addon.node": "not really" });
    const built = bun(["build.ts"], root);
    expect(built.code).toBe(1);
    expect(built.stderr).toContain("native addons would be embedded: src/addon.node");
    expect(fs.readdirSync(path.join(root, "dist"))).toEqual([]);
  });
});

describe("the executable", () => {
  test("knows its version", () => {
    expect(Bun.spawnSync([EXECUTABLE, "--version"]).stdout.toString()).toBe(`${version}\n`);
  });

  test("does not read .env, bunfig.toml, package.json or tsconfig.json of the directory where it is started", () => {
    const directory = directories();
    fs.writeFileSync(path.join(directory, ".env"), `CLIO_RELAY_HOME=${path.join(directory, "from-dotenv")}\nFROM_DOTENV=yes\n`);
    fs.writeFileSync(path.join(directory, "bunfig.toml"), 'preload = ["./preload.ts"]\n');
    fs.writeFileSync(path.join(directory, "preload.ts"), 'require("node:fs").writeFileSync("preloaded", "");\n');
    fs.writeFileSync(path.join(directory, "package.json"), "{ not json");
    fs.writeFileSync(path.join(directory, "tsconfig.json"), "{ not json");

    // A program that is built in the ordinary way falls for it, so the trap works.
    const program = path.join(directories(), "program.ts");
    fs.writeFileSync(program, "console.log(process.env.FROM_DOTENV);\n");
    expect(bun(["build", "--compile", program, "--outfile", `${program}.exe`], path.dirname(program)).code).toBe(0);
    expect(Bun.spawnSync([`${program}.exe`], { cwd: directory }).stdout.toString()).toBe("yes\n");
    expect(fs.existsSync(path.join(directory, "preloaded"))).toBe(true);
    fs.rmSync(path.join(directory, "preloaded"));

    const home = directories();
    const started = Bun.spawnSync([EXECUTABLE, "init"], { cwd: directory, env: { HOME: home, PATH: process.env.PATH ?? "" } });
    expect(started.exitCode, started.stderr.toString()).toBe(0);
    expect(fs.existsSync(path.join(directory, "from-dotenv"))).toBe(false);
    expect(fs.existsSync(path.join(directory, "preloaded"))).toBe(false);
    expect(fs.existsSync(path.join(home, ".config/clio-relay"))).toBe(true);
  });
});
