/** Numbers in [0, 1) that are the same for the same seed (the generator mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What the runner wants of a soak: the seed of everything random, and its size, 1 being all of it. */
export function soakSettings(env: Readonly<Record<string, string | undefined>> = process.env): {
  readonly seed: number;
  readonly scale: number;
} {
  const seed = Number(env["CLIO_RELAY_SOAK_SEED"] ?? 1);
  const scale = Number(env["CLIO_RELAY_SOAK_SCALE"] ?? 0.1);
  if (!Number.isSafeInteger(seed) || seed < 0) throw new Error(`CLIO_RELAY_SOAK_SEED is no whole number: ${env["CLIO_RELAY_SOAK_SEED"]}`);
  if (!(scale > 0 && scale <= 1000)) throw new Error(`CLIO_RELAY_SOAK_SCALE is no number above 0: ${env["CLIO_RELAY_SOAK_SCALE"]}`);
  return { seed, scale };
}

/** So many of `full` as the scale asks for, at least `least`. */
export const scaled = (full: number, least = 1, scale: number = soakSettings().scale): number => Math.max(least, Math.round(full * scale));
