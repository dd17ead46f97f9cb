import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { describeWith } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { initialized, type SourceRelay, withWorker } from "../source-relay.ts";

describe("of a real job", () => {
  test("the record, the file, a file in a directory, standard output", async () => {
    await using relay = await withWorker();
    const id = await relay.submit(
      "--wait",
      "--output",
      "out/*",
      "--",
      "sh",
      "-c",
      "mkdir out; head -c 3000000 /dev/urandom > 'out/it'\\''s é.bin'",
    );
    const list = await relay.json<{
      artifacts: { artifact_id: string; kind: string; name: string; sha256: string; size_bytes: number }[];
    }>("job", "list-artifacts", id);
    const artifact = list.artifacts.find(({ kind }) => kind === "execution_output")!;
    expect(artifact).toMatchObject({ name: "out/it's é.bin", size_bytes: 3_000_000 });
    const original = fs.readFileSync(path.join(relay.directory, artifact.name));
    expect(await relay.json("job", "read-artifact", artifact.artifact_id)).toEqual(artifact);
    const shown = await relay.run(["job", "read-artifact", artifact.artifact_id]);
    expect(shown.stdout).toContain(artifact.artifact_id);
    expect(shown.stderr).toBe("the file itself: -o FILE, or -o - for standard output\n");

    expect(await relay.ok("job", "read-artifact", artifact.artifact_id, "-o", "copy")).toBe(path.join(relay.directory, "copy"));
    expect(fs.readFileSync(path.join(relay.directory, "copy")).equals(original)).toBe(true);
    const again = await relay.run(["job", "read-artifact", artifact.artifact_id, "-o", "copy"]);
    expect([again.code, again.stdout.trim()]).toEqual([0, path.join(relay.directory, "copy")]);
    fs.writeFileSync(path.join(relay.directory, "copy"), "mine");
    const occupied = await relay.run(["job", "read-artifact", artifact.artifact_id, "-o", "copy"]);
    expect([occupied.code, occupied.stderr]).toEqual([
      7,
      `error: another file is there already: ${path.join(relay.directory, "copy")} [state_conflict]\nhint: another -o, or --overwrite\n`,
    ]);
    expect(fs.readFileSync(path.join(relay.directory, "copy"), "utf8")).toBe("mine");
    await relay.ok("job", "read-artifact", artifact.artifact_id, "-o", "copy", "--overwrite");
    expect(fs.readFileSync(path.join(relay.directory, "copy")).equals(original)).toBe(true);
    const target = path.join(relay.directory, "target");
    fs.mkdirSync(target);
    await relay.ok("job", "read-artifact", artifact.artifact_id, "-o", "target/");
    expect(fs.readdirSync(target)).toEqual(["it's é.bin"]);
    const child = relay.start(["job", "read-artifact", artifact.artifact_id, "-o", "-"]);
    expect(Buffer.from(await child.stdout.bytes()).equals(original)).toBe(true);

    const none = await relay.run(["job", "read-artifact", artifact.artifact_id, "-o", "nowhere/x"]);
    expect([none.code, none.stderr]).toEqual([2, "error: -o nowhere/x: there is no directory nowhere [local_file_missing]\n"]);
    const file = await relay.run(["job", "read-artifact", artifact.artifact_id, "-o", "copy/"]);
    expect([file.code, file.stderr]).toEqual([1, "error: -o copy/: that is not a directory [local_file_unusable]\n"]);
    const long = "x".repeat(256);
    const refused = await relay.run(["job", "read-artifact", artifact.artifact_id, "-o", long]);
    expect([refused.code, refused.stderr]).toEqual([1, `error: -o ${long}: no file can have that path [local_file_unusable]\n`]);
    expect((await relay.run(["job", "read-artifact", artifact.artifact_id, "-o", long.slice(1)])).code).toBe(0);
    expect((await relay.run(["job", "read-artifact", `artifact_${"0".repeat(32)}`, "-o", "x"])).code).toBe(3);
    expect(fs.existsSync(path.join(relay.directory, "x"))).toBe(false);
  });
});

/** How the worker of these tests gives its one artifact. */
interface Manner {
  /** Bytes after which each answer breaks off. */
  readonly breakAfter?: number;
  /** What is given in place of the recorded bytes. */
  readonly instead?: Uint8Array<ArrayBuffer>;
  /** Called with the range's start of each request; may wait. */
  readonly onRequest?: (start: number) => Promise<void> | void;
}

const CONTENT = new Uint8Array(1_000_000).map((_, at) => (at * 7) % 251);
const ARTIFACT = {
  artifact_id: "artifact_1",
  job_id: "job_1",
  sequence: 1,
  kind: "execution_output",
  name: "a/result.bin",
  uri: "spool:x",
  size_bytes: CONTENT.length,
  sha256: new Bun.CryptoHasher("sha256").update(CONTENT).digest("hex"),
  metadata: {},
  created_at: "2026-01-01T00:00:00.000Z",
};

const drained = new WeakMap<Bun.Socket, () => void>();

/** Write all of it, as fast as it is taken. */
async function send(socket: Bun.Socket, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { promise, resolve } = Promise.withResolvers<void>();
    drained.set(socket, resolve);
    const written = socket.write(bytes.subarray(at));
    if (written < 0) return;
    at += written;
    if (at < bytes.length) await promise;
  }
}

describe("of a worker with a bad day", () => {
  let relay: SourceRelay;
  let server: { stop(force: boolean): void } | undefined;
  beforeEach(async () => {
    relay = await initialized();
  });
  afterEach(async () => {
    server?.stop(true);
    server = undefined;
    await relay[Symbol.asyncDispose]();
  });

  /** Speaks just enough HTTP/1.1 to hang up in the middle of a body. */
  function serve({ breakAfter = Number.POSITIVE_INFINITY, instead = CONTENT, onRequest }: Manner): void {
    const answer = async (socket: Bun.Socket, head: string): Promise<void> => {
      const path = /^GET (\S+) /.exec(head)?.[1];
      if (path !== "/artifacts/artifact_1/content") {
        const body = JSON.stringify(path === "/artifacts/artifact_1" ? ARTIFACT : { ok: true });
        socket.end(
          `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
        );
        return;
      }
      const start = Number(/^range: bytes=(\d+)-/im.exec(head)?.[1] ?? 0);
      await onRequest?.(start);
      const length = instead.length - start;
      const given = instead.subarray(start, start + Math.min(length, breakAfter));
      const lines = [`HTTP/1.1 ${start === 0 ? "200 OK" : "206 Partial Content"}`, `Content-Length: ${length}`, "Connection: close"];
      await send(socket, Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), given]));
      socket.end();
    };
    server = Bun.listen({
      unix: path.join(relay.home, "run", "worker-local.sock"),
      socket: {
        data: (socket, bytes) => void answer(socket, bytes.toString("latin1")),
        drain: (socket) => drained.get(socket)?.(),
      },
    });
  }

  const files = () => fs.readdirSync(relay.directory).filter((name) => name !== "home" && name !== "user");

  test("a fetch that breaks off goes on where it was, and is whole in the end", async () => {
    const starts: number[] = [];
    serve({ breakAfter: 300_000, onRequest: (start) => void starts.push(start) });
    const result = await relay.run(["job", "read-artifact", "artifact_1", "-o", "result"]);
    expect(result.code).toBe(0);
    expect(starts.length).toBeGreaterThan(2);
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
    expect(fs.readFileSync(path.join(relay.directory, "result")).equals(Buffer.from(CONTENT))).toBe(true);
    expect(files()).toEqual(["result"]);
  });

  test.each([
    ["other bytes", CONTENT.map((byte, at) => (at === 999_999 ? byte + 1 : byte)), /its SHA-256 is [0-9a-f]{64}, recorded is/],
    ["more bytes", new Uint8Array(CONTENT.length + 1), /it is longer than its record says/],
  ])("%s than were recorded are no file, and the one that was there stays", async (_what, instead, message) => {
    serve({ instead });
    fs.writeFileSync(path.join(relay.directory, "result"), "before");
    const result = await relay.run(["job", "read-artifact", "artifact_1", "-o", "result", "--overwrite"]);
    expect(result).toMatchObject({ code: 1, stdout: "" });
    expect(result.stderr).toMatch(message);
    expect(result.stderr).toContain("[artifact_changed]");
    expect(fs.readFileSync(path.join(relay.directory, "result"), "utf8")).toBe("before");
    expect(files()).toEqual(["result"]);
  });

  test("what is no regular file is left as it is", async () => {
    serve({});
    const fifo = path.join(relay.directory, "fifo");
    expect(Bun.spawnSync(["mkfifo", fifo]).exitCode).toBe(0);
    fs.symlinkSync("/dev/null", path.join(relay.directory, "null"));
    fs.mkdirSync(path.join(relay.directory, "into", "result.bin"), { recursive: true });
    for (const [given, shown, what] of [
      ["fifo", fifo, "no regular file"],
      ["null", path.join(relay.directory, "null"), "no regular file"],
      ["into", path.join(relay.directory, "into", "result.bin"), "a directory"],
    ] as const) {
      const result = await relay.run(["job", "read-artifact", "artifact_1", "-o", given]);
      expect(result).toMatchObject({ code: 1, stdout: "" });
      expect(result.stderr).toContain(`error: -o ${given}: ${shown} is ${what} [local_file_unusable]`);
    }
    expect(fs.lstatSync(fifo).isFIFO()).toBe(true);
    expect(fs.readlinkSync(path.join(relay.directory, "null"))).toBe("/dev/null");
    expect(files().sort()).toEqual(["fifo", "into", "null"]);
  });

  test("interrupted, it leaves nothing", async () => {
    const asked = Promise.withResolvers<void>();
    serve({
      breakAfter: 300_000,
      async onRequest(start) {
        if (start === 0) return;
        asked.resolve();
        await new Promise(() => undefined);
      },
    });
    const child = relay.start(["job", "read-artifact", "artifact_1", "-o", "result"]);
    await asked.promise;
    expect(await eventually(() => files().some((name) => name.endsWith(".part")))).toBe(true);
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
    expect(await child.stderr.text()).toContain(`interrupted; ${relay.directory}/result was not touched`);
    expect(files()).toEqual([]);
  });
});

describeWith("tmpfs", "on a full disk", () => {
  test("there is no file, and the reason is said", async () => {
    await using relay = await withWorker();
    const small = path.join(relay.directory, "small");
    fs.mkdirSync(small);
    expect(Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small]).exitCode).toBe(0);
    try {
      const id = await relay.submit("--wait", "--output", "big", "--", "sh", "-c", "head -c 1000000 /dev/zero > big");
      const artifacts = (await relay.ok("job", "list-artifacts", id)).split("\n");
      const artifact = artifacts.find((line) => line.includes("execution_output"))!.split("\t")[0]!;
      const result = await relay.run(["job", "read-artifact", artifact, "-o", "small/copy"]);
      expect(result).toMatchObject({ code: 1, stdout: "" });
      expect(result.stderr).toBe("error: -o small/copy: no space is left on its device [storage_admission_refused]\n");
      expect(fs.readdirSync(small)).toEqual([]);
    } finally {
      Bun.spawnSync(["umount", small]);
    }
  });
});
