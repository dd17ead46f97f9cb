import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { systemClock } from "../../src/lib/waiting/clock.ts";
import { type Dialing, Ledger } from "../../src/transport/ledger.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const directory = temporaryDirectories();
const dialing: Dialing = {
  cluster: "one",
  purpose: "connect",
  target: "me@login:22",
  via: ["me@jump:22"],
  requested_by: "clio-relay connect one",
  client: "builtin",
};

test("an entry is on disk before its dial, and again with its outcome and its end", () => {
  const file = path.join(directory(), "deep", "ledger.jsonl");
  const ledger = new Ledger(file, systemClock);
  const read = (): unknown[] =>
    fs
      .readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
  const line = ledger.begin(dialing);
  expect(read()).toEqual([{ ...dialing, seq: 1, at: expect.any(String), attended: true, outcome: null, ended_at: null, reason: null }]);
  line.settle("open");
  line.settle("failed", "too late");
  expect(read()).toMatchObject([{ outcome: "open", ended_at: null, reason: null }]);
  line.ended("link_down");
  line.ended("again");
  expect(read()).toMatchObject([{ outcome: "open", ended_at: expect.any(String), reason: "link_down" }]);
  expect(fs.statSync(file).mode & 0o777).toBe(0o600);
  ledger.begin(dialing).settle("refused", "host_key_changed");
  expect(read()[1]).toMatchObject({ seq: 2, outcome: "refused", ended_at: expect.any(String), reason: "host_key_changed" });
});

test("it is bounded, and counts on over restarts", () => {
  const file = path.join(directory(), "ledger.jsonl");
  const ledger = new Ledger(file, systemClock);
  for (let turn = 0; turn < 1_005; turn++) ledger.begin(dialing);
  expect(ledger.entries()).toHaveLength(1_000);
  expect(ledger.entries()[0]!.seq).toBe(6);
  expect(ledger.entries(1_004)).toHaveLength(2);
  const next = new Ledger(file, systemClock);
  expect(next.nextSeq).toBe(1_006);
  // The process that dialed them is gone, and so are they.
  expect(next.entries().every(({ outcome, ended_at }) => outcome === "failed" && ended_at !== null)).toBe(true);
});

test("a damaged ledger is refused, not begun anew; one that cannot be written forbids the dial", () => {
  const file = path.join(directory(), "ledger.jsonl");
  fs.writeFileSync(file, "{}\n");
  expect(() => new Ledger(file, systemClock)).toThrow(expect.objectContaining({ code: "local_file_unusable" }));
  fs.writeFileSync(file, "");
  const blocked = path.join(directory(), "file");
  fs.writeFileSync(blocked, "");
  fs.mkdirSync(path.join(path.dirname(blocked), "place"));
  const ledger = new Ledger(path.join(path.dirname(blocked), "place", "ledger.jsonl"), systemClock);
  fs.rmdirSync(path.join(path.dirname(blocked), "place"));
  fs.writeFileSync(path.join(path.dirname(blocked), "place"), "");
  expect(() => ledger.begin(dialing)).toThrow(expect.objectContaining({ code: "local_file_unusable" }));
  expect(ledger.entries()).toEqual([]);
});

test("what nobody asked for is written down as that; the same failure again is counted in its entry, and leaves the others their room", () => {
  const file = path.join(directory(), "ledger.jsonl");
  let now = 0;
  const ledger = new Ledger(file, { now: () => Date.now(), monotonic: () => now });
  const unattended = { ...dialing, client: "relay" as const, target: "wss://relay.example", via: [], requested_by: "the daemon" };
  const attended = ledger.begin(dialing);
  attended.settle("open");
  attended.ended(null);
  for (let turn = 0; turn < 700; turn++) ledger.beginUnattended(unattended).settle("failed", "host_unreachable");
  expect(ledger.entries()).toMatchObject([
    { attended: true },
    { attended: false, client: "relay", outcome: "failed", reason: "host_unreachable", tries: 700 },
  ]);
  // The first is on disk before it is dialed; the count follows within the minute.
  expect(fs.readFileSync(file, "utf8")).not.toContain('"tries"');
  now = 60_000;
  ledger.beginUnattended(unattended).settle("failed", "host_unreachable");
  expect(fs.readFileSync(file, "utf8")).toContain('"tries":701');
  ledger.beginUnattended(unattended).settle("failed", "certificate_refused");
  expect(ledger.entries().at(-1)).toMatchObject({ tries: 702, reason: "certificate_refused" });
  expect(fs.readFileSync(file, "utf8")).toContain("certificate_refused");
  for (let turn = 0; turn < 505; turn++) {
    const line = ledger.beginUnattended(unattended);
    line.settle("open");
    line.ended("link_down");
  }
  expect(ledger.entries()).toHaveLength(501);
  expect(ledger.entries()[0]).toMatchObject({ seq: 1, attended: true });
  expect(new Ledger(file, systemClock).entries()).toHaveLength(501);
});
