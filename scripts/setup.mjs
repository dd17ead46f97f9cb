import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { onPath, Problem, run } from "./child.mjs";
import { findBun, foreignBun } from "./find-bun.mjs";

const STAMP = "node_modules/.clio-relay-setup";

/** Changes with every change of what node_modules should hold on this platform. */
export function wantedStamp(root) {
  const hash = createHash("sha256");
  const { dependencies, devDependencies } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
  hash.update(JSON.stringify({ dependencies, devDependencies, platform: process.platform, arch: process.arch }));
  for (const lockfile of ["package-lock.json", "bun.lock"]) hash.update(fs.readFileSync(path.join(root, lockfile)));
  return hash.digest("hex");
}

function currentStamp(root) {
  try {
    return fs.readFileSync(path.join(root, STAMP), "utf8");
  } catch {
    return null;
  }
}

/** The package manager to use: npm where Node runs this and npm is there, else Bun. Both read the user's own configuration. */
function installer() {
  const npm = process.versions.bun === undefined ? onPath("npm") : null;
  if (npm !== null) {
    return { command: npm, args: ["ci", "--ignore-scripts", "--include=dev", "--include=optional", "--no-audit", "--no-fund"] };
  }
  const bun = foreignBun();
  if (bun !== null) return { command: bun, args: ["install", "--frozen-lockfile", "--ignore-scripts"] };
  throw new Problem("neither npm nor Bun is on PATH; one of them is needed to install the dependencies");
}

/**
 * Install the dependencies as the lockfiles pin them, unless they are there, and find the Bun to work with.
 * Install scripts of packages are never run; none is needed.
 */
export async function setup(root) {
  const wanted = wantedStamp(root);
  if (currentStamp(root) === wanted) return replaceStubs(root, findBun(root));
  const { command, args } = installer();
  console.error(`installing dependencies: ${path.basename(command)} ${args.join(" ")}`);
  fs.rmSync(path.join(root, STAMP), { force: true });
  // NODE_ENV=production would leave out what builds and tests need.
  const { NODE_ENV: _, ...env } = process.env;
  const code = await run(command, args, { cwd: root, env });
  if (code !== 0) throw new Problem(`${path.basename(command)} ended with ${code}; see its messages above`);
  const bun = replaceStubs(root, findBun(root));
  fs.writeFileSync(path.join(root, STAMP), wanted);
  return bun;
}

/** Larger than any launcher script, smaller than any Bun. */
const STUB_MAX_BYTES = 1024 * 1024;

/**
 * Give the launchers of the package `bun` the executable that its own install script would have put there, so that
 * `node_modules/.bin/bun` works for whoever has that directory on PATH. Returns the executable.
 */
export function replaceStubs(root, bun) {
  if (!bun.startsWith(path.join(root, "node_modules", "@oven", path.sep))) return bun;
  for (const name of ["bun.exe", "bunx.exe"]) {
    const launcher = path.join(root, "node_modules", "bun", "bin", name);
    if (!fs.existsSync(launcher) || fs.statSync(launcher).size > STUB_MAX_BYTES) continue;
    const temporary = `${launcher}.${process.pid}.tmp`;
    try {
      fs.linkSync(bun, temporary);
    } catch {
      // Another file system, or one without links.
      fs.copyFileSync(bun, temporary);
    }
    fs.renameSync(temporary, launcher);
  }
  return bun;
}
