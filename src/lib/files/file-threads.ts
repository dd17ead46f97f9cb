import fs from "node:fs";
import { within } from "../waiting/within.ts";

/**
 * Have the threads started that asynchronous calls of files and pipes run on. Bun starts the first ones when the first such call comes; where the system
 * has no room for one then (RLIMIT_NPROC, getrlimit(2)), that call and every later one never end, also when there is room again. With one
 * thread they all end; threads that there are stay.
 *
 * @returns whether there is a thread within so many milliseconds; where there is not, nothing of this process can be relied on
 */
export const startFileThreads = (withinMs: number): Promise<boolean> =>
  // The module of fs.promises alone takes a shim a millisecond.
  within(new Promise<void>((done) => fs.stat("/", () => done())), withinMs);
