import fs from "node:fs";
import os from "node:os";
import path from "node:path";

/** Something that is fetched or built once, and lies outside of the checkout, so that a fresh clone finds it again. */
export interface Cached {
  readonly directory: () => string;
  /** Why it is not there; null when it is. */
  readonly missing: () => string | null;
  /** Resolves to whether it is there. */
  readonly make: () => Promise<boolean>;
}

export interface CachedOptions {
  readonly name: string;
  /** The files that say what it is made of: with other ones it is another. */
  readonly pins: readonly string[];
  /** Paths in its directory without which it is not whole. */
  readonly holds: readonly string[];
  /** Fills an empty directory, whose name is not the last one; resolves to whether it did. */
  readonly fill: (directory: string) => Promise<boolean>;
}

export function cached({ name, pins, holds, fill }: CachedOptions): Cached {
  const directory = (): string => {
    const hash = new Bun.CryptoHasher("sha256");
    for (const file of pins) hash.update(fs.readFileSync(file));
    return path.join(os.homedir(), ".cache", "clio-relay-rigs", `${name}-${hash.digest("hex").slice(0, 16)}`);
  };
  return {
    directory,
    missing: () => (holds.every((file) => fs.existsSync(path.join(directory(), file))) ? null : `${name} is not there (${directory()})`),
    async make() {
      const target = directory();
      fs.mkdirSync(path.dirname(target), { recursive: true });
      const making = fs.mkdtempSync(`${target}-`);
      try {
        if (!(await fill(making))) return false;
        // Somebody else may have been faster.
        if (!fs.existsSync(target)) fs.renameSync(making, target);
        return true;
      } finally {
        fs.rmSync(making, { recursive: true, force: true });
      }
    },
  };
}
