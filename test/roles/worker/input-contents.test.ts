import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { LIMITS } from "../../../src/domain/limits.ts";
import { hasContent, nameContent } from "../../../src/execution/input-content.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { Inputs } from "../../../src/roles/worker/inputs.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { complete, contentOf, DATA, KEY, modeOf, partOf, uploadsIn } from "./uploads.ts";

const directory = temporaryDirectories();

describe("names of a content", () => {
  test("are the same file", async () => {
    const spool = directory();
    await complete(spool);
    const one = await nameContent(spool, KEY, "in.lj");
    const other = await nameContent(spool, KEY, "copy.dat");
    expect([one?.ino, other?.nlink]).toEqual([other?.ino, 3n]);
    expect((await nameContent(spool, KEY, "in.lj"))?.ino).toBe(one?.ino);
    expect(modeOf(contentOf(spool, "copy.dat"))).toBe(0o400);
  });

  test("it has none where a byte of it is another one: it is removed, and can be sent again", async () => {
    const spool = directory();
    const uploads = await complete(spool);
    await nameContent(spool, KEY, "in.lj");
    const file = contentOf(spool, ".content");
    fs.chmodSync(file, 0o600);
    const fd = fs.openSync(file, "r+");
    fs.writeSync(fd, Buffer.from([DATA[17]! ^ 1]), 0, 1, 17);
    fs.closeSync(fd);
    expect(await nameContent(spool, KEY, "in.lj")).toBeNull();
    expect(hasContent(spool, KEY)).toBe(false);
    await uploads.take(KEY, DATA);
    expect((await nameContent(spool, KEY, "in.lj"))?.size).toBe(5_000n);
    expect(fs.readFileSync(contentOf(spool, "in.lj")).equals(DATA)).toBe(true);
  });

  test("a link in the place of anything leads nowhere", async () => {
    const spool = directory();
    const elsewhere = directory();
    const uploads = uploadsIn(spool);
    await uploads.begin(KEY);
    fs.rmSync(partOf(spool));
    fs.writeFileSync(path.join(elsewhere, "victim"), "as it was");
    fs.symlinkSync(path.join(elsewhere, "victim"), partOf(spool));
    expect(uploads.stand(KEY).state).toBe("absent");
    fs.symlinkSync(elsewhere, path.join(spool, "inputs", KEY.sha256));
    await uploads.take(KEY, DATA);
    expect(fs.readdirSync(elsewhere)).toEqual(["victim"]);
    expect(fs.readFileSync(path.join(elsewhere, "victim"), "utf8")).toBe("as it was");
    expect(uploads.stand(KEY).state).toBe("complete");
  });
});

test("what nobody went on with or used for a day is removed, and nothing else", async () => {
  const spool = directory();
  await complete(spool);
  const named = { sha256: sha256Hex("named"), size_bytes: 5 };
  const uploads = uploadsIn(spool);
  await uploads.take(named, Buffer.from("named"));
  const part = { sha256: "b".repeat(64), size_bytes: 9 };
  const provisional = { sha256: "d".repeat(64), size_bytes: 10, provisional: true } as const;
  await uploads.begin(provisional);
  const fresh = { sha256: "c".repeat(64), size_bytes: 9 };
  await uploads.begin(part);
  await uploads.begin(fresh);
  fs.writeFileSync(path.join(spool, "inputs", "of-somebody-else"), "");
  const old = new Date(Date.now() - (LIMITS.inputKeepSeconds + 60) * 1_000);
  for (const name of [KEY.sha256, named.sha256, `${part.sha256}-9.part`, `${provisional.sha256}-10.provisional`])
    fs.utimesSync(path.join(spool, "inputs", name), old, old);
  const store = { namedInputs: async (digests: readonly string[]) => new Set(digests.filter((digest) => digest === named.sha256)) };
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const around = { cluster: "c", spoolDir: spool, clock: systemClock, store, log } as unknown as ConstructorParameters<typeof Inputs>[0];
  const inputs = new Inputs(around, 1, () => undefined);
  expect(await inputs.sweep()).toBe(3);
  expect((await inputs.stand([provisional]))[0]?.state).toBe("absent");
  expect((await inputs.stand([KEY, named, part, fresh])).map(({ state }) => state)).toEqual(["absent", "complete", "absent", "partial"]);
  expect(fs.existsSync(path.join(spool, "inputs", "of-somebody-else"))).toBe(true);
  // Asking for it begins the day anew.
  fs.utimesSync(path.join(spool, "inputs", `${fresh.sha256}-9.part`), old, old);
  expect((await inputs.stand([fresh]))[0]?.state).toBe("partial");
  expect(await inputs.sweep()).toBe(0);
});
