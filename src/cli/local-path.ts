import fs from "node:fs";
import path from "node:path";
import type { CliIo } from "./io.ts";
import { isUndecodable } from "./undecodable.ts";

/** A path as the person who typed it means it: from where they stand. Left to the system where the name of that place is no text. */
export const resolveLocal = ({ env }: Pick<CliIo, "env">, given: string): string =>
  isUndecodable(env.cwd, fs.existsSync) ? given : path.resolve(env.cwd, given);
