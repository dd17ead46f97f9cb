import { expect, test } from "bun:test";
import { SourceRelay } from "./source-relay.ts";

/** Cells of the longest line of the help of `job submit` above its examples, where it goes into a program. */
async function widest(relay: SourceRelay, columns: string): Promise<number> {
  const { stdout } = await relay.run(["job", "submit", "--help"], { env: { COLUMNS: columns } });
  const [text, examples] = stdout.split("\nExamples:\n");
  expect(examples).toContain("clio-relay job submit");
  return Math.max(...text!.split("\n").map((line) => line.length));
}

test("help that a pager shows is as wide as COLUMNS says; what is no width counts for nothing", async () => {
  await using relay = new SourceRelay();
  const [narrow, wide, usual] = [await widest(relay, "60"), await widest(relay, "120"), await widest(relay, "")];
  expect([narrow <= 60, wide > 80 && wide <= 120, usual > 60 && usual <= 80]).toEqual([true, true, true]);
  for (const none of ["0", "-1", "60x", "1e9", " "]) expect([none, await widest(relay, none)]).toEqual([none, usual]);
});
