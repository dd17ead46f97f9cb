import os from "node:os";
import { watchValue } from "../waiting/watched-value.ts";

const LOOK_MS = 2_000;

/** The addresses of this machine that lead somewhere else, as one text. */
const addresses = (): string =>
  Object.values(os.networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal }) => !internal)
    .map(({ cidr, address }) => cidr ?? address)
    .sort()
    .join(" ");

/**
 * Be told when the machine has other addresses than before: it was carried to another network, or a tunnel came or went. Returns the way to stop it.
 *
 * @param seen says which it has; this machine's when left out
 */
export function watchNetwork(changed: () => void, seen: () => string = addresses, everyMs = LOOK_MS): () => void {
  return watchValue(seen, changed, everyMs);
}
