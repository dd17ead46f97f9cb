import { expect, test } from "bun:test";
import { linesOf } from "./lines.ts";

async function* pieces(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part as string);
}

test("lines come whole, however the stream was cut, and one without an end does not", async () => {
  const [first, second] = [Buffer.from("ä").subarray(0, 1), Buffer.from("ä").subarray(1)];
  expect(await Array.fromAsync(linesOf(pieces("a\nb", "c\n\n", first, second, "\nd")))).toEqual(["a", "bc", "", "ä"]);
});
