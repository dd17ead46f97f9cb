import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { candidateNames, findBun } from "../../scripts/find-bun.mjs";
import { replaceStubs, wantedStamp } from "../../scripts/setup.mjs";
import { temporaryDirectory } from "../runner/temporary.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));
const AVX2 = "processor : 0\nflags\t\t: fpu sse4_2 avx avx2 bmi2\n";
const OLD = "processor : 0\nflags\t\t: fpu sse4_2 avx\n";

describe("candidateNames", () => {
  const installed = [
    "bun-darwin-aarch64",
    "bun-linux-aarch64",
    "bun-linux-x64-baseline",
    "bun-linux-x64-android",
    "bun-linux-x64-musl",
    "bun-linux-x64",
  ];
  const names = (platform: string, arch: string, cpuinfo: string): string[] => candidateNames(installed, { platform, arch, cpuinfo });

  test("the plain build first, the baseline one last", () => {
    expect(names("linux", "x64", AVX2)).toEqual(["bun-linux-x64", "bun-linux-x64-musl", "bun-linux-x64-baseline"]);
  });

  test("the baseline build first where the processor lacks AVX2", () => {
    expect(names("linux", "x64", OLD)[0]).toBe("bun-linux-x64-baseline");
  });

  test("the package's name for arm64", () => {
    expect(names("darwin", "arm64", "")).toEqual(["bun-darwin-aarch64"]);
    expect(names("linux", "arm64", "")).toEqual(["bun-linux-aarch64"]);
  });

  test("nothing where nothing fits", () => {
    expect(names("win32", "x64", "")).toEqual([]);
  });
});

describe("the launchers of the package bun", () => {
  const installed = (directory: string, launcher: string) => {
    const bin = path.join(directory, "node_modules/bun/bin");
    const own = path.join(directory, "node_modules/@oven/bun-linux-x64/bin/bun");
    for (const parent of [bin, path.dirname(own)]) fs.mkdirSync(parent, { recursive: true });
    fs.copyFileSync(process.execPath, own);
    fs.writeFileSync(path.join(bin, "bun.exe"), launcher, { mode: 0o755 });
    return { own, launcher: path.join(bin, "bun.exe") };
  };

  test("become the executable where they are stubs, and stay what they are otherwise", () => {
    using directory = temporaryDirectory();
    const { own, launcher } = installed(directory.path, 'echo "not installed" >&2; exit 1\n');
    expect(replaceStubs(directory.path, own)).toBe(own);
    expect(Bun.spawnSync([launcher, "--version"]).stdout.toString().trim()).toBe(Bun.version);
    const { ino } = fs.statSync(launcher);
    replaceStubs(directory.path, own);
    expect(fs.statSync(launcher).ino).toBe(ino);
  });

  test("are left alone where the Bun in use came from elsewhere", () => {
    using directory = temporaryDirectory();
    const { launcher } = installed(directory.path, "stub");
    expect(replaceStubs(directory.path, process.execPath)).toBe(process.execPath);
    expect(fs.readFileSync(launcher, "utf8")).toBe("stub");
  });
});

describe("findBun", () => {
  test("finds the pinned executable, not its launcher", () => {
    const bun = findBun(ROOT);
    const wanted = (JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8")) as { devDependencies: { bun: string } })
      .devDependencies.bun;
    expect(Bun.spawnSync([bun, "--version"]).stdout.toString().trim()).toBe(wanted);
  });

  test("takes another Bun where no package is installed", () => {
    using directory = temporaryDirectory();
    fs.writeFileSync(path.join(directory.path, "package.json"), JSON.stringify({ devDependencies: { bun: Bun.version } }));
    expect(findBun(directory.path)).toBe(process.execPath);
  });

  test("passes over a build that does not run", () => {
    using directory = temporaryDirectory();
    const { path: root } = directory;
    fs.writeFileSync(path.join(root, "package.json"), JSON.stringify({ devDependencies: { bun: Bun.version } }));
    const arch = process.arch === "arm64" ? "aarch64" : process.arch;
    const bin = path.join(root, "node_modules/@oven", `bun-${process.platform}-${arch}`, "bin");
    fs.mkdirSync(bin, { recursive: true });
    fs.writeFileSync(path.join(bin, "bun"), "#!/bin/sh\nexit 132\n", { mode: 0o755 });
    expect(findBun(root)).toBe(process.execPath);
  });
});

describe("wantedStamp", () => {
  const stamp = (change: (root: string) => void): string => {
    using directory = temporaryDirectory();
    for (const file of ["package.json", "package-lock.json", "bun.lock"])
      fs.copyFileSync(path.join(ROOT, file), path.join(directory.path, file));
    change(directory.path);
    return wantedStamp(directory.path);
  };

  test("follows both lockfiles and the dependencies, and nothing else", () => {
    const plain = stamp(() => undefined);
    expect(stamp((root) => fs.writeFileSync(path.join(root, "other"), ""))).toBe(plain);
    expect(stamp((root) => fs.appendFileSync(path.join(root, "bun.lock"), "\n"))).not.toBe(plain);
    expect(stamp((root) => fs.appendFileSync(path.join(root, "package-lock.json"), "\n"))).not.toBe(plain);
    expect(stamp((root) => fs.writeFileSync(path.join(root, "package.json"), '{"devDependencies":{}}'))).not.toBe(plain);
  });
});

describe("the scripts of package.json", () => {
  const script = (...args: string[]) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, path.join(ROOT, "scripts/run.mjs"), ...args]);
    return { code: exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
  };

  test("explain themselves, and do nothing else then", () => {
    const { scripts } = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> };
    for (const verb of Object.keys(scripts)) {
      const { code, stdout, stderr } = script(verb, "--help");
      expect([verb, code, stderr]).toEqual([verb, 0, ""]);
      expect(stdout).toStartWith(`usage: npm run ${verb}`);
      expect(script("--help").stdout).toContain(`\n  ${verb} `);
    }
  });

  test("refuse what they do not know in one line", () => {
    expect(script("demo", "--slow")).toEqual({ code: 2, stdout: "", stderr: "demo takes no arguments\n" });
    expect(script("nothing").code).toBe(2);
    for (const file of ["build.ts", "bench/run.ts"]) {
      const { exitCode, stderr } = Bun.spawnSync([process.execPath, path.join(ROOT, file), "--nonsense"]);
      expect([file, exitCode]).toEqual([file, 2]);
      expect(stderr.toString()).toMatch(/^Unknown option '--nonsense'.*\n--help lists what there is\n$/);
    }
  });
});
