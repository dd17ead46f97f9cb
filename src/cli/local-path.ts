import path from "node:path";
import type { CliIo } from "./io.ts";

/** A path as the person who typed it means it: from where they stand. */
export const resolveLocal = (io: Pick<CliIo, "env">, given: string): string => path.resolve(io.env.cwd, given);
