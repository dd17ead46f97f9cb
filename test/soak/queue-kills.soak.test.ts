import { test } from "bun:test";
import { killRounds } from "../queue/kill-rounds.ts";
import { scaled } from "../runner/soak.ts";

const KILLS = 200;
/** Of one queue, so that what it has acknowledged is looked up in a moment. */
const KILLS_EACH = 20;

test("the owner of the queue is killed again and again while it writes: never refused, and nothing that was acknowledged is gone", async () => {
  for (let left = scaled(KILLS, 10); left > 0; left -= KILLS_EACH) await killRounds(Math.min(left, KILLS_EACH));
});
