import { test } from "bun:test";
import { killRounds } from "./kill-rounds.ts";

test("a process that is killed while it writes loses nothing that it had acknowledged, and is never refused for it", async () => {
  await killRounds(8);
});
