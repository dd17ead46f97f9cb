import { agentKeys } from "../session/agent-keys.ts";
import type { AuthenticationStep, Signer } from "../session/authentication.ts";
import { fingerprintOf, typeOf } from "../session/keys.ts";
import type { Target } from "./config/target.ts";
import { type KeyFile, lookAtKey } from "./key-file.ts";
import { type KeyOpening, openKey } from "./open-key.ts";
import { algorithmsOf } from "./public-key.ts";

export interface KeySources extends KeyOpening {
  readonly target: Target;
  /** Socket of the request's own agent; null where it has none. */
  readonly agentSocket: string | null;
  readonly uid: number;
}

/** One way to try with keys, and its name for people. */
export interface KeyAttempt {
  readonly what: string;
  /** Null when there is nothing to try after all. */
  readonly step: () => Promise<AuthenticationStep | null>;
}

export interface KeyAttempts {
  readonly attempts: readonly KeyAttempt[];
  /** Keys that were passed over, with the reason. */
  readonly skipped: readonly string[];
}

/**
 * The keys to try, as ssh orders them: those of the agent that are named in the configuration, its others (unless IdentitiesOnly), and then
 * the key files that the agent does not have.
 */
export async function keyAttempts({ target, agentSocket, uid, ...opening }: KeySources): Promise<KeyAttempts> {
  const skipped: string[] = [];
  const files: KeyFile[] = [];
  for (const path of target.identityFiles) {
    const found = lookAtKey(path, uid);
    if (found === null) continue;
    if ("why" in found) skipped.push(`${path} ${found.why}`);
    else files.push(found);
  }
  const accepted = (key: Buffer): boolean => algorithmsOf(typeOf(key)).some((name) => target.algorithms.publicKey.includes(name));
  const socket = target.identityAgent === "request" ? agentSocket : target.identityAgent;
  const inAgent = socket === null ? [] : await heldBy(socket, skipped);
  const named = files.flatMap(({ publicKey }) => (publicKey === null ? [] : inAgent.filter((key) => key.equals(publicKey))));
  const others = target.identitiesOnly ? [] : inAgent.filter((key) => !named.includes(key));
  const ofAgent = [...named, ...others].filter(accepted);
  const attempts: KeyAttempt[] = [];
  // One by one: after a key that is one proof of several, the next is not to be a key.
  for (const key of socket === null ? [] : ofAgent) {
    const step: AuthenticationStep = { method: "publickey", agent: socket!, only: [key] };
    attempts.push({ what: `the agent's key ${fingerprintOf(key)}`, step: () => Promise.resolve(step) });
  }
  for (const file of files) {
    const { publicKey, text, path } = file;
    if (text === "" || (publicKey !== null && inAgent.some((key) => key.equals(publicKey)))) continue;
    if (publicKey !== null && !accepted(publicKey)) skipped.push(`${path} is of a type that PubkeyAcceptedAlgorithms leaves out`);
    else attempts.push({ what: path, step: () => fileStep(file, publicKey, opening, `${target.user}@${target.host}`) });
  }
  return { attempts, skipped };
}

async function heldBy(socket: string, skipped: string[]): Promise<Buffer[]> {
  try {
    return await agentKeys(socket);
  } catch (error) {
    skipped.push(`the agent at ${socket} does not answer (${(error as Error).message})`);
    return [];
  }
}

/** The passphrase is asked for once the server has said that it would take the key, where the file tells which key it is. */
async function fileStep(file: KeyFile, publicKey: Buffer | null, opening: KeyOpening, host: string): Promise<AuthenticationStep | null> {
  if (publicKey !== null) return { method: "publickey", signer: lazySigner(file, publicKey, opening, host) };
  const signer = await openKey(file, opening, host);
  return signer === null ? null : { method: "publickey", signer };
}

function lazySigner(file: KeyFile, publicKey: Buffer, opening: KeyOpening, host: string): Signer {
  return {
    publicKey,
    sign: async (data, hash) => (await openKey(file, opening, host))?.sign(data, hash) ?? null,
  };
}
