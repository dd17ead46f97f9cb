import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../../src/domain/errors.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { inputPath } from "../../../src/execution/input-place.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { Inputs } from "../../../src/roles/worker/inputs.ts";
import { smallFileSystems } from "../../execution/tmpfs.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { KEY, piece, refused, uploadsIn } from "./uploads.ts";

const directory = temporaryDirectories();

describe("room", () => {
  test("is asked for before anything comes, for all that has begun", async () => {
    const asked: number[] = [];
    const uploads = uploadsIn(directory(), { admit: (bytes) => void asked.push(bytes) });
    await uploads.begin(KEY);
    await piece(uploads, 0, 1_000);
    await uploads.begin({ sha256: "b".repeat(64), size_bytes: 70 });
    expect(asked).toEqual([5_000, 0, 70 + 4_000]);
  });

  test("that is not there refuses the upload, and leaves nothing", async () => {
    const spool = directory();
    const uploads = uploadsIn(spool, {
      admit: () => {
        throw new RelayError("storage_admission_refused", "no room");
      },
    });
    await refused(uploads.begin(KEY), "storage_admission_refused");
    expect(fs.readdirSync(path.join(spool, "inputs"))).toEqual([]);
  });

  test("is not for more uploads than may be under way", async () => {
    const spool = directory();
    const uploads = uploadsIn(spool);
    await uploads.begin(KEY);
    for (let n = 1; n < LIMITS.inputUploads; n++)
      fs.writeFileSync(path.join(spool, "inputs", `${n.toString(16).padStart(64, "0")}-9.part`), "");
    const failure = await refused(uploads.begin({ sha256: "f".repeat(64), size_bytes: 1 }), "storage_admission_refused");
    expect(failure.data).toMatchObject({ storage_decision: { reason: "ledger_capacity" } });
    expect(await uploads.begin(KEY)).toMatchObject({ begun: false });
  });
});

describeWith("tmpfs", "a disk that fills up meanwhile", () => {
  const smallFileSystem = smallFileSystems();

  test("takes a piece not at all, and what came before is gone on with when there is room", async () => {
    const spool = smallFileSystem("256k");
    const data = Buffer.alloc(600_000, "0123456789abcdef!");
    const key = { sha256: sha256Hex(data), size_bytes: data.length };
    const uploads = uploadsIn(spool);
    await uploads.begin(key);
    const send = (from: number, to: number) => piece(uploads, from, to, Buffer.from(data.subarray(from, to)), key);
    expect(await send(0, 100_000)).toMatchObject({ state: "partial", offset: 100_000 });
    await refused(send(100_000, 400_000), "storage_admission_refused");
    expect(uploads.stand(key)).toMatchObject({ state: "partial", offset: 100_000 });
    expect(spawnSync("mount", ["-o", "remount,size=2m", spool]).status).toBe(0);
    expect(await send(100_000, 400_000)).toMatchObject({ state: "partial", offset: 400_000 });
    expect(await send(400_000, 600_000)).toMatchObject({ state: "complete" });
    expect(fs.readFileSync(inputPath(spool, key.sha256, ".content")).equals(data)).toBe(true);
  });
});

describeWith("tmpfs", "a spool that may not be written any more", () => {
  const smallFileSystem = smallFileSystems();

  test("is said, at each step, and what came goes on when it may", async () => {
    const spool = smallFileSystem("2m");
    const uploads = uploadsIn(spool);
    const mount = (how: string) => expect(spawnSync("mount", ["-o", `remount,${how}`, spool]).status).toBe(0);
    await uploads.begin(KEY);
    await piece(uploads, 0, 2_000);
    const store = {} as never;
    const around = { cluster: "c", spoolDir: spool, clock: systemClock, store } as unknown as ConstructorParameters<typeof Inputs>[0];
    const record = { logical_name: "in.lj", ...KEY, idempotency_key: "k", cluster: "c" };
    mount("ro");
    const refusals = [await refused(piece(uploads, 2_000, 3_000), "storage_admission_refused")];
    refusals.push(await refused(uploads.begin({ ...KEY, size_bytes: 9 }), "storage_admission_refused"));
    mount("rw");
    expect(await piece(uploads, 2_000, 5_000)).toMatchObject({ state: "complete" });
    mount("ro");
    const inputs = new Inputs(around, 1, () => undefined);
    refusals.push(await refused(inputs.record(record as never, null), "storage_admission_refused"));
    refusals.push(await refused(inputs.stand([KEY]), "storage_admission_refused"));
    mount("rw");
    for (const { data } of refusals)
      expect(data["storage_decision"]).toMatchObject({ reason: "persistence_failure", directory: "spool", system_code: "EROFS" });
  });
});
