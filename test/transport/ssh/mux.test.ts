import { expect, test } from "bun:test";
import { once } from "node:events";
import net from "node:net";
import path from "node:path";
import { RelayError } from "../../../src/domain/errors.ts";
import { openMuxSession } from "../../../src/transport/ssh/openssh/mux-control.ts";
import { type Field, frame } from "../../../src/transport/ssh/openssh/mux-frames.ts";
import type { MuxSession } from "../../../src/transport/ssh/openssh/mux-session.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { FakeTime } from "../link/fake-time.ts";
import { readAll } from "../session/peers.ts";

const HELLO = frame(1, 4);
const PROXIED = frame(0x8000000f, 0);
const [OPEN, CONFIRMED, OPEN_FAILURE, ADJUST, DATA, EOF, CLOSE, REQUEST, FAILURE] = [90, 91, 92, 93, 94, 96, 97, 98, 100] as const;

const message = (type: number, ...fields: Field[]): Buffer => frame({ byte: 0 }, { byte: type }, ...fields);

/** What a master's control socket may say, and the end of its process. */
class Master implements Disposable {
  readonly #directory = temporaryDirectory();
  readonly path = path.join(this.#directory.path, "m");
  readonly #over = Promise.withResolvers<RelayError>();
  readonly holder = { over: this.#over.promise, end: (): void => this.#over.resolve(new RelayError("link_down", "ssh ended")) };
  /** Stands still until the test lets it go on. */
  readonly clock = new FakeTime(() => Promise.resolve());
  readonly #server: net.Server;
  /** Types of the messages that came once it was a proxy. */
  readonly types: number[] = [];

  /** @param answers to the greeting and the request, then to each message, by its type */
  constructor(answers: readonly Buffer[], then: (type: number, socket: net.Socket, id: number) => void = () => undefined) {
    const left = [...answers];
    this.#server = net.createServer((socket) => {
      socket.write(left.shift() ?? HELLO);
      let rest = Buffer.alloc(0);
      let count = 0;
      socket.on("error", () => undefined);
      socket.on("data", (chunk: Buffer) => {
        rest = Buffer.concat([rest, chunk]);
        while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE()) {
          const type = rest[5]!;
          const id = type === OPEN ? rest.readUInt32BE(10 + rest.readUInt32BE(6)) : 0;
          rest = rest.subarray(4 + rest.readUInt32BE());
          if (++count === 2) {
            const last = left.shift();
            if (last === undefined) socket.end();
            else socket.write(last);
          } else if (count > 2) {
            this.types.push(type);
            then(type, socket, id);
          }
        }
      });
    });
  }

  async open(): Promise<MuxSession> {
    this.#server.listen(this.path);
    await once(this.#server, "listening");
    return openMuxSession(this.path, this.holder, this.clock);
  }

  [Symbol.dispose](): void {
    this.holder.end();
    this.#server.close();
    this.#directory[Symbol.dispose]();
  }
}

test.each<[string, Buffer[]]>([
  ["another version", [frame(1, 5)]],
  ["no greeting", [frame(0x80000003, 0, "no")]],
  ["no such request", [HELLO, frame(0x80000003, 0, "unsupported request")]],
  ["an end", [HELLO]],
])("an ssh that answers with %s is too old", async (_what, answers) => {
  using master = new Master(answers);
  await expect(master.open()).rejects.toMatchObject({ code: "configuration_error", hint: expect.stringContaining("7.4") });
});

test("an ssh that ends before it listens says why", async () => {
  using master = new Master([]);
  master.holder.end();
  await expect(openMuxSession(master.path, master.holder, master.clock)).rejects.toMatchObject({ code: "link_down", message: "ssh ended" });
});

test.each<[string, Buffer]>([
  ["longer than any", Buffer.from([0, 4, 0, 1])],
  ["that ends in the middle of a field", frame({ byte: 0 }, { byte: CONFIRMED }, 0, 1)],
  ["whose string is longer than itself", Buffer.from([0, 0, 0, 10, 0, 92, 0, 0, 0, 0, 0, 0, 0, 1])],
])("a message %s ends the session", async (_what, bytes) => {
  using master = new Master([HELLO, PROXIED], (type, socket) => void (type === OPEN && socket.write(bytes)));
  const session = await master.open();
  await expect(session.openSocket("/s")).rejects.toMatchObject({ code: "link_down" });
  expect((await session.closed)?.code).toBe("link_down");
});

/** A session with one channel open, whose other side then does what it is told. */
async function opened(master: Master) {
  const session = await master.open();
  return { session, channel: await session.openSocket("/s") };
}

const confirming = (window: number, maxPacket: number, more: readonly Buffer[], bytewise = false) =>
  new Master([HELLO, PROXIED], (type, socket) => {
    if (type !== OPEN) return;
    const all = Buffer.concat([message(CONFIRMED, 0, 7, window, maxPacket), ...more]);
    if (bytewise) for (const byte of all) socket.write(Buffer.from([byte]));
    else socket.write(all);
  });

test("messages may come in any pieces, and what came before the end is there to be read", async () => {
  const said = [message(DATA, 0, "one "), message(DATA, 0, "two"), message(EOF, 0), message(CLOSE, 0)];
  using master = confirming(100, 1_000, said, true);
  const { session, channel } = await opened(master);
  expect(String(await readAll(channel))).toBe("one two");
  session.close();
  expect(await session.closed).toBeNull();
});

test.each<[string, number, Buffer[]]>([
  ["sends more than its window", 1_000, [...Array.from({ length: 33 }, () => message(DATA, 0, Buffer.alloc(32 * 1024)))]],
  ["closes without an end", 1_000, [message(DATA, 0, "half"), message(CLOSE, 0)]],
  ["takes a byte at a time", 1, []],
])("a channel whose other side %s is an error, and the session goes on", async (_what, maxPacket, more) => {
  using master = confirming(1_000, maxPacket, more);
  const { session, channel } = await opened(master);
  await eventually(() => channel.errored, { what: "the error" });
  expect(channel.errored).toMatchObject({ code: "link_down" });
  expect(session.stats().bytesIn).toBeGreaterThan(0);
  session.close();
  expect(await session.closed).toBeNull();
});

test("what is written waits for the window, and is dropped when the channel is closed", async () => {
  const sent: number[] = [];
  using master = new Master([HELLO, PROXIED], (type, socket) => {
    if (type === OPEN) socket.write(message(CONFIRMED, 0, 7, 300, 256));
    if (type === DATA) sent.push(1);
    if (sent.length === 2 && type === DATA) socket.write(message(ADJUST, 0, 200));
  });
  const { session, channel } = await opened(master);
  // 256 and 44 bytes, then 200 more.
  await new Promise<void>((resolve) => void channel.write(Buffer.alloc(500), () => resolve()));
  await eventually(() => sent.length === 3, { what: "the third piece" });
  const stuck = new Promise<void>((resolve) => void channel.write("more", () => resolve()));
  channel.destroy();
  await stuck;
  await eventually(() => master.types.includes(CLOSE), { what: "the close" });
  expect(sent.length).toBe(3);
  session.close();
});

/** A master that refuses what is asked for, until it is told otherwise. */
function refusing(): { master: Master; asked: () => number; yields: { now: boolean } } {
  const yields = { now: false };
  let open = 0;
  const master = new Master([HELLO, PROXIED], (type, socket, id) => {
    if (type === OPEN) socket.write(yields.now ? message(CONFIRMED, id, 7, 1_000, 1_000) : message(OPEN_FAILURE, id, 2, "nobody", ""));
    if (type === OPEN) open = id;
    if (type === REQUEST) socket.write(message(FAILURE, open));
  });
  return { master, yields, asked: () => master.types.filter((type) => type === OPEN).length };
}

test("after many refusals what was refused is asked for again from time to time only, so that ssh can keep them all", async () => {
  const { master, asked, yields } = refusing();
  using _ = master;
  const session = await master.open();
  const ask = () => session.openSocket("/s").catch((error: RelayError) => error);
  for (let count = 0; count < 520; count++) expect(await ask()).toMatchObject({ data: { reason: "connect_failed" } });
  expect(asked()).toBe(500);
  // An hour of a ping each 15 s.
  for (let count = 0; count < 240; count++) {
    await master.clock.pass(15_000);
    expect(await ask()).toMatchObject({ data: { reason: "connect_failed" } });
  }
  expect(asked()).toBeLessThan(500 + 66);
  const before = asked();
  yields.now = true;
  expect(await ask()).toBeInstanceOf(RelayError);
  // Something is done on the host, and another target was never refused.
  (await session.openTcp("127.0.0.1", 22)).destroy();
  expect(await ask()).toBeInstanceOf(RelayError);
  const command = await session.exec("true").catch((error: RelayError) => error);
  expect(command).toBeInstanceOf(RelayError);
  expect(await ask()).not.toBeInstanceOf(RelayError);
  expect(asked()).toBe(before + 3);
  session.close();
});

test("before ssh would end no more is asked of it, and the error says what to do", async () => {
  const { master, asked } = refusing();
  using _ = master;
  const session = await master.open();
  for (let count = 0; count < 9_500; count++) expect(await session.openTcp("h", count).catch(({ code }) => code)).toBe("channel_refused");
  const last = { code: "channel_refused", data: { reason: "refused_too_often" }, hint: expect.stringContaining("disconnect") };
  await expect(session.openTcp("h", 9_501)).rejects.toMatchObject(last);
  await expect(session.exec("true")).rejects.toMatchObject(last);
  expect(asked()).toBe(9_500);
  session.close();
});
