import { RelayError } from "../../domain/errors.ts";
import { within } from "../../lib/waiting/within.ts";
import type { McpService } from "../service.ts";
import type { Address } from "./address.ts";

/** The most that one resource is said to have changed, in milliseconds. */
const EVERY_MS = 1_000;
/** How long whoever subscribes waits for the first look, in milliseconds. */
const PATIENCE_MS = 3_000;
/** How often the links are looked at for whoever wants to hear of them, in milliseconds. */
const LOOK_MS = 5_000;

/**
 * Call `changed` when a resource may be another than when this resolves, at most once a second. Returns how to stop.
 *
 * @throws RelayError cluster_not_found; job_not_found, where the cluster says so in time
 */
export async function watchResource(service: McpService, address: Address, signal: AbortSignal, changed: () => void): Promise<() => void> {
  // What an artifact is does not change.
  if (address.what === "artifact") {
    await service.clusters.named(address.cluster, signal);
    return () => undefined;
  }
  const pace = new Pace(changed);
  if (address.what === "clusters") return watchClusters(service, pace);
  const place = await service.clusters.named(address.cluster, signal);
  const { stop, begun } = service.watch.on(place, address.id, (event) => {
    if (address.what !== "log" || event.event_type.startsWith(`${address.stream}.`)) pace.changed();
  });
  const end = (): void => {
    stop();
    pace.close();
  };
  let there = true;
  const looked = begun.then((found) => (there = found));
  // Who is told that it hears of changes, while there is no way to the cluster, may have missed some when there is one.
  if (!(await within(looked, PATIENCE_MS))) void looked.then(() => pace.changed());
  else if (!there) {
    end();
    throw new RelayError("job_not_found", `there is no job ${address.id} on ${address.cluster}`, { job_id: address.id });
  }
  return end;
}

function watchClusters({ clusters }: McpService, pace: Pace): () => void {
  const over = new AbortController();
  let known: string | null = null;
  const look = async (): Promise<void> => {
    const [entries, links] = await Promise.all([clusters.entries(over.signal), clusters.links(over.signal)]);
    const now = JSON.stringify([entries.map(({ name }) => name), links.map(({ cluster, state }) => [cluster, state])]);
    if (known !== null && known !== now) pace.changed();
    known = now;
  };
  const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS);
  look().catch(() => undefined);
  return () => {
    clearInterval(timer);
    over.abort();
    pace.close();
  };
}

/** At once, and then once for all that happens within the time. */
class Pace {
  #timer: ReturnType<typeof setTimeout> | null = null;
  #due = false;
  #closed = false;

  constructor(private readonly tell: () => void) {}

  changed(): void {
    if (this.#closed) return;
    if (this.#timer !== null) {
      this.#due = true;
      return;
    }
    this.tell();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (!this.#due) return;
      this.#due = false;
      this.changed();
    }, EVERY_MS);
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }
}
