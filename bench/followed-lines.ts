import { type Latency, latencyOf, wallClock } from "./yardsticks/latency.ts";

/**
 * From the write of each line, which says what time it is, until a follower has it.
 *
 * @throws when it were not so many lines
 */
export async function followedLines(response: Response, lines: number): Promise<Latency> {
  const samples: number[] = [];
  let rest = "";
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    const now = wallClock();
    const parts = (rest + Buffer.from(bytes).toString("latin1")).split("\n");
    rest = parts.pop()!;
    for (const part of parts) samples.push(now - Number(part));
  }
  if (samples.length !== lines) throw new Error(`${samples.length} of ${lines} lines arrived`);
  return latencyOf(samples);
}
