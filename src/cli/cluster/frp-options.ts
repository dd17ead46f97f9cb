import { type ClusterEntry, type FrpEntry, isFrp } from "../../config/cluster-entry.ts";
import { newRoom, readRoom, removeRoom, writeRoom } from "../../config/frp-room.ts";
import { RelayError } from "../../domain/errors.ts";
import { CA_MAX, FRP_PROTOCOLS, type FrpRoom, isFrpServer, isStunServer } from "../../domain/frp.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";
import { readLocalText } from "../local-file.ts";
import { oneOf, type Reader, text, whole } from "../values.ts";
import { type FlagValues, option, toggle } from "../verb.ts";
import { isUnset, type UNSET } from "./unset-options.ts";

const SECRET_MAX_BYTES = 1_024;

const variableName: Reader<string> = {
  label: "NAME",
  form: "the name of a variable",
  read: (given) => (/^[A-Za-z_]\w{0,127}$/.test(given) ? given : undefined),
};
const modeOnly: Reader<"xtcp"> = { label: "xtcp", form: "xtcp", read: (given) => (given === "xtcp" ? given : undefined) };
const fallbackOnly: Reader<string> = {
  label: "frp_stcp",
  form: "frp_stcp, or frp_stcp,queue",
  read: (given) => (given === "frp_stcp" || given === "frp_stcp,queue" ? given : undefined),
};

const server: Reader<string> = {
  label: "HOST",
  form: "the name or the address of a host",
  read: (given) => (isFrpServer(given) ? given : undefined),
};
const stunServer: Reader<string> = { label: "HOST:PORT", form: "HOST:PORT", read: (given) => (isStunServer(given) ? given : undefined) };

/** Options of a cluster whose link goes through a frps. */
export const FRP = {
  "frp-server-addr": option(
    server,
    "Server of frp that both sides dial out to; makes the mode frp-stcp, or frp-xtcp with --direct-transport",
  ),
  "frp-server-port": option(whole(1, 65_535), "Its port; 443 when it is not said"),
  "frp-protocol": option(oneOf(...FRP_PROTOCOLS), "How it is spoken to; wss, behind an HTTPS edge, when it is not said"),
  "frp-token-file": option(text("FILE"), "File with the token of frps, or - for standard input; else CLIO_RELAY_FRP_TOKEN has it"),
  "frp-token-env": option(variableName, "Variable that has the token in place of CLIO_RELAY_FRP_TOKEN"),
  "stcp-secret-file": option(
    text("FILE"),
    "File with the secret of the proxies, or -; else CLIO_RELAY_STCP_SECRET has it, or it is made at random",
  ),
  "stcp-secret-env": option(variableName, "Variable that has that secret in place of CLIO_RELAY_STCP_SECRET"),
  "frp-ca-file": option(text("FILE"), "Certification authorities in PEM for wss, in place of those that everybody trusts"),
  "frp-stun-server": option(stunServer, "STUN server for the direct way, in place of the one that frp comes with"),
  "frpc-bin": option(text("FILE"), "A frpc that is on the cluster already; else bootstrap brings one"),
  "direct-transport": toggle("Try the direct way, from peer to peer, before frps carries the link"),
  "no-direct-transport": toggle("Let frps carry it"),
  "direct-timeout-seconds": option(whole(1, 60), "How long the direct way is tried before frps carries it; 10 when it is not said"),
  "direct-transport-mode": option(modeOnly, "How the direct way is found; there is one"),
  "direct-transport-fallback": option(fallbackOnly, "What follows where there is none: always the same frps, and the queue goes on"),
} as const;
type FrpFlags = FlagValues<typeof FRP> & FlagValues<typeof UNSET>;

const NAMES = [
  "frp-server-port",
  "frp-protocol",
  "frp-token-file",
  "frp-token-env",
  "stcp-secret-file",
  "stcp-secret-env",
  "frp-ca-file",
  "frp-stun-server",
  "direct-timeout-seconds",
  "frpc-bin",
] as const;

/** Whether an option speaks of frp. */
export const namesFrp = (flags: FrpFlags): boolean => NAMES.some((name) => flags[name] !== undefined) || flags["direct-transport"];

/** The mode that options lead to; undefined where they say nothing of it. */
export function frpModeOf(before: ClusterEntry | null, flags: FrpFlags): FrpEntry["mode"] | undefined {
  if (flags["direct-transport"] && flags["no-direct-transport"]) {
    throw new RelayError("usage", "--direct-transport and --no-direct-transport exclude each other");
  }
  const known = before !== null && isFrp(before) ? before.mode : null;
  if (flags["frp-server-addr"] === undefined && known === null) return undefined;
  if (flags["direct-transport"]) return "frp-xtcp";
  return flags["no-direct-transport"] ? "frp-stcp" : (known ?? "frp-stcp");
}

/** The failure of options of frp where no frps is named. */
export const noFrps = (): RelayError =>
  new RelayError("usage", "--frp-server-addr is missing", {}, "--frp-server-addr HOST names the server of frp that both sides dial out to");

/** What is known of the frps, with what options say in its place. @throws RelayError usage where no frps is named */
export function frpOf(before: ClusterEntry | null, flags: FrpFlags) {
  const known = before !== null && isFrp(before) ? before.frp : null;
  const server_addr = flags["frp-server-addr"] ?? known?.server_addr;
  if (server_addr === undefined) throw noFrps();
  return {
    ...known,
    server_addr,
    server_port: flags["frp-server-port"] ?? known?.server_port,
    protocol: flags["frp-protocol"] ?? known?.protocol,
    stun_server: flags["frp-stun-server"] ?? known?.stun_server,
    direct_timeout_seconds: flags["direct-timeout-seconds"] ?? known?.direct_timeout_seconds,
    frpc_bin: flags["frpc-bin"] ?? known?.frpc_bin,
  };
}

/** What is secret, with what files and variables of this command say in its place. @throws RelayError local_file_unusable, configuration_error */
async function roomWith(io: CliIo, known: FrpRoom | null, flags: FrpFlags): Promise<FrpRoom> {
  const room = known ?? newRoom();
  const given = async (file: string | undefined, name: string, option: string): Promise<string | null> => {
    if (file !== undefined)
      return oneLine(
        `--${option}`,
        file === "-" ? await standardInput(io) : readLocalText(io, `--${option} ${file}`, file, SECRET_MAX_BYTES),
      );
    const value = io.env.variables[name];
    return value === undefined || value === "" ? null : oneLine(name, value);
  };
  if (flags["frp-token-file"] === "-" && flags["stcp-secret-file"] === "-") throw new RelayError("usage", "standard input has one secret");
  const token = await given(flags["frp-token-file"], flags["frp-token-env"] ?? "CLIO_RELAY_FRP_TOKEN", "frp-token-file");
  const secret = await given(flags["stcp-secret-file"], flags["stcp-secret-env"] ?? "CLIO_RELAY_STCP_SECRET", "stcp-secret-file");
  const ca = flags["frp-ca-file"];
  return {
    ...room,
    token: token ?? room.token,
    secret: secret ?? room.secret,
    ca: ca === undefined ? (isUnset(flags, "frp-ca-file") ? null : room.ca) : readLocalText(io, `--frp-ca-file ${ca}`, ca, CA_MAX),
  };
}

/**
 * Keep what is secret about a cluster's frps in its private file, where options speak of it.
 *
 * @returns the way back to what was there before
 * @throws RelayError local_file_unusable, configuration_error
 */
export async function keepRoom(io: CliIo, { paths }: Pick<Installation, "paths">, cluster: string, flags: FrpFlags): Promise<() => void> {
  if (!namesFrp(flags) && flags["frp-server-addr"] === undefined && !isUnset(flags, "frp-ca-file")) return () => undefined;
  const before = readRoom(paths, cluster, io.env);
  writeRoom(paths, cluster, await roomWith(io, before, flags));
  return () => (before === null ? removeRoom(paths, cluster) : writeRoom(paths, cluster, before));
}

const standardInput = async (io: CliIo): Promise<string> => new TextDecoder().decode(await io.stdin.read(SECRET_MAX_BYTES));

function oneLine(source: string, given: string): string {
  const secret = given.trim();
  if (secret !== "" && secret.length <= SECRET_MAX_BYTES && !/\p{Cc}/u.test(secret)) return secret;
  throw new RelayError("configuration_error", `${source} has no secret: one line, of ${SECRET_MAX_BYTES} characters at most`, { source });
}
