import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { bunPins } from "../lockfiles.ts";
import type { Target } from "./targets.ts";

/**
 * Fetch the runtimes of some targets into a directory, by Bun's own package manager, and make sure that they are what the lockfile pins: Bun compiles for
 * other platforms with whatever it downloads. Works without a network once they are in the package manager's cache.
 *
 * @returns the executable of each target's runtime
 */
export function runtimesOf(root: string, targets: readonly Target[], directory: string): ReadonlyMap<Target, string> {
  const pinned = bunPins(fs.readFileSync(path.join(root, "bun.lock"), "utf8"));
  const wanted = [...new Set(targets.map(({ runtime }) => runtime))].sort();
  const dependencies = Object.fromEntries(wanted.map((name) => [name, pinOf(pinned, name).version]));
  fs.rmSync(directory, { recursive: true, force: true });
  fs.mkdirSync(directory, { recursive: true });
  fs.writeFileSync(path.join(directory, "package.json"), JSON.stringify({ name: "runtimes", private: true, dependencies }));
  const installed = spawnSync(process.execPath, ["install", "--os=*", "--cpu=*", "--ignore-scripts"], { cwd: directory, encoding: "utf8" });
  if (installed.status !== 0) {
    throw new Error(`the runtimes of Bun could not be had from the package registry, nor from the cache:\n${installed.stderr}`);
  }
  const found = bunPins(fs.readFileSync(path.join(directory, "bun.lock"), "utf8"));
  for (const name of wanted) {
    const [is, should] = [found.get(name)?.integrity, pinOf(pinned, name).integrity];
    if (is === undefined || is !== should) throw new Error(`${name} is ${is ?? "missing"}, and bun.lock pins ${should}`);
  }
  return new Map(targets.map((one) => [one, path.join(directory, "node_modules", one.runtime, "bin", `bun${one.suffix}`)]));
}

function pinOf(pins: ReturnType<typeof bunPins>, name: string) {
  const pin = pins.get(name);
  if (pin === undefined) throw new Error(`bun.lock does not pin ${name}`);
  return pin;
}
