import { afterEach } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

/** Call it within a describe that needs the component `tmpfs`: returns a maker of small file systems, unmounted after each test. */
export function smallFileSystems(): (size: string) => string {
  const mounted: string[] = [];
  afterEach(() => {
    for (const directory of mounted.splice(0)) {
      // Lazily: a process that is just ending may still have it open.
      spawnSync("umount", ["-l", directory]);
      fs.rmdirSync(directory);
    }
  });
  return (size) => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-small-"));
    const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", directory]);
    if (status !== 0) throw new Error(`mount: ${stderr}`);
    mounted.push(directory);
    return directory;
  };
}

/** Leave no room for another name: on a tmpfs with `nr_inodes`, each link takes one. Returns the files that take it. */
export function fillInodes(directory: string): string[] {
  const files: string[] = [];
  for (;;) {
    const file = path.join(directory, `filler-${files.length}`);
    try {
      fs.closeSync(fs.openSync(file, "wx"));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
      return files;
    }
    files.push(file);
  }
}

/** Leave exactly so many bytes free. Returns the file that takes the room. */
export function fillUp(directory: string, leaveBytes = 0): string {
  const file = path.join(directory, "ballast");
  const fd = fs.openSync(file, "w");
  try {
    const page = Buffer.alloc(4_096);
    for (;;) fs.writeSync(fd, page);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    fs.ftruncateSync(fd, Math.max(0, fs.fstatSync(fd).size - leaveBytes));
  } finally {
    fs.closeSync(fd);
  }
  return file;
}
