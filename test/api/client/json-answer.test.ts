import { expect, test } from "bun:test";
import path from "node:path";
import * as v from "valibot";
import { HttpPeer } from "../../../src/api/client/http-peer.ts";
import { jsonAnswer } from "../../../src/api/client/json-answer.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const temporary = temporaryDirectories();

/** A server that answers with these pieces, so far apart, and, with `hang`, never ends the answer; `left` resolves when the client gives up. */
function answering(pieces: readonly string[], hang: boolean, everyMs = 20) {
  const left = Promise.withResolvers<void>();
  const socket = path.join(temporary(), "s.sock");
  const server = Bun.serve({
    unix: socket,
    fetch(request) {
      request.signal.addEventListener("abort", () => left.resolve());
      async function* body() {
        for (const piece of pieces) {
          yield Buffer.from(piece);
          await Bun.sleep(everyMs);
        }
        if (hang) await left.promise;
      }
      return new Response(body() as unknown as ReadableStream, { headers: { "content-type": "application/json" } });
    },
  });
  return { socket, left: left.promise, stop: () => server.stop(true), ask: () => fetch("http://relay/", { unix: socket }) };
}

test("a document that stops coming is given up, and its connection with it", async () => {
  const { left, ask, stop } = answering(['{"a":', "[1"], true);
  try {
    const answer = jsonAnswer(await ask(), 200);
    await expect(answer).rejects.toThrow("no byte of the answer for 0.2 s");
    await left;
  } finally {
    await stop();
  }
});

test("one that goes on coming is waited for", async () => {
  const pieces = ['{"a":["', ..."é".repeat(20), '"]}'];
  const { socket, ask, stop } = answering(pieces, false, 100);
  try {
    const byPeer = new HttpPeer({ kind: "unix", path: socket }).json("/", async () => v.unknown());
    // All of it takes longer than each piece may.
    expect(await Promise.all([jsonAnswer(await ask(), 1_500), byPeer])).toEqual([{ a: ["é".repeat(20)] }, { a: ["é".repeat(20)] }]);
  } finally {
    await stop();
  }
});

test("no document is none", async () => {
  const answer = jsonAnswer(new Response(null));
  await expect(answer).rejects.toBeInstanceOf(SyntaxError);
});

test("one that is larger than is allowed is given up", async () => {
  const { left, ask, stop } = answering(["[", "1,".repeat(50), "1,".repeat(50)], true);
  try {
    const answer = jsonAnswer(await ask(), 5_000, 150);
    await expect(answer).rejects.toBeInstanceOf(RangeError);
    await left;
  } finally {
    await stop();
  }
});
