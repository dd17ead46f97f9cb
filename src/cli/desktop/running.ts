import type { Address } from "../../api/client.ts";
import { DesktopClient } from "../../api/desktop-client.ts";
import { checkRunDirectory } from "../../config/run-directory.ts";
import { addressOf, type DaemonRecord, readDaemonRecord } from "../../roles/desktop/address-file.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";

/** The daemon if there is one. Nothing is started. */
export function runningDesktop(io: CliIo, relay: Installation): { readonly desktop: DesktopClient; readonly record: DaemonRecord | null } {
  checkRunDirectory(relay.paths, io.env);
  const record = readDaemonRecord(relay.paths, io.env);
  const address: Address = addressOf(relay.paths, record);
  return { desktop: new DesktopClient(address), record };
}
