import { expect, test } from "bun:test";
import type { AttendedEvent } from "../../../src/api/desktop/link-views.ts";
import { type Attending, attend } from "../../../src/cli/attended/attend.ts";
import { Interrupted } from "../../../src/cli/failure.ts";
import { Installation } from "../../../src/cli/installation.ts";
import { capturedIo } from "../captured-io.ts";

function attended(start: Attending<string>["start"], variables: Readonly<Record<string, string>> = {}) {
  const io = capturedIo({ variables: { CLIO_RELAY_HOME: "/nowhere/at-all", ...variables }, terminal: true });
  const call = { io, relay: new Installation(io), noInput: true };
  return { io, done: attend(call, { cluster: "far", command: "x far", givenUp: "it goes on from there", start }) };
}

const step = (text: string, unfinished: boolean): AttendedEvent => ({
  event: "progress",
  data: { text, ...(unfinished ? { unfinished } : {}) },
});

async function* steps() {
  yield step("probe: …", true);
  yield step("probe: done", false);
  yield step("send: …", true);
  yield { event: "transfer", data: { bytes: 1, total: 2 } } as AttendedEvent;
  yield step("send: done", false);
  yield step("worker: …", true);
  return "result";
}

test("a step that ends is written over where it began, and whatever follows has a line of its own", async () => {
  const { io, done } = attended(steps);
  expect(await done).toBe("result");
  expect(io.stderr.text).toBe("probe: …\r\x1b[Kprobe: done\nsend: …\r\x1b[K1 B of 2 B\r\x1b[Ksend: done\nworker: …\n");
});

test("a terminal that obeys no control sequences gets what ended, and none of them", async () => {
  const { io, done } = attended(steps, { TERM: "dumb" });
  expect(await done).toBe("result");
  expect(io.stderr.text).toBe("probe: done\nsend: done\n");
});

test("whoever gives it up is told what becomes of it", async () => {
  const { io, done } = attended(async function* (_request, signal) {
    yield { event: "progress", data: { text: "begun" } } as AttendedEvent;
    const ended = new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    io.interrupt();
    return ended;
  });
  expect(await done.catch((error: unknown) => error)).toBeInstanceOf(Interrupted);
  expect(io.stderr.text).toEndWith("given up; it goes on from there\n");
});
