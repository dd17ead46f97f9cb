import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { RELAY_HOST_UNIT, type RelayHostUnit, relayHostUnit } from "./unit.ts";

/** Where the machine's units lie, and what a relay-host has of its own. */
export const UNIT_FILE = path.join("/etc/systemd/system", RELAY_HOST_UNIT);
export const RELAY_HOST_HOME = "/etc/clio-relay";
export const TOKEN_FILE = path.join(RELAY_HOST_HOME, "relay-host.token");

/** Runs a command to its end. */
export type Run = (command: readonly string[]) => Promise<{ readonly code: number; readonly text: string }>;

export type InstallOptions = Omit<RelayHostUnit, "token" | "home"> & {
  /** What TOKEN_FILE is to hold; null: what it holds, or one that is made. */
  readonly tokens: readonly string[] | null;
};

export interface Installed {
  readonly unit: string;
  readonly unit_file: string;
  readonly token_file: string;
  readonly token: "kept" | "written" | "made";
  readonly changed: boolean;
  readonly active: boolean;
}

/** The unit that `installRelayHost` writes. */
export const unitText = (options: InstallOptions): string => relayHostUnit({ ...options, token: TOKEN_FILE, home: RELAY_HOST_HOME });

/**
 * Write unit and token, and have the machine's systemd run it; one that runs is restarted when something changed.
 *
 * @throws RelayError service_failed with what systemctl says; local_file_unusable
 */
export async function installRelayHost(options: InstallOptions, run: Run): Promise<Installed> {
  const { executable, tokens } = options;
  mayBeStarted(executable);
  fs.mkdirSync(RELAY_HOST_HOME, { recursive: true, mode: 0o755 });
  const token = putToken(tokens);
  const text = unitText(options);
  const changed = !fs.existsSync(UNIT_FILE) || fs.readFileSync(UNIT_FILE, "utf8") !== text;
  if (changed) writeFileAtomic(UNIT_FILE, text, { mode: 0o644 });
  await systemctl(run, "daemon-reload");
  await systemctl(run, "enable", RELAY_HOST_UNIT);
  await systemctl(run, changed || token !== "kept" ? "restart" : "start", RELAY_HOST_UNIT);
  const { code } = await run(["systemctl", "is-active", "--quiet", RELAY_HOST_UNIT]);
  return {
    unit: RELAY_HOST_UNIT,
    unit_file: UNIT_FILE,
    token_file: TOKEN_FILE,
    token,
    changed: changed || token !== "kept",
    active: code === 0,
  };
}

/** The service's user is not the one that installs it. */
function mayBeStarted(executable: string): void {
  const hidden = ["/home/", "/root/", "/run/user/", "/tmp/", "/var/tmp/"].find((place) => executable.startsWith(place));
  if (hidden === undefined) return;
  throw new RelayError(
    "configuration_error",
    `${executable} lies below ${hidden}, which the service does not see`,
    { path: executable },
    `install -m 0755 ${executable} /usr/local/bin/clio-relay, and run that one`,
  );
}

function putToken(tokens: readonly string[] | null): Installed["token"] {
  const there = fs.existsSync(TOKEN_FILE) ? fs.readFileSync(TOKEN_FILE, "utf8") : null;
  if (tokens === null && there !== null) return "kept";
  const text = `${(tokens ?? [randomBytes(32).toString("hex")]).join("\n")}\n`;
  if (text === there) return "kept";
  writeFileAtomic(TOKEN_FILE, text);
  return tokens === null ? "made" : "written";
}

async function systemctl(run: Run, ...words: readonly string[]): Promise<void> {
  const { code, text } = await run(["systemctl", ...words]);
  if (code !== 0) throw new RelayError("service_failed", `systemctl ${words.join(" ")} ended with ${code}: ${text.trim().slice(0, 500)}`);
}

export interface Uninstalled {
  readonly unit: string;
  readonly removed: readonly string[];
  readonly kept: readonly string[];
}

/**
 * Stop the service and remove its unit. The token stays, unless `purge`.
 *
 * @throws RelayError service_failed
 */
export async function uninstallRelayHost(purge: boolean, run: Run): Promise<Uninstalled> {
  const removed: string[] = [];
  const remove = (file: string): void => {
    if (!fs.existsSync(file)) return;
    fs.rmSync(file);
    removed.push(file);
  };
  if (fs.existsSync(UNIT_FILE)) {
    await systemctl(run, "disable", "--now", RELAY_HOST_UNIT);
    remove(UNIT_FILE);
    await systemctl(run, "daemon-reload");
  }
  if (purge) remove(TOKEN_FILE);
  return { unit: RELAY_HOST_UNIT, removed, kept: [TOKEN_FILE].filter((file) => fs.existsSync(file)) };
}
