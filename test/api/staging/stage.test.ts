import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { HttpPeer } from "../../../src/api/client/http-peer.ts";
import { InputClient } from "../../../src/api/client/input-client.ts";
import { InputFile } from "../../../src/api/staging/input-file.ts";
import { type Snapshot, type StagingOptions, snapshots, stage } from "../../../src/api/staging/stage.ts";
import { RelayError } from "../../../src/domain/errors.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { refused } from "../../contract/queue-store/scene.ts";
import { WorkerHarness } from "../../roles/worker/harness.ts";

const MIB = 2 ** 20;
let worker: WorkerHarness;
beforeAll(async () => {
  worker = await new WorkerHarness().start();
});
afterAll(async () => {
  await worker[Symbol.asyncDispose]();
});

const client = () => new InputClient("local", worker.client.http);
const inputs = () => path.join(worker.spoolDir, "inputs");

/** A file of so many bytes, of which no two are alike. */
function fresh(name: string, bytes: number): { file: string; data: Buffer } {
  const file = path.join(worker.directory, name);
  const data = Buffer.alloc(bytes, `${name} ${crypto.randomUUID()} `);
  fs.writeFileSync(file, data);
  return { file, data };
}

const OPTIONS: StagingOptions = { persist: (work) => work(), onProgress: () => undefined };
const once = (): number => 1;

const inputAt = (file: string): Promise<InputFile> =>
  InputFile.at({ where: `--input x=${path.basename(file)}`, path: file, root: worker.directory, platform: "linux" });

/** @param to where it is to go: what is large is sent while it is read */
async function taken(file: string, options: StagingOptions = OPTIONS, to?: InputClient): Promise<Snapshot> {
  return (await snapshots([{ logicalName: path.basename(file), file: await inputAt(file) }], options, to))[0]!;
}

/** Of a size that no other file here has. */
let sizes = 8 * MIB;
const freshLarge = (name: string) => fresh(name, ++sizes);

test("small files and large ones become artifacts, and what is there is not sent again", async () => {
  const [small, large] = [fresh("small.txt", 100), fresh("large.bin", 3 * MIB + 7)];
  const sent: number[] = [];
  const options = {
    ...OPTIONS,
    onProgress: ({ doing, bytes }: { doing: string; bytes: number }) => void (doing === "sending" && sent.push(bytes)),
  };
  const files = [await taken(small.file), await taken(large.file), { ...(await taken(large.file)), logicalName: "again.bin" }];
  const records = await stage(client(), files, once, options);
  expect(records.map(({ artifact }) => [artifact.name, artifact.sha256])).toEqual([
    ["small.txt", sha256Hex(small.data)],
    ["large.bin", sha256Hex(large.data)],
    ["again.bin", sha256Hex(large.data)],
  ]);
  expect(Math.max(...sent)).toBe(3 * MIB + 107);
  sent.length = 0;
  expect(await stage(client(), files, once, options)).toEqual(records);
  expect(sent).toEqual([]);
  const second = await stage(client(), [files[0]!], () => 2, options);
  expect(second[0]!.artifact.artifact_id).not.toBe(records[0]!.artifact.artifact_id);
});

const changes: readonly (readonly [string, (file: string, data: Buffer) => void])[] = [
  ["is written over", (file, data) => fs.writeFileSync(file, Buffer.alloc(data.length, "other"))],
  ["shrinks", (file) => fs.truncateSync(file, 10)],
  ["grows", (file) => fs.appendFileSync(file, "more")],
  ["vanishes", (file) => fs.rmSync(file)],
];
test.each(changes)("a file that %s while it is sent is refused, and is nobody's input", async (_, change) => {
  const { file, data } = fresh("changing.bin", 4 * MIB);
  const snapshot = await taken(file);
  let changed = false;
  const onProgress: StagingOptions["onProgress"] = ({ doing, bytes }) => {
    if (doing !== "sending" || bytes === 0 || changed) return;
    changed = true;
    change(file, data);
  };
  const failure = await refused(stage(client(), [snapshot], once, { ...OPTIONS, onProgress }), "input_changed");
  expect(failure.message).toContain("--input x=changing.bin: it changed");
  expect(changed).toBe(true);
  expect(fs.existsSync(path.join(inputs(), snapshot.key.sha256, "changing.bin"))).toBe(false);
});

test.each(changes)("a large file that %s while it is read and sent is refused, and is nobody's input", async (_, change) => {
  const { file, data } = freshLarge("changing-large.bin");
  let changed = false;
  const onProgress: StagingOptions["onProgress"] = ({ doing, bytes }) => {
    if (doing !== "sending" || bytes < MIB || changed) return;
    changed = true;
    change(file, data);
  };
  const failure = await refused(taken(file, { ...OPTIONS, onProgress }, client()), "input_changed");
  expect(failure.message).toContain("--input x=changing-large.bin: it changed");
  expect(changed).toBe(true);
  expect((await client().query([{ sha256: sha256Hex(data), size_bytes: data.length }]))[0]!.state).toBe("absent");
});

describe("a large file", () => {
  const sentBytes = (): [StagingOptions, () => number] => {
    let most = 0;
    const onProgress: StagingOptions["onProgress"] = ({ doing, bytes }) => {
      if (doing === "sending") most = Math.max(most, bytes);
    };
    return [{ ...OPTIONS, onProgress }, () => most];
  };

  test("is there once it is read; where it is there it is only read", async () => {
    const { file, data } = freshLarge("ahead.bin");
    const [options, sent] = sentBytes();
    const snapshot = await taken(file, options, client());
    expect([snapshot.key.sha256, sent()]).toEqual([sha256Hex(data), data.length]);
    expect((await client().query([snapshot.key]))[0]!.state).toBe("complete");
    const [again, sentAgain] = sentBytes();
    const second = await taken(file, again, client());
    expect((await stage(client(), [second], once, again))[0]!.artifact.sha256).toBe(snapshot.key.sha256);
    expect(sentAgain()).toBe(0);
  });

  test("goes on from where another command stopped, and is not sent from its beginning", async () => {
    const { file, data } = fresh("cut.bin", 24 * MIB);
    const stop = new AbortController();
    const onProgress: StagingOptions["onProgress"] = ({ doing, bytes }) => {
      if (doing === "sending" && bytes >= 3 * MIB) stop.abort(new Error("enough"));
    };
    const stopped = new InputClient("local", worker.client.http, stop.signal);
    await expect(taken(file, { ...OPTIONS, onProgress, signal: stop.signal }, stopped)).rejects.toThrow("enough");
    const name = (await inputAt(file)).provisionalName;
    const { offset } = await client().begin({ sha256: name, size_bytes: data.length, provisional: true });
    expect(offset).toBeGreaterThanOrEqual(3 * MIB);
    const offsets: number[] = [];
    const onOffset: StagingOptions["onProgress"] = ({ doing, bytes }) => void (doing === "sending" && offsets.push(bytes));
    const snapshot = await taken(file, { ...OPTIONS, onProgress: onOffset }, client());
    expect([snapshot.key.sha256, Math.min(...offsets) >= offset, Math.max(...offsets)]).toEqual([sha256Hex(data), true, data.length]);
    expect((await client().query([snapshot.key]))[0]!.state).toBe("complete");
  });

  test("under whose name somebody else has sent something is sent by its digest", async () => {
    const { file, data } = freshLarge("spoiled-large.bin");
    const key = { sha256: (await inputAt(file)).provisionalName, size_bytes: data.length, provisional: true } as const;
    await client().begin(key);
    await client().put(key, 0, Buffer.alloc(MIB, "wrong"), AbortSignal.timeout(30_000));
    const snapshot = await taken(file, OPTIONS, client());
    expect(await client().query([snapshot.key])).toMatchObject([{ state: "absent" }]);
    expect((await stage(client(), [snapshot], once, OPTIONS))[0]!.artifact.sha256).toBe(sha256Hex(data));
  });

  test("that two send at once is there for both", async () => {
    const { file, data } = freshLarge("both.bin");
    const staged = async () => stage(client(), [await taken(file, OPTIONS, client())], once, OPTIONS);
    const [[first], [second]] = await Promise.all([staged(), staged()]);
    expect([first!.artifact.sha256, second!.artifact]).toEqual([sha256Hex(data), first!.artifact]);
  });

  test("goes by its digest to a worker that knows no provisional names", async () => {
    const { file, data } = freshLarge("older.bin");
    const asked: string[] = [];
    // What such a worker reads of the request is a member that it does not know.
    const older = async (url: URL, init: RequestInit & { readonly unix?: string }): Promise<Response> => {
      const body = typeof init.body === "string" ? init.body.replace('"provisional":', '"unheard_of":') : init.body;
      const answer = await fetch(url, { ...init, body: body as string });
      asked.push(`${url.pathname} ${answer.status}`);
      return answer;
    };
    const peer = new HttpPeer({ address: () => ({ kind: "unix", path: worker.socket }), reopen: async () => false, fetch: older });
    const snapshot = await taken(file, OPTIONS, new InputClient("local", peer));
    expect([asked, snapshot.key.sha256]).toEqual([["/input-uploads 422"], sha256Hex(data)]);
    expect((await stage(client(), [snapshot], once, OPTIONS))[0]!.artifact.sha256).toBe(sha256Hex(data));
  });
});

test("what somebody else has sent of it, and was wrong, is sent anew", async () => {
  const { file, data } = fresh("spoiled.bin", 2 * MIB);
  const snapshot = await taken(file);
  await client().begin(snapshot.key);
  await client().put(snapshot.key, 0, Buffer.alloc(MIB, "wrong"), AbortSignal.timeout(5_000));
  const [record] = await stage(client(), [snapshot], once, OPTIONS);
  expect(record!.artifact.sha256).toBe(sha256Hex(data));
});

test("two that send the same at once both have it", async () => {
  const { file } = fresh("shared.bin", 5 * MIB);
  const [one, other] = await Promise.all([taken(file), taken(file)]);
  const [first, second] = await Promise.all([stage(client(), [one], once, OPTIONS), stage(client(), [other], once, OPTIONS)]);
  expect(second[0]!.artifact).toEqual(first[0]!.artifact);
});

test.each([
  ["is hashed first", false],
  ["is sent while it is read", true],
] as const)("a worker that is killed in the middle of a file that %s, and one that drains, are waited for", async (_, ahead) => {
  const { file, data } = freshLarge("killed.bin");
  let kills = 0;
  let restarting: Promise<unknown> = Promise.resolve();
  const persist = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof RelayError) || (error.code !== "desktop_unavailable" && error.code !== "shutting_down")) throw error;
        await restarting;
      }
    }
  };
  const onProgress: StagingOptions["onProgress"] = ({ doing, bytes }) => {
    if (doing !== "sending" || bytes < (kills + 1) * 2 * MIB || kills >= 2) return;
    kills += 1;
    restarting = (kills === 1 ? worker.kill() : worker.drain()).then(() => worker.start());
  };
  const [record] = await stage(client(), [await taken(file, { persist, onProgress }, ahead ? client() : undefined)], once, {
    persist,
    onProgress,
  });
  expect([kills, record!.artifact.sha256]).toEqual([2, sha256Hex(data)]);
  await restarting;
});

test("a worker that knows nothing of inputs is named as the side to upgrade", async () => {
  const { file } = fresh("new.txt", 10);
  const old = new InputClient("local", worker.client.http.under("/of-another-time"));
  const failure = await refused(stage(old, [await taken(file)], once, OPTIONS), "version_mismatch");
  expect(failure.hint).toContain("cluster bootstrap local");
});

test("what is staged for a generation of an owner session is another artifact than anybody else's of that content", async () => {
  const { file } = fresh("owned.txt", 100);
  const files = [await taken(file)];
  const staged = async (owner?: { owner_session_id: string; owner_session_generation_id: string }) => {
    const [record] = await stage(client(), files, once, { ...OPTIONS, ...(owner === undefined ? {} : { owner }) });
    return [record?.artifact.artifact_id, record?.job.owner_session_id, record?.job.owner_session_generation_id];
  };
  const [first, second] = ["first", "second"].map((owner_session_generation_id) => ({
    owner_session_id: "desk",
    owner_session_generation_id,
  }));
  const records = [await staged(), await staged(first), await staged(second)];
  expect(records.map(([, ...owner]) => owner)).toEqual([
    [null, null],
    ["desk", "first"],
    ["desk", "second"],
  ]);
  expect(new Set(records.map(([id]) => id)).size).toBe(3);
  expect(await staged(first)).toEqual(records[1]!);
});
