import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import net from "node:net";
import { Duplex } from "node:stream";
import { isRelayError } from "../../../src/domain/errors.ts";
import { encode } from "../../../src/transport/meeting/frames.ts";
import { join } from "../../../src/transport/meeting/join.ts";
import { roomOf } from "../../../src/transport/meeting/proof.ts";
import { register } from "../../../src/transport/meeting/register.ts";
import { OPCODE } from "../../../src/transport/outbound/websocket/frames.ts";
import { requireComponent } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { bytesOf, newSigner, Place, TOKEN } from "./place.ts";
import { frameOf, impostor, opening, rawTcp, upgradeRequest } from "./raw.ts";

const HERE = requireComponent("openssl");
const HEADER = "X-Forwarded-For";
const WRONG = "another-token-0123456789abcdefghij";

describe.skipIf(!HERE)("an address that an edge names", () => {
  test("counts where the edge comes, and nowhere else", async () => {
    const place = new Place({ limits: { openingsPerAddress: 11 }, edgeAddressHeader: HEADER });
    const status = async (at: string, token?: string): Promise<number> => {
      const headers = { [HEADER]: "192.0.2.1", ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
      return (await fetch(at, { headers, tls: { rejectUnauthorized: false } })).status;
    };
    const [direct, edge] = [`https://localhost:${place.urls.wss.port}`, `http://127.0.0.1:${place.urls.ws.port}`];
    // Nobody spends what is another's, whatever it claims to be.
    for (let i = 0; i < 4; i++) expect(await status(`${direct}/metrics`, WRONG)).toBe(401);
    expect(await status(`${edge}/healthz`)).toBe(200);
    await place.close();
  });

  test("has its share of those who have not said who they are, and takes no place of others", async () => {
    const place = new Place({ edgeAddressHeader: HEADER });
    const from = async (address: string): Promise<net.Socket> => {
      const socket = await place.socket("ws");
      socket.write(upgradeRequest(`${HEADER}: ${address}`));
      expect((await bytesOf(socket, 12)).toString("latin1", 9, 12)).toBe("101");
      return socket;
    };
    const first = await from("192.0.2.1");
    for (let i = 0; i < 70; i++) await from("198.51.100.7");
    expect(place.relay.gauges().strangers).toBe(65);
    expect(first.destroyed).toBe(false);
    await place.close();
  });
});

describe.skipIf(!HERE)("frames that bring nothing", () => {
  let place: Place;
  beforeAll(() => {
    place = new Place();
  });
  afterAll(() => place.close());

  test.each([
    ["pings", OPCODE.ping],
    ["pongs", OPCODE.pong],
    ["data without data", OPCODE.binary],
  ])("%s end the connection when there are very many", async (_, opcode) => {
    const socket = await place.socket("ws");
    socket.write(upgradeRequest());
    socket.write(Buffer.concat(Array.from({ length: 2_000 }, () => frameOf(opcode))));
    const answer = await bytesOf(socket);
    // 1008: what comes is against the rules of the house.
    expect(answer.subarray(-4)).toEqual(Buffer.from([0x88, 2, 0x03, 0xf0]));
    expect(answer.length).toBeLessThan(2_000);
  });
});

describe.skipIf(!HERE)("before TLS is there", () => {
  test("a connection is counted, has its time, and makes room for the next", async () => {
    const place = new Place({ times: { opening: 3_000 } });
    const idle = await Promise.all(Array.from({ length: 60 }, () => place.socket("tls")));
    await eventually(() => place.relay.gauges().strangers === 60);
    for (const socket of idle) socket.write("\x16");
    await eventually(() => place.relay.gauges().connections === 0);
    expect(place.relay.gauges().strangers).toBe(0);
    await place.close();
  });

  test("what is no TLS ends its connection, and is nothing to tell anybody", async () => {
    const place = new Place({ times: { opening: 60_000 } });
    for (const bytes of ["GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff\x01\x02", ""]) {
      const socket = await place.socket("tls");
      socket.resume().end(Buffer.from(bytes, "latin1"));
    }
    (await place.socket("tls")).resetAndDestroy();
    await eventually(() => place.relay.gauges().connections === 0);
    const { registration } = await place.worker("tls");
    expect(place.lines.filter((line) => line.includes("fault"))).toEqual([]);
    registration.close();
    await place.close();
  });
});

describe.skipIf(!HERE)("who comes at the wrong moment", () => {
  test("an opening that began before a drain is sent away as everybody is", async () => {
    const place = new Place();
    const client = rawTcp(await place.socket("tcp"));
    const hello = await client.next();
    const { signer, registration } = await place.worker("tcp");
    const desktop = await place.join("tcp", signer.key);
    const drained = place.relay.drain();
    client.send(opening(hello, { signer: newSigner(), relay: place.urls.tcp.authority }));
    expect(await client.closed()).toBe("draining");
    desktop.destroy();
    registration.close();
    await drained;
    await place.close();
  });

  test("a desktop that answers and goes at once leaves no connection of its worker behind", async () => {
    const place = new Place({ times: { fresh: 0 } });
    const signer = newSigner();
    const tickets: Buffer[] = [];
    const registration = await place.register("tcp", signer, { onJoining: ({ ticket }) => void tickets.push(ticket) });
    const desktop = rawTcp(await place.socket("tcp"));
    const relay = place.urls.tcp.authority;
    desktop.send(opening(await desktop.next(), { role: "join", signer: newSigner(), room: roomOf(signer.key), wait: 20_000, relay }));
    const pinged = async (): Promise<number> => {
      for (;;) {
        const message = await desktop.next();
        if (message === "ended") throw new Error("it was not pinged");
        if (message.type === "ping") return message.id;
      }
    };
    desktop.send({ type: "pong", id: await pinged() });
    const ticket = await eventually(() => tickets[0]);
    const coming = rawTcp(await place.socket("tcp"));
    coming.send(opening(await coming.next(), { role: "accept", signer, ticket, relay }));
    const pong = encode({ type: "pong", id: await pinged() });
    desktop.stream.write(Buffer.concat([pong, encode({ type: "close", code: "done", retry: 0 })]));
    expect(await coming.closed()).toBe("ticket");
    registration.close();
    await place.close();
  });

  test("desktops that come often do not use up what their worker may come", async () => {
    const place = new Place({ limits: { openingsPerKey: 3 } });
    const { signer, streams, registration } = await place.worker("tcp");
    const desktops: Duplex[] = [];
    for (let i = 0; i < 5; i++) desktops.push(await place.join("tcp", signer.key));
    await eventually(() => streams.length === 5);
    for (let i = 0; i < 2; i++)
      await expect(place.accept("tcp", signer, randomBytes(32))).rejects.toMatchObject({ data: { close: "ticket" } });
    await expect(place.accept("tcp", signer, randomBytes(32))).rejects.toMatchObject({ data: { close: "busy" } });
    for (const one of desktops) one.destroy();
    registration.close();
    await place.close();
  });

  test("a client that has said everything, and does not listen, is not kept", async () => {
    const place = new Place();
    const client = rawTcp(await place.socket("tcp"));
    client.send(opening(await client.next(), { signer: newSigner(), relay: place.urls.tcp.authority }));
    expect(await client.next()).toMatchObject({ type: "registered" });
    client.stream.pause();
    client.stream.end();
    await eventually(() => place.relay.gauges().connections === 0);
    expect(place.relay.gauges().workers).toBe(0);
    await place.close();
  });
});

describe.skipIf(!HERE)("whoever answers in a relay-host's place", () => {
  test("cannot keep anybody away for long", async () => {
    const { port, close } = await impostor((stream) => {
      stream.write(encode({ type: "hello", oldest: 1, newest: 1, nonce: randomBytes(32) }));
      stream.once("data", () => stream.end(encode({ type: "close", code: "busy", retry: 86_400_000 })));
    });
    const duplex = net.connect({ host: "127.0.0.1", port }).on("error", () => undefined);
    const relay = { scheme: "tcp", authority: `localhost:${port}` } as const;
    const registered = register(duplex, { relay, token: TOKEN, signer: newSigner(), onJoining: () => undefined });
    await expect(registered).rejects.toMatchObject({ code: "relay_host_busy", data: { retry_ms: 60_000 } });
    close();
  });

  test("is given up where it asks and does not listen", async () => {
    let most = 0;
    const deaf = new Duplex({
      read: () => undefined,
      write: () => {
        most = Math.max(most, deaf.writableLength);
      },
    });
    const relay = { scheme: "tcp", authority: "localhost:1" } as const;
    const joined = join(deaf, { relay, token: TOKEN, signer: newSigner(), room: randomBytes(32), waitMs: 0 });
    const ended = joined.then(
      () => "joined",
      (error: unknown) => (isRelayError(error) ? error.code : String(error)),
    );
    deaf.push(encode({ type: "hello", oldest: 1, newest: 1, nonce: randomBytes(32) }));
    const pings = Buffer.concat(Array.from({ length: 100 }, (_, id) => encode({ type: "ping", id })));
    for (let turns = 0; turns < 200 && !deaf.destroyed; turns++) {
      deaf.push(pings);
      await new Promise((resolve) => setImmediate(resolve));
      most = Math.max(most, deaf.writableLength);
    }
    expect(await ended).toBe("meeting_flooded");
    expect(await eventually(() => deaf.destroyed)).toBe(true);
    expect(most).toBeLessThan(128 * 1024);
  });
});
