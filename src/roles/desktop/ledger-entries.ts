import type { Ledger, LedgerEntry } from "../../transport/ledger.ts";

/**
 * What the ledger has of a cluster, oldest first. How the link is must be there to be read when it is the ledger's file that is wrong: then there are no
 * entries, and `trouble` says why.
 */
export function entriesOf(ledger: () => Ledger, cluster: string): { entries: LedgerEntry[]; trouble: string | null } {
  try {
    return {
      entries: ledger()
        .entries()
        .filter((entry) => entry.cluster === cluster),
      trouble: null,
    };
  } catch (error) {
    return { entries: [], trouble: error instanceof Error ? error.message : String(error) };
  }
}
