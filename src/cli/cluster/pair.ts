import { type ClusterEntry, DEFAULT_CAPACITY } from "../../config/cluster-entry.ts";
import { EXIT, isRelayError, RelayError } from "../../domain/errors.ts";
import { CODE_MAX, readCode } from "../../transport/pairing/code.ts";
import { Person } from "../attended/person.ts";
import { attendedRequest } from "../attended/request.ts";
import { interruptible } from "../follow/interrupt.ts";
import { printJson } from "../print/table.ts";
import type { Call } from "../verb.ts";
import { keptCa, keptToken } from "./relay-token.ts";

/** Of `cluster add`, that go together with --pair: who is met, and where, is in the code. */
const TOGETHER: ReadonlySet<string> = new Set(["name", "cluster", "pair", "relay-token-file", "relay-ca-file"]);

/**
 * Have this desktop's key let in by the worker that made a code, which is asked for on the terminal, without showing it, or read from standard input where that is
 * no terminal.
 *
 * @throws RelayError usage with options that do not go together, and where there is no code; pairing_code_invalid; as DesktopClient.pair
 */
export async function pairedWith(
  call: Pick<Call, "io" | "relay" | "noInput" | "json">,
  name: string,
  flags: Readonly<Record<string, unknown>>,
): Promise<number> {
  const { io, relay, json } = call;
  const other = Object.entries(flags).find(([flag, value]) => !TOGETHER.has(flag) && isGiven(value));
  if (other !== undefined) {
    throw new RelayError(
      "usage",
      `--pair and --${other[0]} do not go together: who is met, and where, is in the code`,
      {},
      `clio-relay cluster add ${name} --${other[0]} … when it is paired`,
    );
  }
  const tokenFile = flags["relay-token-file"] as string | undefined;
  if (tokenFile === "-") throw new RelayError("usage", "standard input has the code: --relay-token-file takes a file here");
  const code = await askedCode(call);
  // A typo is found here, and the daemon reads it once more.
  readCode(code);
  const relay_token_file = (await keptToken(io, relay, { cluster: name, given: tokenFile, named: true })) ?? null;
  const before = await knownEntry(call, name);
  const { env_setup, worker_capacity } = before ?? { env_setup: null, worker_capacity: DEFAULT_CAPACITY };
  const strict = before?.env_setup_strict ? { env_setup_strict: true } : {};
  const scheduler = before?.scheduler_provider === undefined ? {} : { scheduler_provider: before.scheduler_provider };
  const known = before?.mode === "relay" ? before : null;
  const ca = keptCa(io, flags["relay-ca-file"] as string | undefined) ?? known?.relay_ca_file;
  const entry = await interruptible(
    io,
    () => `given up; whether ${name} was paired is not known: clio-relay cluster list shows it`,
    (signal) =>
      relay.desktop.pair(
        name,
        {
          code,
          entry: {
            env_setup,
            ...strict,
            worker_capacity,
            ...scheduler,
            relay_token_file: relay_token_file ?? known?.relay_token_file ?? null,
            ...(ca === undefined ? {} : { relay_ca_file: ca }),
          },
          request: attendedRequest(io, "cluster add --pair", false),
        },
        signal,
      ),
  );
  if (json) await printJson(io.stdout, entry);
  else await io.stdout.write(`paired ${name}\n`);
  return EXIT.ok;
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);

async function knownEntry({ relay }: Pick<Call, "relay">, name: string): Promise<ClusterEntry | null> {
  try {
    return await relay.clusterEntry(name);
  } catch (error) {
    if (isRelayError(error, "cluster_not_found")) return null;
    throw error;
  }
}

/** The line of the code; what is typed is not shown. */
async function askedCode({ io, noInput }: Pick<Call, "io" | "noInput">): Promise<string> {
  if (!io.stdin.isTerminal) {
    const piped = new TextDecoder().decode(await io.stdin.read(CODE_MAX)).trim();
    if (piped !== "") return piped;
  }
  const terminal = noInput ? null : await io.terminal();
  if (terminal === null) {
    throw new RelayError(
      "usage",
      "there is no code on standard input, and nobody to ask for one",
      {},
      "clio-relay worker pair, on the cluster, prints one",
    );
  }
  try {
    const typed = await interruptible(
      io,
      () => "given up",
      (signal) => new Person(io, terminal).ask({ message: "Pairing code: ", echo: false }, signal),
    );
    if (typed === null || typed.trim() === "") throw new RelayError("prompt_cancelled", "no code was given");
    return typed;
  } finally {
    terminal.close();
  }
}
