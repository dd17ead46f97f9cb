import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { Duplex } from "node:stream";
import ssh2 from "ssh2";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { eventually } from "../../runner/wait.ts";
import { pairOfDuplexes } from "./duplexes.ts";
import { echo, HOST, open, readAll, serverOf } from "./peers.ts";

const MIB = 2 ** 20;

/** A connection whose other end the test has. */
function connection(): { near: Duplex; far: Duplex } {
  const { client, server } = pairOfDuplexes();
  return { near: client, far: server };
}

/** A session of ours with a server of ours whose channels are joined with what `connect` gives. */
async function session(connect: () => Promise<Duplex>, options: { rekeyBytes?: number } = {}) {
  const pair = pairOfDuplexes();
  const { server } = serverOf({ connect, ...options });
  const served = server.serve(pair.server)!;
  return { ...pair, served, client: pair.client, session: await open(pair.client) };
}

describe("a channel", () => {
  test("carries any bytes both ways at once, unchanged, through new keys again and again", async () => {
    const { session: link, served } = await session(async () => echo(), { rekeyBytes: 300_000 });
    const channels = await Promise.all(Array.from({ length: 4 }, () => link.openSocket("/")));
    await Promise.all(
      channels.map(async (channel) => {
        const data = randomBytes(3 * MIB);
        const back = readAll(channel);
        for (let at = 0; at < data.length; at += 70_001) channel.write(data.subarray(at, at + 70_001));
        channel.end();
        expect(sha256Hex(await back)).toBe(sha256Hex(data));
      }),
    );
    expect(served.stats().bytesIn).toBeGreaterThan(12 * MIB);
    link.close();
  });

  test("tells the end of data in one direction, and the other goes on", async () => {
    const { near, far } = connection();
    const { session: link } = await session(async () => near);
    const channel = await link.openSocket("/");
    channel.end("question");
    expect(String(await readAll(far))).toBe("question");
    const answer = readAll(channel);
    far.write("ans");
    await Bun.sleep(5);
    far.end("wer");
    expect(String(await answer)).toBe("answer");
    link.close();
  });

  test("and the other way round: the connection has said all, and still hears", async () => {
    const { near, far } = connection();
    const { session: link } = await session(async () => near);
    const channel = await link.openSocket("/");
    const heard = readAll(far);
    far.end("all");
    expect(String(await readAll(channel))).toBe("all");
    channel.write("and ");
    channel.end("more");
    expect(String(await heard)).toBe("and more");
    link.close();
  });

  test("whose connection breaks is an error, not an end", async () => {
    const { near, far } = connection();
    const { session: link } = await session(async () => near);
    const channel = await link.openSocket("/");
    far.write("half");
    await eventually(() => channel.readableLength > 0 || null);
    near.destroy(new Error("broken"));
    await expect(readAll(channel)).rejects.toMatchObject({ code: "link_down" });
    expect(await link.roundTrip()).toBeGreaterThan(0);
    link.close();
  });

  test("that the client drops takes its connection with it, and nothing else", async () => {
    const { near } = connection();
    const connections = [near, echo()];
    const { session: link } = await session(async () => connections.shift()!);
    const [first, second] = [await link.openSocket("/"), await link.openSocket("/")];
    first.destroy();
    await eventually(() => near.destroyed);
    second.end("x");
    expect(String(await readAll(second))).toBe("x");
    link.close();
  });

  test("that cannot have a connection is refused, and the session goes on", async () => {
    const { session: link } = await session(() => Promise.reject(new Error("nobody listens")));
    await expect(link.openSocket("/")).rejects.toMatchObject({ code: "channel_refused", data: { reason: "connect_failed" } });
    expect(await link.roundTrip()).toBeGreaterThan(0);
    link.close();
  });

  test("is an error for whoever reads and writes when the session ends, however it ends", async () => {
    for (const end of ["client gone", "server gone", "closed by the server", "closed here"]) {
      const { near } = connection();
      const { session: link, client, server, served } = await session(async () => near);
      const channel = await link.openSocket("/");
      const read = readAll(channel);
      const opening = link.openSocket("/").catch((error: unknown) => error);
      if (end === "client gone") client.destroy();
      else if (end === "server gone") server.destroy();
      else if (end === "closed by the server") served.close();
      else link.close();
      await expect(read, end).rejects.toMatchObject({ code: "link_down" });
      expect(channel.destroyed, end).toBe(true);
      await opening;
      const closed = await link.closed;
      if (end === "closed here") expect(closed).toBeNull();
      else expect(closed, end).toMatchObject({ code: "link_down" });
      await expect(link.openSocket("/"), end).rejects.toMatchObject({ code: "link_down" });
      await expect(link.roundTrip(), end).rejects.toMatchObject({ code: "link_down" });
      await eventually(() => near.destroyed, { what: end });
    }
  });

  test("of a reader that stops holds up its own writer, with a bounded amount in between, and nobody else", async () => {
    let written = 0;
    const endless = (): Duplex =>
      new Duplex({
        read() {
          written += 65_536;
          this.push(Buffer.alloc(65_536));
        },
        write: (_chunk, _encoding, done) => done(),
      });
    const connections = [endless(), echo()];
    const { session: link } = await session(async () => connections.shift()!);
    const stopped = await link.openSocket("/");
    stopped.pause();
    let before = -1;
    await eventually(
      async () => {
        const still = before === written;
        before = written;
        return still && written > 0;
      },
      { everyMs: 100 },
    );
    expect(written).toBeLessThan(8 * MIB);
    const other = await link.openSocket("/");
    other.end("y");
    expect(String(await readAll(other))).toBe("y");
    link.close();
  });
});

describe("what is aborted", () => {
  test("before it has opened is closed when it opens", async () => {
    const { promise, resolve: give } = Promise.withResolvers<Duplex>();
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    const { session: link } = await session(() => {
      ask();
      return promise;
    });
    const controller = new AbortController();
    const opening = link.openSocket("/", controller.signal);
    await asked;
    controller.abort(new Error("enough"));
    await expect(opening).rejects.toThrow("enough");
    const late = echo();
    give(late);
    await eventually(() => late.destroyed);
    await expect(link.openSocket("/", controller.signal)).rejects.toThrow("enough");
    await expect(link.roundTrip(controller.signal)).rejects.toThrow("enough");
    link.close();
  });
});

test("a server that sends more than it may is cut off from that channel", async () => {
  const { client, server } = pairOfDuplexes();
  const flooding = new ssh2.Server({ hostKeys: [HOST.privateKey], algorithms: { cipher: ["aes128-gcm@openssh.com"] } }, (connection) => {
    connection.on("authentication", (context) => context.accept());
    connection.on("error", () => undefined);
    connection.on("openssh.streamlocal", (accept) => {
      const channel = accept() as unknown as { outgoing: { id: number } };
      const { _protocol: protocol } = connection as unknown as { _protocol: { channelData(id: number, data: Buffer): void } };
      for (let i = 0; i < 300; i++) protocol.channelData(channel.outgoing.id, Buffer.alloc(32_000));
    });
  });
  flooding.injectSocket(server as never);
  const link = await open(client);
  const channel = await link.openSocket("/");
  await eventually(() => channel.destroyed);
  expect(channel.errored).toMatchObject({ code: "link_down" });
  expect(await link.roundTrip()).toBeGreaterThan(0);
  link.close();
});
