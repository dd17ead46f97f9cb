import { afterEach } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { removeTree } from "./remove.ts";

/** A fresh directory that is removed with all it holds: `using directory = temporaryDirectory();`. */
export function temporaryDirectory(): Disposable & { readonly path: string } {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "test-"));
  return { path: directory, [Symbol.dispose]: () => removeTree(directory) };
}

/** Call it at the top of a file or of a describe: returns a maker of directories that are removed after each test. */
export function temporaryDirectories(): () => string {
  const made: Disposable[] = [];
  afterEach(() => {
    for (const directory of made.splice(0)) directory[Symbol.dispose]();
  });
  return () => {
    const directory = temporaryDirectory();
    made.push(directory);
    return directory.path;
  };
}
