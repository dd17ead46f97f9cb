import { expect, test } from "bun:test";
import { PassThrough } from "node:stream";
import { RelayError } from "../../../src/domain/errors.ts";
import { TwoWays } from "../../../src/transport/frp/two-ways.ts";
import type { Session } from "../../../src/transport/session/session.ts";

/** A session whose channels lead nowhere. */
function session(bytes: number) {
  const over = Promise.withResolvers<RelayError | null>();
  const channels: PassThrough[] = [];
  const all: Session & { channels: PassThrough[]; isClosed: boolean; end: (why: RelayError) => void } = {
    channels,
    isClosed: false,
    closed: over.promise,
    openSocket: () => {
      const channel = new PassThrough();
      channels.push(channel);
      return Promise.resolve(channel);
    },
    openTcp: () => Promise.reject(new RelayError("channel_refused", "no")),
    exec: () => Promise.reject(new RelayError("channel_refused", "no")),
    stats: () => ({ bytesIn: bytes, bytesOut: bytes }),
    roundTrip: () => Promise.resolve(bytes),
    close() {
      this.isClosed = true;
      over.resolve(null);
    },
    end: (why) => over.resolve(why),
  };
  return all;
}

const found = () => Promise.withResolvers<Session | null>();

test("what begins goes over frps until the direct way is found; what is under way then ends where it began, and its session with it", async () => {
  const [relayed, direct, search] = [session(1), session(10), found()];
  const both = new TwoWays(relayed, search.promise);
  const busy = await both.openSocket("/");
  await expect(both.openTcp("a", 1)).rejects.toMatchObject({ code: "channel_refused" });
  expect([both.way, both.stats()]).toEqual(["stcp", { bytesIn: 1, bytesOut: 1 }]);
  search.resolve(direct);
  await both.moved;
  expect([both.way, both.stats(), await both.roundTrip()]).toEqual(["xtcp", { bytesIn: 11, bytesOut: 11 }, 10]);
  await both.openSocket("/");
  expect([relayed.channels.length, direct.channels.length, relayed.isClosed]).toEqual([1, 1, false]);
  const closed = new Promise((resolve) => busy.once("close", resolve));
  busy.destroy();
  await closed;
  expect([relayed.isClosed, direct.isClosed]).toEqual([true, false]);
  const why = new RelayError("link_down", "gone");
  direct.end(why);
  expect(await both.closed).toBe(why);
});

test("with nothing under way the session over frps is closed at once, and its end is not the end", async () => {
  const [relayed, direct, search] = [session(1), session(10), found()];
  const both = new TwoWays(relayed, search.promise);
  search.resolve(direct);
  await both.moved;
  expect(relayed.isClosed).toBe(true);
  both.close();
  expect([await both.closed, direct.isClosed]).toEqual([null, true]);
});

test("it ends with the session over frps where there is no other one, and what is found later is not kept", async () => {
  const [relayed, direct, search] = [session(1), session(10), found()];
  const both = new TwoWays(relayed, search.promise);
  const why = new RelayError("link_down", "gone");
  relayed.end(why);
  expect(await both.closed).toBe(why);
  search.resolve(direct);
  await direct.closed;
  expect(direct.isClosed).toBe(true);
  const alone = session(1);
  const never = new TwoWays(alone, Promise.resolve(null));
  never.close();
  expect([await never.closed, never.way]).toEqual([null, "stcp"]);
});
