import { hintOf, isRelayError, RelayError } from "../../domain/errors.ts";
import type { ClusterClient } from "../client.ts";

/** How long a cluster has to answer where several are asked for one record, in milliseconds. */
export const ANSWER_MS = 3_000;

type Missing = "job_not_found" | "task_not_found" | "artifact_not_found";
type Ask = (cluster: ClusterClient, signal: AbortSignal) => Promise<unknown>;

/** A cluster that did not say that it has a record, and why. */
export interface Refusal {
  readonly cluster: ClusterClient;
  readonly failure: unknown;
}

/**
 * The cluster that has a record. Where there are several, the first that has it is taken, so that one that hangs holds nobody up; a sole
 * one is not asked.
 *
 * @throws RelayError `missing` where all answered that they do not have it; as `unasked` where some did not answer
 */
export async function recordHolder(clusters: readonly ClusterClient[], what: string, missing: Missing, ask: Ask): Promise<ClusterClient> {
  return clusters.length === 1 ? clusters[0]! : holderAmong(clusters, what, missing, ask, []);
}

/**
 * The same where one of them is asked before the others, as the one that most likely has it.
 *
 * @throws as recordHolder
 */
export async function recordHolderFrom(
  first: ClusterClient,
  others: readonly ClusterClient[],
  what: string,
  missing: Missing,
  ask: Ask,
): Promise<ClusterClient> {
  if (others.length === 0) return first;
  try {
    await ask(first, AbortSignal.timeout(ANSWER_MS));
    return first;
  } catch (failure) {
    return holderAmong(others, what, missing, ask, [{ cluster: first, failure }]);
  }
}

async function holderAmong(
  clusters: readonly ClusterClient[],
  what: string,
  missing: Missing,
  ask: Ask,
  before: readonly Refusal[],
): Promise<ClusterClient> {
  const over = new AbortController();
  const answers = clusters.map(async (cluster) => {
    await ask(cluster, AbortSignal.any([over.signal, AbortSignal.timeout(ANSWER_MS)]));
    return cluster;
  });
  try {
    return await Promise.any(answers);
  } catch {
    const failures = await Promise.allSettled(answers);
    const refusals = [...before, ...clusters.map((cluster, at) => ({ cluster, failure: (failures[at] as PromiseRejectedResult).reason }))];
    const silent = refusals.filter(({ failure }) => !isRelayError(failure, missing));
    // Of one that was asked first it says most why it did not answer.
    const likely = silent.filter((one) => before.includes(one));
    const words = `${what} may be of ${silentNames(silent)}, which could not be asked`;
    if (silent.length > 0) throw unasked(words, silent, { likely: likely.length > 0 ? likely : silent });
    throw new RelayError(missing, `there is no ${what} on ${namesOf(refusals.map(({ cluster }) => cluster))}`);
  } finally {
    over.abort();
  }
}

export const namesOf = (clusters: readonly ClusterClient[]): string => clusters.map(({ name }) => name).join(", ");
export const silentNames = (silent: readonly Refusal[]): string => namesOf(silent.map(({ cluster }) => cluster));

/** What is known of those that did not answer. */
interface Unasked {
  /** What else can be done. */
  readonly otherwise?: string;
  /** Those of them that most likely have it; all where none is likelier. */
  readonly likely?: readonly Refusal[];
}

/**
 * No answer is not an absence: authorization_required where it takes a person to ask each of the likely, else link_down. The hint is what each
 * of them says has to be done, or to name one that says nothing.
 */
export function unasked(words: string, silent: readonly Refusal[], { otherwise, likely = silent }: Unasked = {}): RelayError {
  const person = likely.every(({ failure }) => isRelayError(failure, "authorization_required"));
  const steps = silent.map(({ failure }) => (failure instanceof RelayError ? hintOf(failure) : undefined) ?? "--cluster NAME");
  const hint = [...new Set(steps), ...(otherwise === undefined ? [] : [`or ${otherwise}`])].join("; ");
  const clusters = silent.map(({ cluster }) => cluster.name);
  return new RelayError(person ? "authorization_required" : "link_down", words, { clusters }, hint);
}
