import fs from "node:fs";
import path from "node:path";
import { onPath, output, Problem } from "./child.mjs";

/**
 * Whether this machine's processor is known to lack AVX2. Bun's ordinary build for x64 needs it; where it is missing a
 * `-baseline` build is tried first.
 */
function lacksAvx2(cpuinfo) {
  const flags = /^flags\s*:(.*)$/m.exec(cpuinfo);
  return flags !== null && !flags[1].split(" ").includes("avx2");
}

function readCpuinfo() {
  try {
    return fs.readFileSync("/proc/cpuinfo", "utf8");
  } catch {
    return "";
  }
}

/** Names of the packages that may hold a Bun for this platform, best first. */
export function candidateNames(installed, { platform, arch, cpuinfo }) {
  const os = platform === "win32" ? "windows" : platform;
  const prefixes = [`bun-${os}-${arch}`, ...(arch === "arm64" ? [`bun-${os}-aarch64`] : [])];
  const baselineFirst = lacksAvx2(cpuinfo);
  const rank = (name) => (name.endsWith("-baseline") === baselineFirst ? 0 : 1);
  return installed
    .filter((name) => prefixes.some((prefix) => name === prefix || name.startsWith(`${prefix}-`)) && !name.endsWith("-android"))
    .sort((a, b) => rank(a) - rank(b) || a.length - b.length);
}

function installedPackages(root) {
  try {
    return fs.readdirSync(path.join(root, "node_modules", "@oven"));
  } catch {
    return [];
  }
}

/** A Bun that came from elsewhere: the one that runs this, the one that started it, or one on PATH. */
export function foreignBun() {
  const starter = process.env.npm_execpath ?? "";
  const candidates = [
    process.versions.bun === undefined ? null : process.execPath,
    /^bun(\.exe)?$/.test(path.basename(starter)) ? starter : null,
    onPath("bun"),
  ];
  return candidates.find((candidate) => candidate !== null && output(candidate, ["--version"]) !== null) ?? null;
}

/**
 * Path of the Bun that builds and tests: the pinned package's own executable (its launcher is a stub where install
 * scripts are off), else one that is there anyway. Which of several builds fits the C library and the processor is found by
 * running them.
 */
export function findBun(root) {
  const wanted = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8")).devDependencies.bun;
  const { platform, arch } = process;
  const names = candidateNames(installedPackages(root), { platform, arch, cpuinfo: readCpuinfo() });
  const file = platform === "win32" ? "bun.exe" : "bun";
  for (const name of names) {
    const executable = path.join(root, "node_modules", "@oven", name, "bin", file);
    if (output(executable, ["--version"]) === wanted) return executable;
  }
  const other = foreignBun();
  if (other !== null) {
    const version = output(other, ["--version"]);
    if (version !== wanted) console.error(`using Bun ${version} from ${other}; this project is made with ${wanted}`);
    return other;
  }
  throw new Problem(
    names.length === 0
      ? `no Bun was installed for ${platform} ${arch}: the optional packages of "bun" are missing from node_modules/@oven.\n` +
          "Remove node_modules and run setup again; if that does not help, install Bun yourself and put it on PATH."
      : `none of the installed builds of Bun runs on this machine: ${names.join(", ")}.\n` +
          `Install a Bun ${wanted} that does (for processors without AVX2 there are "baseline" builds) and put it on PATH.`,
  );
}
