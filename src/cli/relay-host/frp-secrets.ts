import { type ClusterEntry, type FrpEntry, isFrp } from "../../config/cluster-entry.ts";
import { authoritiesFile, readRoom } from "../../config/frp-room.ts";
import { RelayError } from "../../domain/errors.ts";
import type { FrpRoom } from "../../domain/frp.ts";
import { writeFileAtomic } from "../../lib/files/atomic-file.ts";
import type { FrpServer } from "../../transport/frp/configuration.ts";
import { authorities, caFiles } from "../../transport/outbound/certificates.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";
import { readLocalText } from "../local-file.ts";
import { resolveLocal } from "../local-path.ts";
import { type MadeFiles, OVERWRITE, writeMade } from "../overwrite.ts";
import { printJson } from "../print/table.ts";
import { type Reader, text } from "../values.ts";
import { option } from "../verb.ts";

const SECRET_MAX_BYTES = 1_024;

/** A secret is never a word of a command line: other users see those. */
const secretSource: Reader<string> = {
  label: "@FILE|-",
  form: "@ and a file, or - for standard input",
  read: (given) => (given === "-" || /^@./.test(given) ? given : undefined),
};

export const SECRETS = {
  token: option(secretSource, "Token of frps, in place of the one that the cluster has; CLIO_RELAY_FRP_TOKEN counts, too"),
  "secret-key": option(secretSource, "Secret of the proxies, in place of the one that the cluster has; CLIO_RELAY_STCP_SECRET counts, too"),
} as const;
export const OUTPUT = {
  output: option(text("FILE"), "Write it there, readable for nobody else, in place of standard output", "o"),
  ...OVERWRITE,
} as const;

/** What an option, a variable or the cluster says of a secret; null where nothing does. */
export async function secretOf(io: CliIo, given: string | undefined, variable: string, known: string | null): Promise<string | null> {
  const read = async (): Promise<string | null> => {
    if (given === "-") return new TextDecoder().decode(await io.stdin.read(SECRET_MAX_BYTES));
    if (given !== undefined) return readLocalText(io, given, given.slice(1), SECRET_MAX_BYTES);
    const value = io.env.variables[variable];
    return value === undefined || value === "" ? known : value;
  };
  const secret = (await read())?.trim() ?? null;
  if (secret === null || (secret !== "" && !/\p{Cc}/u.test(secret))) return secret;
  throw new RelayError("configuration_error", `${given ?? variable} has no secret: one line`, { source: given ?? variable });
}

/** A cluster that is reached through a frps, and what is secret about it. @throws RelayError cluster_not_found, configuration_error */
export async function frpCluster(io: CliIo, relay: Installation, name: string): Promise<{ entry: FrpEntry; room: FrpRoom }> {
  const entry = await relay.clusterEntry(name);
  if (!isFrp(entry)) throw noFrp(entry);
  const room = readRoom(relay.paths, name, io.env);
  if (room !== null) return { entry, room };
  throw new RelayError(
    "configuration_error",
    `what is secret about the frps of ${name} is not known here`,
    { cluster: name },
    `clio-relay cluster add ${name} --frp-server-addr ${entry.frp.server_addr} --frp-token-file FILE`,
  );
}

const noFrp = ({ name, mode }: ClusterEntry): RelayError =>
  new RelayError(
    "configuration_error",
    `${name} is not reached through a frps, but by mode ${mode}`,
    { cluster: name, mode },
    `clio-relay cluster add ${name} --frp-server-addr HOST`,
  );

/** Where the authorities of a rendered configuration are, on the machine of its frpc. */
export const TRUSTED = {
  "trusted-ca-file": option(
    text("FILE"),
    "With wss: file of certification authorities on the machine of that frpc, in place of one that is written here",
  ),
} as const;

/**
 * How the frpc of a configuration that is rendered reaches the server. Without authorities frpc would take any certificate, so a configuration for TLS names a file of some: the one
 * that is given, or one with the cluster's own, or with everybody's, which is written here, or with the configuration where that has a file (`beside`).
 *
 * @throws RelayError configuration_error, local_file_unusable
 */
export function serverOf(
  { io, relay }: { readonly io: CliIo; readonly relay: Installation },
  { name, frp }: FrpEntry,
  room: Pick<FrpRoom, "token" | "ca">,
  { output, "trusted-ca-file": trusted }: { readonly output: string | undefined; readonly "trusted-ca-file": string | undefined },
): { readonly server: FrpServer; readonly beside: MadeFiles } {
  const { server_addr: address, server_port: port, protocol, stun_server: stunServer } = frp;
  const server = { address, port, protocol, token: room.token, stunServer };
  const beside = new Map<string, string>();
  if (protocol !== "wss") return { server, beside };
  if (trusted !== undefined) return { server: { ...server, caFile: trusted }, beside };
  const caFile = output === undefined ? authoritiesFile(relay.paths, name) : `${resolveLocal(io, output)}.ca.pem`;
  const certificates = room.ca ?? `${authorities(caFiles(relay.settings.ca_file, io.env.variables)).join("\n")}\n`;
  if (output === undefined) writeFileAtomic(caFile, certificates);
  else beside.set(caFile, certificates);
  return { server: { ...server, caFile }, beside };
}

/** What a frpc of the user's own offers is called after the cluster's room: names are one to a frps, and another one has other rooms. */
export const ownProxy = ({ name }: Pick<FrpRoom, "name">): string => `relay-stcp-${name.slice(0, 12)}`;

/** Put a configuration where it is wanted. That it has secrets, and the file that it needs besides, are said. */
export async function render(
  io: CliIo,
  json: boolean,
  { output, overwrite, secret = true }: { readonly output: string | undefined; readonly overwrite: boolean; readonly secret?: boolean },
  configuration: string,
  authorities?: string,
  beside: MadeFiles = new Map(),
): Promise<void> {
  const needs = authorities === undefined ? "" : `; frpc reads ${authorities}, too, on the machine where it runs`;
  const besides = authorities === undefined ? {} : { authorities };
  if (output !== undefined) {
    const file = resolveLocal(io, output);
    writeMade(new Map([...beside, [file, configuration]]), { overwrite, where: `-o ${output}` });
    if (json) await printJson(io.stdout, { file, ...besides });
    else await io.stderr.write(`written to ${file}${secret ? "; it holds secrets" : ""}${needs}\n`);
  } else if (json) await printJson(io.stdout, { configuration, ...besides });
  else {
    await io.stdout.write(configuration);
    if (secret) await io.stderr.write(`notice: it holds secrets: keep it where nobody else can read it${needs}\n`);
  }
}
