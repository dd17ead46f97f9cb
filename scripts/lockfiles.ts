/** A package as a lockfile pins it. Integrity is missing where the lockfile gives none. */
export interface Pin {
  readonly name: string;
  readonly version: string;
  readonly integrity: string | null;
}

/** Packages by place, `a/b` being b in the node_modules of a. */
export type Pins = ReadonlyMap<string, Pin>;

interface NpmEntry {
  readonly name?: string;
  readonly version?: string;
  readonly integrity?: string;
}

/** Read package-lock.json (lockfileVersion 3). */
export function npmPins(text: string): Pins {
  const lock = JSON.parse(text) as { lockfileVersion: number; packages: Record<string, NpmEntry> };
  if (lock.lockfileVersion !== 3) throw new Error(`package-lock.json has version ${lock.lockfileVersion}, not 3`);
  const pins = new Map<string, Pin>();
  for (const [place, entry] of Object.entries(lock.packages)) {
    if (place === "") continue;
    const parts = place.replace(/^node_modules\//, "").split("/node_modules/");
    pins.set(parts.join("/"), { name: entry.name ?? parts.at(-1)!, version: entry.version ?? "", integrity: entry.integrity ?? null });
  }
  return pins;
}

/** Read bun.lock, which is JSON with comments and trailing commas. */
export function bunPins(text: string): Pins {
  const lock = Bun.JSONC.parse(text) as { packages: Record<string, readonly [string, ...unknown[]]> };
  const pins = new Map<string, Pin>();
  for (const [place, [id, ...rest]] of Object.entries(lock.packages)) {
    const at = id.lastIndexOf("@");
    const integrity = rest.findLast((part) => typeof part === "string" && part.includes("-")) as string | undefined;
    pins.set(place, { name: id.slice(0, at), version: id.slice(at + 1), integrity: integrity ?? null });
  }
  return pins;
}

/** Every way in which two lockfiles pin different things. */
export function disagreements(npm: Pins, bun: Pins): string[] {
  const found: string[] = [];
  for (const place of new Set([...npm.keys(), ...bun.keys()])) {
    const [a, b] = [npm.get(place), bun.get(place)];
    if (a === undefined) found.push(`${place} is in bun.lock only`);
    else if (b === undefined) found.push(`${place} is in package-lock.json only`);
    else if (a.name !== b.name || a.version !== b.version) found.push(`${place}: ${a.name}@${a.version} and ${b.name}@${b.version}`);
    else if (a.integrity !== null && b.integrity !== null && a.integrity !== b.integrity) found.push(`${place}: two integrities`);
  }
  return found;
}
