import path from "node:path";
import { pythonPrograms } from "../python-programs.ts";

/** roc-validator, which holds crates against RO-Crate and its profiles, and prov, which reads PROV-JSON. */
export const crateValidator = pythonPrograms("ro-crate", path.join(import.meta.dir, "requirements.txt"));

/** What a validator has against a crate. */
export interface CrateFinding {
  readonly severity: "REQUIRED" | "RECOMMENDED";
  readonly check: string;
  readonly message: string;
  readonly entity: string | null;
}

/** What is found in each crate (a directory or a ZIP archive) by the profile Process Run Crate and what that extends. */
export const validateCrates = (crates: readonly string[]): Promise<Record<string, CrateFinding[]>> => run("crates", crates);

/** How many records of each kind a PROV-JSON document has. */
export const readProv = (files: readonly string[]): Promise<Record<string, Record<string, number>>> => run("prov", files);

async function run<T>(what: string, paths: readonly string[]): Promise<T> {
  const command = [crateValidator.python(), path.join(import.meta.dir, "validate.py"), what, ...paths];
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`validate.py ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as T;
}
