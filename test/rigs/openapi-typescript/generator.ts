import fs from "node:fs";
import path from "node:path";
import { cached } from "../cached.ts";

const PINS = ["package.json", "bun.lock"];

/**
 * openapi-typescript, which makes types of an OpenAPI document, and openapi-fetch, which sends requests by them. Not a dependency of the project, because it wants a TypeScript of its own.
 */
export const generator = cached({
  name: "openapi-typescript",
  pins: PINS.map((file) => path.join(import.meta.dir, file)),
  holds: ["node_modules/openapi-typescript/bin/cli.js", "node_modules/openapi-fetch/package.json"],
  async fill(directory) {
    for (const file of PINS) fs.copyFileSync(path.join(import.meta.dir, file), path.join(directory, file));
    const command = [process.execPath, "install", "--frozen-lockfile", "--ignore-scripts", "--silent"];
    return (
      (await Bun.spawn(command, { cwd: directory, stdin: "ignore", stdout: "ignore", stderr: "inherit", timeout: 120_000 }).exited) === 0
    );
  },
});
