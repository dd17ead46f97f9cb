import type { Worker } from "./room.ts";

/** How many more workers an address has to have than another one, for that one to take the place of one of them. */
const FEWER_BY = 2;

/** Which workers have the places of a token, by their addresses: whoever has the token may make up as many keys as he likes, and addresses not. */
export class WorkerPlaces {
  /** By token, then by what an address is counted by; in the order in which they came. */
  readonly #places = new Map<number, Map<string, Set<Worker>>>();

  /** @param addressKey null: not counted, and nobody's to take */
  add(worker: Worker, token: number, addressKey: string | null): void {
    if (addressKey === null) return;
    const addresses = this.#places.get(token) ?? new Map<string, Set<Worker>>();
    this.#places.set(token, addresses);
    const workers = addresses.get(addressKey) ?? new Set();
    addresses.set(addressKey, workers);
    workers.add(worker);
  }

  remove(worker: Worker, token: number, addressKey: string | null): void {
    const addresses = this.#places.get(token);
    const workers = addressKey === null ? undefined : addresses?.get(addressKey);
    workers?.delete(worker);
    if (workers?.size === 0) addresses?.delete(addressKey!);
    if (addresses?.size === 0) this.#places.delete(token);
  }

  /** Who has to go for a worker from an address that has fewer: of the address that has most, the one that came last. Null: nobody. */
  insteadOf(token: number, addressKey: string | null): Worker | null {
    if (addressKey === null) return null;
    const addresses = this.#places.get(token) ?? new Map<string, Set<Worker>>();
    let most: ReadonlySet<Worker> = new Set();
    for (const workers of addresses.values()) if (workers.size > most.size) most = workers;
    return most.size >= (addresses.get(addressKey)?.size ?? 0) + FEWER_BY ? [...most].at(-1)! : null;
  }
}
