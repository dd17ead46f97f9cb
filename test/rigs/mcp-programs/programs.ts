import fs from "node:fs";
import path from "node:path";
import { cached } from "../cached.ts";

const PINS = ["package.json", "bun.lock"];
const SCOPE = "node_modules/@modelcontextprotocol";

/**
 * Programs of others that speak the protocol: the conformance suites of 2026-07-28 and of 2025-11-25, the Inspector, the first SDK, which older clients have, and two
 * servers made with it. They bring a web server and a web page along, so that they are no dependencies of the project.
 */
export const mcpPrograms = cached({
  name: "mcp-programs",
  pins: PINS.map((file) => path.join(import.meta.dir, file)),
  holds: [
    `${SCOPE}/conformance/dist/index.js`,
    "node_modules/conformance-2025/dist/index.js",
    `${SCOPE}/inspector/package.json`,
    `${SCOPE}/server-everything/dist/index.js`,
    `${SCOPE}/server-filesystem/dist/index.js`,
  ],
  async fill(directory) {
    for (const file of PINS) fs.copyFileSync(path.join(import.meta.dir, file), path.join(directory, file));
    const command = [process.execPath, "install", "--frozen-lockfile", "--ignore-scripts", "--silent"];
    return (
      (await Bun.spawn(command, { cwd: directory, stdin: "ignore", stdout: "ignore", stderr: "inherit", timeout: 120_000 }).exited) === 0
    );
  },
});

/** A file of one of them. */
export const mcpProgram = (...names: string[]): string => path.join(mcpPrograms.directory(), "node_modules", ...names);
