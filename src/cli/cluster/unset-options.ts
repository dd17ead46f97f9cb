import { type ClusterEntry, isFrp } from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";
import { oneOf } from "../values.ts";
import { type FlagValues, list } from "../verb.ts";

/** Options of an entry that stand for nothing where they are not given, and once given can only be taken back. */
const OPTIONAL = [
  "relay-host",
  "relay-token-file",
  "relay-ca-file",
  "ssh-host",
  "core-dir",
  "spool-dir",
  "frp-ca-file",
  "frp-stun-server",
  "frpc-bin",
  "jarvis-bin",
  "agent-bin",
  "agent-adapter",
  "agent-args",
] as const;
type Optional = (typeof OPTIONAL)[number];

export const UNSET = {
  unset: list({ ...oneOf(...OPTIONAL), label: "OPTION" }, `Forget what was said with that option: ${OPTIONAL.join(", ")}`),
} as const;
type UnsetFlags = FlagValues<typeof UNSET>;

/** Whether what was said with an option is to be forgotten. */
export const isUnset = ({ unset }: UnsetFlags, option: Optional): boolean => unset.includes(option);

/** Whether a relay-host's token that was kept here is of no more use. */
export const forgetsToken = (flags: UnsetFlags): boolean => isUnset(flags, "relay-host") || isUnset(flags, "relay-token-file");

/** The entry as if those options had never been given. Another relay-host than none has a token and authorities of its own. */
export function withoutUnset(entry: ClusterEntry | null, flags: UnsetFlags): ClusterEntry | null {
  if (entry === null) return null;
  const is = (option: Optional): boolean => isUnset(flags, option);
  const left: Record<string, unknown> = { ...entry };
  if (is("relay-host")) delete left["relay_host"];
  if (is("relay-host") || is("relay-ca-file")) delete left["relay_ca_file"];
  if (forgetsToken(flags)) delete left["relay_token_file"];
  if (is("ssh-host")) left["ssh_host"] = null;
  if (is("core-dir")) left["core_dir"] = null;
  if (is("spool-dir")) left["spool_dir"] = null;
  if (is("jarvis-bin")) delete left["jarvis_bin"];
  // What is said of an agent is of that one.
  if (is("agent-bin")) delete left["agent_bin"];
  if (is("agent-bin") || is("agent-adapter")) delete left["agent_adapter"];
  if (is("agent-bin") || is("agent-args")) delete left["agent_args"];
  if (isFrp(entry)) {
    left["frp"] = {
      ...entry.frp,
      ...(is("frp-stun-server") ? { stun_server: null } : {}),
      ...(is("frpc-bin") ? { frpc_bin: null } : {}),
    };
  }
  return left as ClusterEntry;
}

/** @throws RelayError usage where an option is given and taken back at once */
export function refuseContradiction(flags: UnsetFlags & Readonly<Record<string, unknown>>): void {
  const both = flags.unset.find((option) => flags[option] !== undefined);
  if (both !== undefined) throw new RelayError("usage", `--${both} and --unset ${both} exclude each other`);
}
