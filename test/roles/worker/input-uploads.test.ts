import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../../src/domain/errors.ts";
import type { ContentKey, UploadKey } from "../../../src/domain/input.ts";
import { LIMITS } from "../../../src/domain/limits.ts";
import { nameContent } from "../../../src/execution/input-content.ts";
import { flushPart } from "../../../src/execution/input-part.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import type { InputUploads } from "../../../src/roles/worker/input-uploads.ts";
import { PartFlushes } from "../../../src/roles/worker/part-flushes.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { contentOf, DATA, KEY, modeOf, partOf, piece, refused, uploadsIn } from "./uploads.ts";

const directory = temporaryDirectories();
const EMPTY: ContentKey = { sha256: sha256Hex(""), size_bytes: 0 };

describe("pieces", () => {
  test("in order make the content, which is there for its owner to read only", async () => {
    const spool = directory();
    const uploads = uploadsIn(spool);
    expect(uploads.stand(KEY)).toEqual({ ...KEY, state: "absent", offset: 0, chunk_max_bytes: LIMITS.inputChunkBytes });
    expect(await uploads.begin(KEY)).toMatchObject({ begun: true, upload: { state: "partial", offset: 0 } });
    expect(modeOf(partOf(spool))).toBe(0o600);
    expect(await piece(uploads, 0, 2_000)).toMatchObject({ state: "partial", offset: 2_000 });
    expect(await uploads.begin(KEY)).toMatchObject({ begun: false, upload: { offset: 2_000 } });
    expect(await piece(uploads, 2_000, 5_000)).toMatchObject({ state: "complete", offset: 5_000 });
    expect(fs.existsSync(partOf(spool))).toBe(false);
    const file = contentOf(spool, ".content");
    expect(fs.readFileSync(file).equals(DATA)).toBe(true);
    expect([modeOf(file), modeOf(path.dirname(file)), modeOf(path.join(spool, "inputs"))]).toEqual([0o400, 0o500, 0o700]);
    expect(await uploads.begin(KEY)).toMatchObject({ begun: false, upload: { state: "complete" } });
    expect(await piece(uploads, 0, 2_000)).toMatchObject({ state: "complete" });
  });

  test("that come early wait for those before them, in whatever order they come", async () => {
    const uploads = uploadsIn(directory());
    await uploads.begin(KEY);
    const bounds = [0, 10, 1_000, 1_001, 4_000, 5_000];
    const order = [3, 1, 4, 0, 2];
    const done = await Promise.all(order.map((n) => piece(uploads, bounds[n]!, bounds[n + 1]!)));
    expect(done.some(({ state }) => state === "complete")).toBe(true);
    expect(uploads.stand(KEY).state).toBe("complete");
  });

  test("whose predecessors do not come are a conflict that says where to go on", async () => {
    const uploads = uploadsIn(directory(), { predecessorsMs: 20 });
    await refused(piece(uploads, 0, 10), "input_ingest_unavailable");
    await uploads.begin(KEY);
    await piece(uploads, 0, 10);
    const failure = await refused(piece(uploads, 11, 20), "input_ingest_conflict");
    expect(failure.data).toMatchObject({ offset: 10 });
    expect(failure.rule.retryable).toBe(true);
    expect(uploads.stand(KEY).offset).toBe(10);
  });

  test("that are there already are passed over, and parts of them", async () => {
    const uploads = uploadsIn(directory());
    await uploads.begin(KEY);
    await piece(uploads, 0, 3_000);
    expect(await piece(uploads, 0, 3_000)).toMatchObject({ offset: 3_000 });
    expect(await piece(uploads, 2_000, 5_000)).toMatchObject({ state: "complete" });
  });

  test("behind the end are refused, and nothing of them is kept", async () => {
    const uploads = uploadsIn(directory());
    await uploads.begin(KEY);
    await refused(piece(uploads, 0, 0, Buffer.alloc(5_001)), "input_ingest_refused");
    expect(uploads.stand(KEY).offset).toBe(0);
  });

  test("give their memory back as soon as they are written", async () => {
    const uploads = uploadsIn(directory());
    const data = Buffer.alloc(40_000, "0123456789");
    const key = { sha256: sha256Hex(data), size_bytes: data.length };
    await uploads.begin(key);
    for (const from of [0, 20_000]) {
      const bytes = new Uint8Array(data.subarray(from, from + 20_000));
      await piece(uploads, from, from + 20_000, bytes, key);
      expect(bytes.length).toBe(0);
    }
    expect(uploads.stand(key).state).toBe("complete");
  });

  test("of an empty content there are none", async () => {
    const uploads = uploadsIn(directory());
    expect(await uploads.begin(EMPTY)).toMatchObject({ upload: { state: "complete", offset: 0 } });
    await refused(uploads.begin({ ...KEY, size_bytes: 0 }), "input_ingest_refused");
  });

  test("whose body does not come leave everything as it was, and nobody waiting", async () => {
    const uploads = uploadsIn(directory());
    await uploads.begin(KEY);
    await refused(
      uploads.piece(KEY, 0, async () => {
        throw new RelayError("request_timeout", "too slow");
      }),
      "request_timeout",
    );
    expect(await piece(uploads, 0, 5_000)).toMatchObject({ state: "complete" });
  });
});

test("another digest than said throws everything away, and the next upload begins anew", async () => {
  const spool = directory();
  const uploads = uploadsIn(spool);
  await uploads.begin(KEY);
  const wrong = Buffer.from(DATA);
  wrong[4_999]! ^= 1;
  await piece(uploads, 0, 3_000, wrong.subarray(0, 3_000));
  const failure = await refused(piece(uploads, 3_000, 5_000, wrong.subarray(3_000)), "input_ingest_refused");
  expect(failure.data).toMatchObject({ found_sha256: sha256Hex(wrong) });
  expect(uploads.stand(KEY)).toMatchObject({ state: "absent", offset: 0 });
  expect(fs.readdirSync(path.join(spool, "inputs"))).toEqual([]);
  await uploads.take(KEY, DATA);
  expect(uploads.stand(KEY).state).toBe("complete");
});

test("another process goes on with what it finds", async () => {
  const spool = directory();
  const before = uploadsIn(spool);
  await before.begin(KEY);
  await piece(before, 0, 4_321);
  const after = uploadsIn(spool);
  expect(after.stand(KEY)).toMatchObject({ state: "partial", offset: 4_321 });
  expect(await piece(after, 4_321, 5_000)).toMatchObject({ state: "complete" });
});

test("one that died after the last piece left a part that the next request completes", async () => {
  const spool = directory();
  await uploadsIn(spool).begin(KEY);
  fs.writeFileSync(partOf(spool), DATA);
  expect(await uploadsIn(spool).begin(KEY)).toMatchObject({ begun: false, upload: { state: "complete" } });
  // Rename and no more: the directory is still open.
  fs.chmodSync(path.dirname(contentOf(spool, ".content")), 0o700);
  expect((await nameContent(spool, KEY, "in.lj"))?.size).toBe(5_000n);
  expect(modeOf(path.dirname(contentOf(spool, "in.lj")))).toBe(0o500);
});

test("a part that somebody else has taken away is said to be gone, and nothing is made in its place", async () => {
  const spool = directory();
  const uploads = uploadsIn(spool);
  await uploads.begin(KEY);
  await piece(uploads, 0, 2_000);
  fs.rmSync(partOf(spool));
  await refused(piece(uploads, 2_000, 3_000), "input_ingest_unavailable");
  expect(fs.readdirSync(path.join(spool, "inputs"))).toEqual([]);
  await uploads.begin(KEY);
  expect(await piece(uploads, 0, 5_000)).toMatchObject({ state: "complete" });
});

describe("what has come", () => {
  /** Uploads whose parts are flushed each 1,000 bytes, as `flush` does it. */
  const flushed = (spool: string, flush: (spool: string, key: UploadKey) => Promise<void>) =>
    uploadsIn(spool, { flushes: new PartFlushes(spool, flush, 1_000) });

  test("is flushed while more of it comes, one flush at a time, and its end waits for that", async () => {
    const going: PromiseWithResolvers<void>[] = [];
    const uploads = flushed(directory(), () => {
      going.push(Promise.withResolvers<void>());
      return going.at(-1)!.promise;
    });
    await uploads.begin(KEY);
    await piece(uploads, 0, 900);
    expect(going).toHaveLength(0);
    await piece(uploads, 900, 1_100);
    await piece(uploads, 1_100, 3_000);
    expect(going).toHaveLength(1);
    let over = false;
    const last = piece(uploads, 3_000, 5_000).then((upload) => {
      over = true;
      return upload;
    });
    await eventually(() => uploads.stand(KEY).offset === 5_000, { what: "the last bytes" });
    expect([over, uploads.stand(KEY).state]).toEqual([false, "partial"]);
    going[0]!.resolve();
    expect(await last).toMatchObject({ state: "complete" });
  });

  test("is thrown away where a flush fails, which is said by the next piece or by its end, and the next upload begins anew", async () => {
    for (const [code, bytes, said] of [
      ["EIO", [0, 1_500, 3_000], "persistence_failure"],
      ["EIO", [0, 1_500, 5_000], "persistence_failure"],
      ["ENOSPC", [0, 1_500, 3_000], "filesystem_free_reserve"],
    ] as const) {
      const spool = directory();
      let failures = 1;
      const uploads = flushed(spool, async (where, key) => {
        if (failures-- > 0) throw Object.assign(new Error(code), { code, syscall: "fdatasync" });
        await flushPart(where, key);
      });
      await uploads.begin(KEY);
      await piece(uploads, bytes[0], bytes[1]);
      const failure = await refused(piece(uploads, bytes[1], bytes[2]), "storage_admission_refused");
      expect(failure.data["storage_decision"]).toMatchObject({ reason: said });
      expect(uploads.stand(KEY).state).toBe("absent");
      await uploads.begin(KEY);
      await piece(uploads, 0, 1_500);
      expect(await piece(uploads, 1_500, 5_000)).toMatchObject({ state: "complete" });
    }
  });
});

describe("a provisional upload", () => {
  const NAME: UploadKey = { sha256: "a".repeat(64), size_bytes: DATA.length, provisional: true };
  const fileOf = (spool: string) => path.join(spool, "inputs", `${NAME.sha256}-${NAME.size_bytes}.provisional`);
  const cameIn = async (spool: string, bytes: Uint8Array = DATA): Promise<InputUploads> => {
    const uploads = uploadsIn(spool);
    expect(await uploads.begin(NAME)).toEqual({
      begun: true,
      upload: { ...NAME, state: "partial", offset: 0, chunk_max_bytes: LIMITS.inputChunkBytes },
    });
    await piece(uploads, 0, 3_000, bytes.subarray(0, 3_000), NAME);
    expect(await piece(uploads, 3_000, 5_000, bytes.subarray(3_000), NAME)).toMatchObject({ state: "partial", offset: 5_000 });
    return uploads;
  };

  test("is the content whose digest it is said to have, once that is said", async () => {
    const spool = directory();
    const uploads = await cameIn(spool);
    expect([modeOf(fileOf(spool)), uploads.stand(KEY).state]).toEqual([0o600, "absent"]);
    expect(await uploads.complete(NAME.sha256, KEY)).toEqual({
      ...KEY,
      state: "complete",
      offset: 5_000,
      chunk_max_bytes: LIMITS.inputChunkBytes,
    });
    expect(fs.readFileSync(contentOf(spool, ".content")).equals(DATA)).toBe(true);
    expect(fs.readdirSync(path.join(spool, "inputs"))).toEqual([KEY.sha256]);
    // Asked again, and after somebody else has sent the same.
    expect(await uploads.complete(NAME.sha256, KEY)).toMatchObject({ state: "complete" });
  });

  test("goes on in another process, and is hashed there", async () => {
    const spool = directory();
    const before = uploadsIn(spool);
    await before.begin(NAME);
    await piece(before, 0, 4_321, undefined, NAME);
    const after = uploadsIn(spool);
    expect(await after.begin(NAME)).toMatchObject({ begun: false, upload: { state: "partial", offset: 4_321 } });
    expect((await refused(after.complete(NAME.sha256, KEY), "input_ingest_conflict")).data).toMatchObject({ offset: 4_321 });
    await piece(after, 4_321, 5_000, undefined, NAME);
    expect(await uploadsIn(spool).complete(NAME.sha256, KEY)).toMatchObject({ state: "complete" });
  });

  test("with another digest is thrown away, and one that never began is no content", async () => {
    const spool = directory();
    const uploads = await cameIn(spool, Buffer.alloc(5_000, "wrong"));
    await refused(uploads.complete(NAME.sha256, KEY), "input_ingest_refused");
    expect(fs.readdirSync(path.join(spool, "inputs"))).toEqual([]);
    await refused(uploads.complete(NAME.sha256, KEY), "input_ingest_unavailable");
    await refused(piece(uploads, 0, 1, undefined, NAME), "input_ingest_unavailable");
  });

  test("takes the place of what has come by digest, and goes where that has all come", async () => {
    const spool = directory();
    const uploads = await cameIn(spool);
    await uploads.begin(KEY);
    await piece(uploads, 0, 1_000);
    expect(await uploads.complete(NAME.sha256, KEY)).toMatchObject({ state: "complete" });
    expect(fs.readdirSync(path.join(spool, "inputs"))).toEqual([KEY.sha256]);
    const other = directory();
    const late = await cameIn(other);
    await late.take(KEY, DATA);
    expect(await late.complete(NAME.sha256, KEY)).toMatchObject({ state: "complete" });
    expect(fs.readdirSync(path.join(other, "inputs"))).toEqual([KEY.sha256]);
  });

  test("is begun only where nothing of its size is there that may be the same", async () => {
    const spool = directory();
    const uploads = uploadsIn(spool);
    await uploads.begin(KEY);
    expect(await uploads.begin(NAME)).toMatchObject({ begun: false, upload: { state: "absent", offset: 0 } });
    await piece(uploads, 0, 5_000);
    expect(await uploads.begin(NAME)).toMatchObject({ begun: false, upload: { state: "absent" } });
    const larger = { ...NAME, size_bytes: 5_001 };
    expect(await uploads.begin(larger)).toMatchObject({ begun: true, upload: { state: "partial" } });
    // Another file of that size may be as new as this one.
    expect(await uploads.begin({ ...larger, sha256: "b".repeat(64) })).toMatchObject({ begun: true });
  });

  test("may be called as its digest is, and may be given up", async () => {
    const spool = directory();
    const uploads = uploadsIn(spool);
    const key: UploadKey = { ...KEY, provisional: true };
    await uploads.begin(key);
    await piece(uploads, 0, 10, undefined, key);
    expect(await uploads.giveUp(key)).toMatchObject({ state: "absent" });
    await uploads.begin(key);
    await piece(uploads, 0, 5_000, undefined, key);
    expect(await uploads.complete(KEY.sha256, KEY)).toMatchObject({ state: "complete" });
  });
});

test("two that send the same at once share the work, whoever comes first where", async () => {
  const spool = directory();
  const uploads = uploadsIn(spool);
  const client = async (step: number): Promise<void> => {
    const { upload } = await uploads.begin(KEY);
    for (let at = upload.offset; at < KEY.size_bytes; ) {
      const stand = await piece(uploads, at, Math.min(at + step, KEY.size_bytes));
      at = Math.max(stand.offset, at);
    }
  };
  await Promise.all([client(7), client(11), client(1_000)]);
  expect(fs.readFileSync(contentOf(spool, ".content")).equals(DATA)).toBe(true);
});
