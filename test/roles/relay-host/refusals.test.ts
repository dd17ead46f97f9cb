import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import net from "node:net";
import { encode } from "../../../src/transport/meeting/frames.ts";
import { join } from "../../../src/transport/meeting/join.ts";
import { PREFACE, SUBPROTOCOL } from "../../../src/transport/meeting/messages.ts";
import { roomOf } from "../../../src/transport/meeting/proof.ts";
import { register } from "../../../src/transport/meeting/register.ts";
import { frameHeader, OPCODE } from "../../../src/transport/outbound/websocket/frames.ts";
import { requireComponent } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { bytesOf, newSigner, Place, SCHEMES, TOKEN } from "./place.ts";
import { impostor, type Opening, opening, type RawClient, rawTcp } from "./raw.ts";

const HERE = requireComponent("openssl");

let place: Place;
beforeAll(() => {
  if (!HERE) return;
  place = new Place({ times: { opening: 4_000 } });
});
afterAll(() => place?.close());

const OTHER = "another-token-0123456789abcdefghij";

function upgradeRequest(...more: string[]): string {
  const lines = ["GET /meet HTTP/1.1", "Upgrade: websocket", "Connection: upgrade", "Sec-WebSocket-Version: 13", ...more];
  const ours = [`Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`, `Sec-WebSocket-Protocol: ${SUBPROTOCOL}`];
  return `${[...lines, ...ours].join("\r\n")}\r\n\r\n`;
}

/** A client's frame, masked with nothing. */
const frameOf = (opcode: number, text: string): Buffer =>
  Buffer.concat([frameHeader(opcode, text.length, Buffer.alloc(4)), Buffer.from(text)]);

/** What becomes of an opening. */
async function comes(options: Omit<Opening, "relay"> & { relay?: string }, at: Place = place): Promise<RawClient> {
  const client = rawTcp(await at.socket("tcp"));
  client.send(opening(await client.next(), { relay: at.urls.tcp.authority, ...options }));
  return client;
}

describe.skipIf(!HERE)("who is not taken", () => {
  test("a wrong token: in the header before the upgrade, and where it is proven", async () => {
    await expect(place.dial("wss", OTHER)).rejects.toMatchObject({ code: "relay_token_refused" });
    for (const scheme of ["ws", "tls", "tcp"] as const) {
      const duplex = await place.dial(scheme);
      const wrong = register(duplex, { relay: place.urls[scheme], token: OTHER, signer: newSigner(), onJoining: () => undefined });
      await expect(wrong).rejects.toMatchObject({ code: "relay_token_refused", data: { close: "token", retry_ms: 60_000 } });
    }
  });

  test("a right token in the header does not stand for the proof", async () => {
    const duplex = await place.dial("wss");
    const wrong = register(duplex, { relay: place.urls.wss, token: OTHER, signer: newSigner(), onJoining: () => undefined });
    await expect(wrong).rejects.toMatchObject({ code: "relay_token_refused" });
  });

  test("a room that is another's cannot be squatted, nor its worker evicted", async () => {
    const { signer, streams, registration } = await place.worker("tcp");
    const stranger = newSigner();
    expect(await (await comes({ signer: stranger, room: roomOf(signer.key) })).closed()).toBe("key");
    // The worker's key, but not its signature.
    expect(await (await comes({ signer: { key: signer.key, sign: (data) => stranger.sign(data) } })).closed()).toBe("key");
    expect(
      await (await comes({ role: "join", room: roomOf(signer.key), signer: { ...signer, sign: () => randomBytes(64) } })).closed(),
    ).toBe("key");
    const desktop = await place.join("tcp", signer.key);
    desktop.write("still the same");
    expect((await bytesOf(await eventually(() => streams[0]), 14)).toString()).toBe("still the same");
    desktop.destroy();
    registration.close();
  });

  test("what was signed for one role, room, relay-host or nonce holds for no other", async () => {
    const signer = newSigner();
    const others: Opening["instead"][] = [
      { relay: "another.example:443" },
      { nonce: randomBytes(32) },
      { room: roomOf(newSigner().key) },
      { key: newSigner().key },
      { type: "join", wait: 0 } as Opening["instead"],
    ];
    for (const instead of others) expect(await (await comes({ signer, instead: instead! })).closed()).toBe("token");
    // As one who knows the token would change it.
    expect(await (await comes({ signer: { key: signer.key, sign: () => signer.sign(Buffer.from("else")) } })).closed()).toBe("key");
  });

  test("a registration that was heard is not taken again, here or at another relay-host", async () => {
    const signer = newSigner();
    const first = rawTcp(await place.socket("tcp"));
    const heard = encode(opening(await first.next(), { signer, relay: place.urls.tcp.authority }));
    first.stream.write(heard);
    expect(await first.next()).toMatchObject({ type: "registered" });
    const other = new Place();
    for (const where of [place, other]) {
      const again = rawTcp(await where.socket("tcp"));
      await again.next();
      again.stream.write(heard);
      expect(await again.closed()).toBe("token");
    }
    expect(place.relay.gauges().workers).toBe(1);
    first.stream.destroy();
    await eventually(() => place.relay.gauges().workers === 0);
    await other.close();
  });

  test("a relay-host with names takes nobody who dialed another", async () => {
    const named = new Place({ names: ["relay.example.edu:443"] });
    expect(await (await comes({ signer: newSigner() }, named)).closed()).toBe("name");
    expect(await (await comes({ signer: newSigner(), relay: "relay.example.edu:443" }, named)).next()).toMatchObject({
      type: "registered",
    });
    await named.close();
  });

  test("a version that is none", async () => {
    expect(await (await comes({ signer: newSigner(), instead: { version: 9 } })).closed()).toBe("version");
  });

  test("tickets: guessed, another's, used", async () => {
    const signer = newSigner();
    const tickets: Buffer[] = [];
    const registration = await place.register("tcp", signer, { onJoining: ({ ticket }) => tickets.push(ticket) });
    const joined = place.join("tcp", signer.key);
    const ticket = await eventually(() => tickets[0]);
    const refused = { code: "link_down", data: { close: "ticket" } };
    await expect(place.accept("tcp", signer, randomBytes(32))).rejects.toMatchObject(refused);
    await expect(place.accept("tcp", newSigner(), ticket)).rejects.toMatchObject(refused);
    const worker = await place.accept("tcp", signer, ticket);
    const desktop = await joined;
    await expect(place.accept("tcp", signer, ticket)).rejects.toMatchObject(refused);
    desktop.write("one");
    expect((await bytesOf(worker, 3)).toString()).toBe("one");
    desktop.destroy();
    registration.close();
  });
});

describe.skipIf(!HERE)("what is no frame of the protocol", () => {
  const frame = (text: string): Buffer => {
    const body = Buffer.from(text, "latin1");
    const length = Buffer.alloc(4);
    length.writeUInt32BE(body.length);
    return Buffer.concat([length, body]);
  };

  test.each<[string, Buffer]>([
    ["a frame of no length", Buffer.alloc(4)],
    ["a frame beyond the bound", Buffer.from([0, 0, 0x10, 1])],
    ["a frame of 4 GiB", Buffer.from([255, 255, 255, 255])],
    ["a request of HTTP", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["no JSON", frame("{oh")],
    ["no UTF-8", frame('{"type":"\xff"}')],
    ["no object", frame("[1,2]")],
    ["an unknown type", frame('{"type":"evict"}')],
    ["a member of another form", frame('{"type":"ping","id":"1"}')],
    ["what only a relay-host says", frame('{"type":"registered","proof":""}')],
    ["a message before its time", frame('{"type":"refuse","join":1,"reason":"key"}')],
    ["a deep document", frame("[".repeat(4_000))],
  ])("%s", async (_, bytes) => {
    const client = rawTcp(await place.socket("tcp"));
    expect(await client.next()).toMatchObject({ type: "hello" });
    client.stream.write(bytes);
    expect(await client.closed()).toBe("malformed");
    expect(await client.next()).toBe("ended");
  });

  test("a second opening, and a desktop that speaks before it is joined", async () => {
    const signer = newSigner();
    const worker = await comes({ signer });
    expect(await worker.next()).toMatchObject({ type: "registered" });
    worker.send(opening({ type: "hello", oldest: 1, newest: 1, nonce: randomBytes(32) }, { signer, relay: place.urls.tcp.authority }));
    expect(await worker.closed()).toBe("malformed");
    const desktop = await comes({ role: "join", signer, wait: 10_000 });
    expect(await desktop.next()).toMatchObject({ type: "waiting", for: "worker" });
    desktop.stream.write("SSH-2.0-x\r\n");
    expect(await desktop.closed()).toBe("malformed");
  });

  test("on TCP and TLS, what does not begin as it has to is broken off; so is HTTP that is none", async () => {
    const socket = await place.socket("tcp");
    socket.write("GET /healthz HTTP/1.1\r\n\r\n");
    expect((await bytesOf(socket).catch(() => Buffer.alloc(0))).length).toBe(0);
    const http = await place.socket("ws");
    http.write("\x16\x03\x01 is TLS\r\n\r\n");
    expect((await bytesOf(http)).toString()).toMatch(/^HTTP\/1\.1 400 /);
    const long = await place.socket("ws");
    long.write(`GET /healthz HTTP/1.1\r\n${"x: y\r\n".repeat(4_000)}`);
    expect((await bytesOf(long)).toString()).toMatch(/^HTTP\/1\.1 400 /);
  });

  test.each<[string, Buffer, number]>([
    ["text", frameOf(OPCODE.text, "x"), 1003],
    ["an unmasked frame", Buffer.from([0x82, 1, 1]), 1002],
    ["a reserved bit", Buffer.from([0xc2, 0x80, 0, 0, 0, 0]), 1002],
    ["a frame of 1 GiB", Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0]), 1009],
  ])("on a WebSocket: %s", async (_, bytes, code) => {
    const socket = await place.socket("ws");
    socket.write(upgradeRequest());
    socket.write(bytes);
    const answer = await bytesOf(socket);
    const closed = Buffer.alloc(4);
    closed.writeUInt16BE(0x8802);
    closed.writeUInt16BE(code, 2);
    expect(answer.toString("latin1", 0, 12)).toBe("HTTP/1.1 101");
    expect(answer.subarray(-4)).toEqual(closed);
  });

  test("cut anywhere in an opening, nothing of it stays", async () => {
    const whole = Buffer.concat([
      PREFACE,
      encode(opening({ type: "hello", oldest: 1, newest: 1, nonce: randomBytes(32) }, { signer: newSigner(), relay: "x:1" })),
    ]);
    for (let at = 1; at < whole.length; at += 67) {
      const socket = await place.socket("tcp");
      socket.end(whole.subarray(0, at));
    }
    await eventually(() => place.relay.gauges().connections === 0 && place.relay.gauges().strangers === 0);
    expect(place.relay.gauges().workers).toBe(0);
  });
});

describe.skipIf(!HERE)("who is too many, or too slow", () => {
  test("openings that do not come to their end hold nobody up, and have their time", async () => {
    const idle = await Promise.all(Array.from({ length: 700 }, (_, i) => place.socket(SCHEMES[i % 4]!)));
    const drips = setInterval(() => {
      for (const socket of idle) socket.write("c");
    }, 400);
    expect(place.relay.gauges().strangers).toBeLessThanOrEqual(512);
    const { signer, streams, registration } = await place.worker("tcp");
    const desktop = await place.join("tcp", signer.key);
    desktop.write("in spite of them");
    expect((await bytesOf(await eventually(() => streams[0]), 16)).toString()).toBe("in spite of them");
    await eventually(() => place.relay.gauges().strangers === 0);
    clearInterval(drips);
    desktop.destroy();
    registration.close();
    for (const socket of idle) socket.destroy();
  });

  test("messages of a parked connection", async () => {
    const worker = await comes({ signer: newSigner() });
    expect(await worker.next()).toMatchObject({ type: "registered" });
    for (let id = 0; id < 250; id++) worker.send({ type: "ping", id });
    let pongs = 0;
    let message = await worker.next();
    for (; message !== "ended" && message.type === "pong"; message = await worker.next()) pongs++;
    expect([pongs, message]).toEqual([199, { type: "close", code: "flooding", retry: 10_000 }]);
  });

  test("limits of rooms, keys and tokens", async () => {
    const small = new Place({ limits: { joinsPerRoom: 2, joinsPerKey: 3, workersPerToken: 1, openingsPerKey: 5 }, tokens: [OTHER, TOKEN] });
    const busy = { code: "relay_host_busy", data: { close: "busy" } };
    const { signer, streams, registration } = await small.worker("tcp");
    await expect(small.register("tcp", newSigner())).rejects.toMatchObject(busy);
    const other = await comes({ signer: newSigner(), token: OTHER }, small);
    expect(await other.next()).toMatchObject({ type: "registered" });
    const two = [await small.join("tcp", signer.key), await small.join("ws", signer.key)];
    await expect(small.join("tcp", signer.key)).rejects.toMatchObject(busy);
    await eventually(() => streams.length === 2);
    for (const one of two) one.destroy();
    await eventually(() => small.relay.gauges().joins === 0);
    const me = newSigner();
    const mine = Array.from({ length: 3 }, () => small.join("tcp", newSigner().key, { signer: me, waitMs: 20_000 }).catch(() => null));
    await eventually(() => small.relay.gauges().waiting === 3);
    await expect(small.join("tcp", newSigner().key, { signer: me, waitMs: 1_000 })).rejects.toMatchObject(busy);
    expect(await (await comes({ role: "join", signer: me, room: roomOf(newSigner().key) }, small)).closed()).toBe("absent");
    expect(await (await comes({ role: "join", signer: me, room: roomOf(newSigner().key) }, small)).closed()).toBe("busy");
    registration.close();
    await small.close();
    expect(await Promise.all(mine)).toEqual([null, null, null]);
  });

  test("by address: connections from it, and how often it comes; what is refused counts five times", async () => {
    const edge = new Place({ limits: { openingsPerAddress: 11 }, edgeAddressHeader: "X-Forwarded-For" });
    const at = `http://127.0.0.1:${edge.urls.ws.port}`;
    const from = (address: string, path: string, token?: string): Promise<Response> =>
      fetch(`${at}${path}`, {
        headers: { "x-forwarded-for": `10.9.9.9, ${address}`, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      });
    expect((await from("192.0.2.1", "/metrics", OTHER)).status).toBe(401);
    expect((await from("192.0.2.1", "/metrics", OTHER)).status).toBe(401);
    expect((await from("192.0.2.1", "/healthz")).status).toBe(200);
    const over = await from("192.0.2.1", "/healthz");
    expect([over.status, Number(over.headers.get("retry-after")) > 0]).toEqual([429, true]);
    expect((await from("192.0.2.2", "/healthz")).status).toBe(200);
    expect((await from("2001:db8::1", "/metrics", OTHER)).status).toBe(401);
    expect((await from("2001:db8:0:0:ffff::1", "/metrics", OTHER)).status).toBe(401);
    expect((await from("2001:db8::7", "/healthz")).status).toBe(200);
    expect((await from("2001:db8::8", "/healthz")).status).toBe(429);
    await edge.close();

    const few = new Place({ limits: { connectionsPerAddress: 1 }, edgeAddressHeader: "x-forwarded-for" });
    const upgraded = (address: string): Promise<string> =>
      few.socket("ws").then(async (socket) => {
        socket.write(upgradeRequest(`X-Forwarded-For: ${address}`));
        return (await bytesOf(socket, 12)).toString("latin1", 9, 12);
      });
    expect([await upgraded("192.0.2.1"), await upgraded("192.0.2.1"), await upgraded("192.0.2.2")]).toEqual(["101", "429", "101"]);
    await few.close();
  });
});

describe.skipIf(!HERE)("a relay-host that is none", () => {
  const hello = encode({ type: "hello", oldest: 1, newest: 1, nonce: randomBytes(32) });
  const url = (port: number) => ({ scheme: "tcp", authority: `localhost:${port}` }) as const;
  const dial = (port: number): net.Socket => net.connect({ host: "127.0.0.1", port }).on("error", () => undefined);

  test.each<[string, string, Buffer[]]>([
    ["does not know the token", "relay_host_unproven", [hello, encode({ type: "registered", proof: randomBytes(32) })]],
    ["speaks later versions only", "version_mismatch", [encode({ type: "hello", oldest: 2, newest: 3, nonce: randomBytes(32) })]],
    ["begins with something else", "meeting_malformed", [encode({ type: "ping", id: 1 })]],
    ["answers with what is not asked for", "meeting_malformed", [hello, encode({ type: "ping", id: 1 }), encode({ type: "ping", id: 1 })]],
    ["sends no frames", "meeting_malformed", [Buffer.from("SSH-2.0-OpenSSH_9.2\r\n")]],
    ["says too much", "meeting_malformed", [Buffer.from([0, 1, 0, 0])]],
    ["goes away", "link_down", []],
  ])("%s", async (_, code, says) => {
    const { port, close } = await impostor((stream) => {
      stream.on("data", () => {
        const next = says.shift();
        if (next === undefined) stream.destroy();
        else stream.write(next);
      });
    });
    const registered = register(dial(port), { relay: url(port), token: TOKEN, signer: newSigner(), onJoining: () => undefined });
    await expect(registered).rejects.toMatchObject({ code });
    close();
  });

  test("joins a desktop with itself, without knowing the token", async () => {
    const { port, close } = await impostor((stream) => {
      stream.once("data", () => stream.write(hello));
      stream.on("data", () => stream.write(encode({ type: "joined", proof: randomBytes(32) })));
    });
    const joined = join(dial(port), { relay: url(port), token: TOKEN, signer: newSigner(), room: randomBytes(32), waitMs: 0 });
    await expect(joined).rejects.toMatchObject({ code: "relay_host_unproven", data: { close: "proof" } });
    close();
  });
});
