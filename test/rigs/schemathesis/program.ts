import path from "node:path";
import { cached } from "../cached.ts";

const REQUIREMENTS = path.join(import.meta.dir, "requirements.txt");
const PYTHON = "bin/python";

/** Schemathesis, which makes requests of an OpenAPI document and holds the answers against it, in an environment of Python of its own. */
export const schemathesis = cached({
  name: "schemathesis",
  pins: [REQUIREMENTS],
  holds: [PYTHON, "whole"],
  async fill(directory) {
    const steps = [
      ["python3", "-m", "venv", directory],
      [path.join(directory, PYTHON), "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "-r", REQUIREMENTS],
      ["touch", path.join(directory, "whole")],
    ];
    for (const command of steps) {
      if (Bun.which(command[0]!) === null) return false;
      if ((await Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "inherit", timeout: 300_000 }).exited) !== 0) return false;
    }
    return true;
  },
});

/** The beginning of its command line. */
export const schemathesisCommand = (): string[] => [
  path.join(schemathesis.directory(), PYTHON),
  "-c",
  "from schemathesis.cli import schemathesis; schemathesis()",
];
