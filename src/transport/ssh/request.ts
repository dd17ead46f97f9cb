import path from "node:path";
import type { SshEntry as RegisteredEntry } from "../../config/cluster-entry.ts";
import type { Attending } from "../dial.ts";
import type { Ledger } from "../ledger.ts";
import type { ConfigContext } from "./config/resolve.ts";
import type { Named } from "./config/target.ts";
import type { KeyRing } from "./open-key.ts";
import type { Prompter } from "./prompt.ts";

/** What a cluster's entry says of the way to it. */
export interface SshEntry extends Named {
  readonly cluster: string;
  /** `SHA256:…` of the host keys of the last hop that are right, whatever known_hosts says; empty: known_hosts decides. */
  readonly hostKeyPins: readonly string[];
}

/** The same from the registry's own form. */
export function entryOf({ name, ssh_host, target_identity }: RegisteredEntry): SshEntry {
  const at = ssh_host.lastIndexOf("@");
  // An address of version 6 may have brackets, as in a URL.
  const host = ssh_host.slice(at + 1).replace(/^\[(.*)\]$/, "$1");
  return { cluster: name, host, ...(at < 0 ? {} : { user: ssh_host.slice(0, at) }), hostKeyPins: target_identity.ssh_host_key_sha256 };
}

export interface SshRequest {
  readonly entry: SshEntry;
  readonly purpose: "connect" | "bootstrap";
  /** The person's request that this belongs to; null: nobody is there, and nothing is dialed. */
  readonly attending: Attending | null;
  readonly prompter: Prompter;
  readonly ledger: Ledger;
  /** Where the ssh configuration comes from, with variables and directory of the request. */
  readonly config: Omit<ConfigContext, "signal">;
  /** SSH_AUTH_SOCK of the request; null where it has none. */
  readonly agentSocket: string | null;
  /** Keys that this request has opened, by their files: a passphrase is asked for once, however many hops take the key. */
  readonly keyRing: KeyRing;
  /** Told what the person should see and what stops nothing: banners of servers, keys that could not be remembered. Safe for a terminal. */
  readonly notice: (text: string) => void;
}

/** Where the configuration comes from, for as long as the request lasts; CLIO_RELAY_SSH_CONFIG is taken from the request's own directory. */
export function contextOf({ config, attending }: SshRequest): ConfigContext {
  const { configFile, directory } = config;
  return {
    ...config,
    configFile: configFile === null || configFile === "none" ? configFile : path.resolve(directory, configFile),
    ...(attending === null ? {} : { signal: attending.signal }),
  };
}
