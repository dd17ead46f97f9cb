import path from "node:path";
import { RelayError } from "../../../domain/errors.ts";
import type { Settings } from "../config/read.ts";
import type { ConfigContext } from "../config/resolve.ts";

/** What must not reach our connection of the user's own configuration: multiplexing, terminals, forwards, commands. */
const OURS = [
  "ControlMaster no",
  "ControlPath none",
  "ControlPersist no",
  "RequestTTY no",
  "RemoteCommand none",
  "PermitLocalCommand no",
  "ClearAllForwardings yes",
  "ExitOnForwardFailure no",
  "ForwardAgent no",
  "ForwardX11 no",
  "Tunnel no",
  "EscapeChar none",
  "ConnectionAttempts 1",
  "UpdateHostKeys no",
  "VisualHostKey no",
  "LogLevel INFO",
] as const;

/** The same for directives that older versions do not know. */
const NEWER = ["SessionType default", "StdinNull no", "ForkAfterAuthentication no", "EnableEscapeCommandline no"] as const;

/**
 * A configuration for ssh's `-F` in which what is ours comes first, and so wins, also for the ssh processes that ssh starts for jumps.
 *
 * @param settings what `ssh -G` says without it; tells which directives this version knows
 * @param careless hosts whose StrictHostKeyChecking is off; there the person is asked
 */
export function configText(settings: Settings, careless: readonly string[], { configFile, account }: ConfigContext): string {
  const known = NEWER.filter((line) => settings.has(line.slice(0, line.indexOf(" ")).toLowerCase()));
  const files =
    configFile === "none" ? [] : configFile !== null ? [configFile] : [path.join(account.home, ".ssh", "config"), "/etc/ssh/ssh_config"];
  const ask = careless.map((host) => `Host ${host}\n  StrictHostKeyChecking ask`);
  return `${[...ask, "Host *", ...OURS, ...known, ...files.map((file) => `Include "${includable(file)}"`)].join("\n")}\n`;
}

/** Include takes patterns (glob(7)), and quotes. */
function includable(file: string): string {
  if (!/["\\*?[\n]/.test(file)) return file;
  throw new RelayError("configuration_error", `${JSON.stringify(file)} cannot be included in an ssh configuration`, { path: file });
}

/** Whether the configuration would take any host key. */
export const isCareless = (settings: Settings): boolean =>
  ["no", "off", "false"].includes(settings.get("stricthostkeychecking")?.[0]?.args[0]?.toLowerCase() ?? "");
