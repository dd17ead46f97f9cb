import { expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { HttpPeer } from "../../../src/api/client/http-peer.ts";
import { ClusterClient } from "../../../src/api/client.ts";
import { Reconnect } from "../../../src/cli/follow/reconnect.ts";
import { WatchOutput } from "../../../src/cli/follow/watch-output.ts";
import type { Event, EventType } from "../../../src/domain/event.ts";
import { completeUtf8Length } from "../../../src/lib/text/utf8.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";

/** A worker whose job has written so much, and gives whole characters only. */
function logServer(socket: string, log: { bytes: Uint8Array; ended: boolean }) {
  return Bun.serve({
    unix: socket,
    fetch(request) {
      const query = new URL(request.url).searchParams;
      const [offset, limit] = [Number(query.get("offset")), Number(query.get("limit"))];
      const left = log.bytes.subarray(offset, offset + limit);
      const given = left.subarray(0, log.ended ? left.length : completeUtf8Length(left));
      const chunk = { job_id: "j", stream: "stdout", offset, next_offset: offset + given.length, text: Buffer.from(given).toString() };
      return Response.json({ ...chunk, missing_bytes: 0, eof: log.ended });
    },
  });
}

test("whoever detaches comes back to the event whose bytes end within a character, and to the next one otherwise", async () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-watch-"));
  const log = { bytes: new Uint8Array(Buffer.from("one\nhalf é end")), ended: false };
  const server = logServer(path.join(directory, "s"), log);
  try {
    const cluster = new ClusterClient("local", new HttpPeer({ kind: "unix", path: path.join(directory, "s") }));
    const reconnect = new Reconnect({ write: () => Promise.resolve() }, systemClock, new AbortController().signal);
    const shown: string[] = [];
    const view = { output: async (_stream: string, lines: readonly string[]) => void shown.push(...lines) };
    const output = new WatchOutput(cluster, "j", reconnect, view, "end-lines");
    const event = (seq: number, event_type: EventType, payload = {}) => ({ seq, event_type, payload }) as unknown as Event;
    const delta = (seq: number, offset: number, next_offset: number) => event(seq, "stdout.delta", { offset, next_offset });

    expect(await output.take(delta(4, 0, 7))).toBe(true);
    expect([shown, output.resumeAt(5)]).toEqual([["one"], 5]);
    // The character begins with byte 9.
    await output.take(delta(5, 7, 10));
    expect(output.resumeAt(6)).toBe(5);
    expect(await output.take(event(6, "progress.updated"))).toBe(false);
    expect(output.resumeAt(7)).toBe(5);
    await output.take(delta(7, 10, 12));
    expect(output.resumeAt(8)).toBe(8);
    await output.showOpen();
    expect(shown).toEqual(["one", "half é "]);
    log.ended = true;
    await output.take(event(8, "job.succeeded"));
    expect(shown).toEqual(["one", "half é ", "end"]);
  } finally {
    server.stop(true);
    fs.rmSync(directory, { recursive: true });
  }
});
