import { type ClusterEntry, type FrpEntry, isFrp } from "../../config/cluster-entry.ts";
import { readRoom } from "../../config/frp-room.ts";
import { RelayError } from "../../domain/errors.ts";
import type { FrpRoom } from "../../domain/frp.ts";
import { writeFileAtomic } from "../../lib/atomic-file.ts";
import type { FrpServer } from "../../transport/frp/configuration.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";
import { readLocalText } from "../local-file.ts";
import { resolveLocal } from "../local-path.ts";
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
export const OUTPUT = { output: option(text("FILE"), "Write it there, readable for nobody else, in place of standard output") } as const;

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

export const serverOf = ({ frp }: FrpEntry, token: string | null): FrpServer => ({
  address: frp.server_addr,
  port: frp.server_port,
  protocol: frp.protocol,
  token,
  stunServer: frp.stun_server,
});

/** Put a configuration where it is wanted. Its secrets are said to be in it. */
export async function render(io: CliIo, json: boolean, output: string | undefined, configuration: string): Promise<void> {
  if (output !== undefined) {
    const file = resolveLocal(io, output);
    writeFileAtomic(file, configuration);
    if (json) await printJson(io.stdout, { file });
    else await io.stderr.write(`written to ${file}; it holds secrets\n`);
  } else if (json) await printJson(io.stdout, { configuration });
  else {
    await io.stdout.write(configuration);
    await io.stderr.write("notice: it holds secrets: keep it where nobody else can read it\n");
  }
}
