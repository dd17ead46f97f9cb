import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

/** Something to tell the person who started this, in full; no stack. */
export class Problem extends Error {}

const windows = process.platform === "win32";

/** Full path of a program on PATH, or null. */
export function onPath(name) {
  const names = windows ? [`${name}.exe`, `${name}.cmd`] : [name];
  for (const directory of (process.env.PATH ?? "").split(path.delimiter)) {
    for (const file of names) {
      const candidate = path.join(directory, file);
      try {
        fs.accessSync(candidate, fs.constants.X_OK);
        if (directory !== "" && fs.statSync(candidate).isFile()) return candidate;
      } catch {
        // not this one
      }
    }
  }
  return null;
}

/** Run a program on this terminal and wait for it. Resolves to its exit code (128 + N where signal N ended it). */
export function run(command, args, { cwd, env } = {}) {
  return new Promise((resolve, reject) => {
    // .cmd files are no programs; only the command interpreter runs them.
    const child = spawn(command, args, { cwd, env, stdio: "inherit", shell: windows && command.endsWith(".cmd") });
    // A terminal's Ctrl-C reaches the child by itself; here it must only not end the waiting.
    const ignore = () => undefined;
    const pass = (signal) => child.kill(signal);
    process.on("SIGINT", ignore);
    process.on("SIGTERM", pass);
    const done = () => {
      process.off("SIGINT", ignore);
      process.off("SIGTERM", pass);
    };
    child.once("error", (error) => {
      done();
      reject(new Problem(`${command} cannot be run: ${error.message}`));
    });
    child.once("exit", (code, signal) => {
      done();
      resolve(code ?? 128 + (SIGNALS[signal] ?? 0));
    });
  });
}

const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGILL: 4, SIGABRT: 6, SIGKILL: 9, SIGSEGV: 11, SIGTERM: 15 };

/** What a program prints when it ends with 0 within ten seconds, else null. */
export function output(command, args) {
  const result = spawnSync(command, args, { encoding: "utf8", timeout: 10_000, stdio: ["ignore", "pipe", "ignore"] });
  return result.status === 0 ? result.stdout.trim() : null;
}
