import path from "node:path";
import { type Cached, cached } from "./cached.ts";

const PYTHON = "bin/python";

/** Packages of PyPI in an environment of their own, exactly those of a file of requirements. */
export interface PythonPrograms extends Cached {
  /** The interpreter that has them. Scripts of the environment name another place: it was made elsewhere. */
  readonly python: () => string;
}

export function pythonPrograms(name: string, requirements: string): PythonPrograms {
  const made = cached({
    name,
    pins: [requirements],
    holds: [PYTHON, "whole"],
    async fill(directory) {
      const steps = [
        ["python3", "-m", "venv", directory],
        [
          path.join(directory, PYTHON),
          "-m",
          "pip",
          "install",
          "--quiet",
          "--no-deps",
          "--no-compile",
          "--disable-pip-version-check",
          "-r",
          requirements,
        ],
        ["touch", path.join(directory, "whole")],
      ];
      for (const command of steps) {
        if (Bun.which(command[0]!) === null) return false;
        if ((await Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "inherit", timeout: 300_000 }).exited) !== 0)
          return false;
      }
      return true;
    },
  });
  return { ...made, python: () => path.join(made.directory(), PYTHON) };
}
