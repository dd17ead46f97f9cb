import { canonicalJson, sha256Hex } from "../../lib/digest.ts";

/**
 * What tools may be called here at most. Interfaces of models take 64 characters, and Claude Code puts `mcp__clio-relay__` before a name; Cursor leaves out what has more than 60
 * together with the server's name (anthropics/claude-code 2485, awslabs/mcp 1283).
 */
const ALIAS_LENGTH = 64 - "mcp__clio-relay__".length;
/** Hexadecimal digits that tell names apart; more where these do not. */
const DIGITS = 10;
const MORE_DIGITS = 6;
const DIGITS_MAX = ALIAS_LENGTH - "remote_".length - 1;

/** What is known under one name, on whatever clusters. */
export interface Identity {
  readonly namespace: string;
  /** The tool's name as its server has it. */
  readonly tool: string;
  /** Digest of how the server describes it. */
  readonly definition: string;
  readonly contract: string | null;
  /** The registration, where one cluster has several that are the same in everything else. */
  readonly server: string | null;
}

/** One text for one identity. */
export const identityKey = ({ namespace, tool, definition, contract, server }: Identity): string =>
  canonicalJson({ namespace, tool, definition, contract, server });

const normalized = (text: string): string => text.toLowerCase().replace(/[^a-z0-9_]+/g, "_");

/** A name with digits that tell it from others; the front is cut where it has to be. */
const withDigits = (name: string, digest: string, digits: number): string =>
  `${name.slice(0, ALIAS_LENGTH - digits - 1)}_${digest.slice(0, digits)}`;

function plainName({ namespace, tool }: Identity): string {
  const name = `remote_${normalized(namespace)}_${normalized(tool)}`;
  return name.length <= ALIAS_LENGTH ? name : withDigits(name, sha256Hex(canonicalJson([namespace, tool])), DIGITS);
}

/**
 * A name for each identity: `remote_NAMESPACE_TOOL` in lower case, of at most ALIAS_LENGTH characters. Where several would have one name, or it is that of a tool that is always there, each of them gets digits
 * of its own. It depends on what there is, and not on the order.
 *
 * @param taken names that are others' already
 * @returns names by identityKey
 */
export function aliasesOf(identities: readonly Identity[], taken: ReadonlySet<string>): ReadonlyMap<string, string> {
  const named = identities.map((identity) => {
    const key = identityKey(identity);
    return { key, plain: plainName(identity), digits: 0 };
  });
  const shown = ({ key, plain, digits }: (typeof named)[number]): string =>
    digits === 0 ? plain : withDigits(plain, sha256Hex(key), digits);
  for (;;) {
    const holders = Map.groupBy(named, shown);
    const clashes = [...holders].filter(([name, those]) => those.length > 1 || taken.has(name)).flatMap(([, those]) => those);
    if (clashes.length === 0) return new Map(named.map((one) => [one.key, shown(one)]));
    for (const one of clashes) one.digits = one.digits === 0 ? DIGITS : Math.min(one.digits + MORE_DIGITS, DIGITS_MAX);
    // Identical digests are one identity, which comes once.
    if (clashes.every(({ digits }) => digits === DIGITS_MAX)) return new Map(named.map((one) => [one.key, shown(one)]));
  }
}
