import fs from "node:fs";
import path from "node:path";
import { FrpOffering } from "../domain/frp.ts";
import { writeFileAtomic } from "../lib/files/atomic-file.ts";
import type { Environment } from "./environment.ts";
import { readPrivateDocument } from "./private-document.ts";

const MAX_BYTES = 512 * 1024;
const fileOf = (coreDir: string): string => path.join(coreDir, "frp.json");

/** What the worker of a cluster offers at a frps; null: nothing. @throws RelayError configuration_error */
export function readFrpOffering(coreDir: string, env: Pick<Environment, "uid" | "platform">): FrpOffering | null {
  return readPrivateDocument(FrpOffering, fileOf(coreDir), MAX_BYTES, env, "clio-relay cluster bootstrap, from the desktop, writes it");
}

/** Keep it, or nothing any more. @returns whether it was another one before */
export function keepFrpOffering(coreDir: string, offering: FrpOffering | null): boolean {
  const file = fileOf(coreDir);
  const before = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : null;
  const now = offering === null ? null : `${JSON.stringify(offering)}\n`;
  if (before === now) return false;
  if (now === null) fs.rmSync(file, { force: true });
  else writeFileAtomic(file, now);
  return true;
}
