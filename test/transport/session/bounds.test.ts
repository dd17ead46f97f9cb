import { describe, expect, test } from "bun:test";
import type { Duplex } from "node:stream";
import ssh2 from "ssh2";
import { SESSION_USER } from "../../../src/transport/session/admission.ts";
import { makeKeyPair } from "../../../src/transport/session/key-pair.ts";
import { eventually } from "../../runner/wait.ts";
import { pairOfDuplexes } from "./duplexes.ts";
import { open, publicKey, readAll, STRANGER, serverOf, steps, USER } from "./peers.ts";

/** A client without any manners. */
async function rawClient(duplex: Duplex): Promise<ssh2.Client> {
  const client = new ssh2.Client();
  await new Promise((resolve, reject) => {
    client.on("ready", () => resolve(undefined));
    client.on("error", reject);
    client.connect({
      sock: duplex,
      username: SESSION_USER,
      privateKey: USER.privateKey,
      hostVerifier: () => true,
      algorithms: { cipher: ["aes128-gcm@openssh.com"] },
    });
  });
  return client;
}

/** An agent that has the right key, and does not sign. */
class SignsNothing extends ssh2.BaseAgent {
  override getIdentities(done: (error?: Error | null, keys?: ssh2.ParsedKey[]) => void): void {
    done(null, [ssh2.utils.parseKey(USER.publicLine) as ssh2.ParsedKey]);
  }

  override sign(_key: unknown, _data: Buffer, options: ssh2.SigningRequestOptions | ssh2.SignCallback, done?: ssh2.SignCallback): void {
    (done ?? (options as ssh2.SignCallback))(new Error("no"));
  }
}

describe("before a client has shown who it is", () => {
  test("it has a limited time", async () => {
    for (const says of ["", "SSH-2.0-x\r\n"]) {
      const { client, server } = pairOfDuplexes();
      const served = serverOf({ authenticationMs: 50 }).server.serve(server);
      client.write(says);
      client.resume();
      expect((await served.closed)?.message).toContain("nobody was let in within 50 ms");
      await eventually(() => client.readableEnded);
    }
  });

  test("it has three attempts", async () => {
    const { client, server } = pairOfDuplexes();
    const served = serverOf().server.serve(server);
    let asked = 0;
    const failure = open(client, {
      authenticate: () => ({ method: "publickey", key: asked++ < 10 ? STRANGER.privateKey : USER.privateKey }),
    });
    await expect(failure).rejects.toMatchObject({ code: "authentication_failed", data: { methods: ["publickey"] } });
    expect(asked).toBeLessThanOrEqual(4);
    expect((await served.closed)?.message).toContain("3 attempts");
  });

  test("it has twenty requests, also of those that are no failures", async () => {
    const endless: ssh2.AnyAuthMethod[] = [
      { type: "none", username: SESSION_USER },
      { type: "agent", username: SESSION_USER, agent: new SignsNothing() },
    ];
    for (const method of endless) {
      const { client: duplex, server } = pairOfDuplexes();
      const served = serverOf().server.serve(server);
      let asked = 0;
      const client = new ssh2.Client().on("error", () => undefined);
      const authHandler = ((_methods: unknown, _partial: unknown, next: ssh2.NextAuthHandler) => {
        if (asked++ < 40) next(method);
      }) as ssh2.AuthHandlerMiddleware;
      client.connect({
        sock: duplex,
        username: SESSION_USER,
        hostVerifier: () => true,
        algorithms: { cipher: ["aes128-gcm@openssh.com"] },
        authHandler,
      });
      expect((await served.closed)?.message).toContain("20 requests");
      expect(asked).toBeLessThanOrEqual(22);
    }
  });

  test("there are sixteen of its kind at most; one more ends the oldest, and nobody is kept out by those who say nothing", async () => {
    const { server: sessions } = serverOf();
    const come = () => {
      const pair = pairOfDuplexes();
      return { ...pair, served: sessions.serve(pair.server) };
    };
    const waiting = Array.from({ length: 16 }, come);
    const first = await open(waiting[0]!.client);
    // Who has come in is no longer of the kind.
    come();
    expect(waiting.filter(({ server }) => server.destroyed)).toEqual([]);
    const last = come();
    expect(await waiting[1]!.served.closed).toBeNull();
    expect(waiting.filter(({ server }) => server.destroyed)).toEqual([waiting[1]!]);
    const second = await open(last.client);
    expect(sessions.sessions).toHaveLength(2);
    await sessions.close();
    await Promise.all([first.closed, second.closed]);
    expect(sessions.sessions).toEqual([]);
  });
});

describe("a client that is in", () => {
  test("gets no other channel than to the socket, and no other request than to be told that it is there", async () => {
    const { client: duplex, server } = pairOfDuplexes();
    const { server: sessions, connections } = serverOf();
    sessions.serve(server);
    const client = await rawClient(duplex);
    const attempts: Record<string, (done: (error: Error | undefined) => void) => void> = {
      exec: (done) => client.exec("true", done),
      shell: (done) => client.shell(done),
      sftp: (done) => client.sftp(done),
      tcp: (done) => client.forwardOut("127.0.0.1", 1, "127.0.0.1", 22, done),
      "a port there": (done) => client.forwardIn("127.0.0.1", 0, done),
    };
    for (const [name, attempt] of Object.entries(attempts)) {
      const error = await new Promise<Error | undefined>((resolve) => attempt(resolve));
      expect(error, name).toBeInstanceOf(Error);
    }
    expect(connections()).toBe(0);
    const channel = await new Promise<Duplex>((resolve, reject) => openSocket(client, resolve, reject));
    channel.destroy();
    expect(connections()).toBe(1);
    client.end();
  });

  test("has 256 channels at most, and each that ends makes room", async () => {
    const { client, server } = pairOfDuplexes();
    const { server: sessions, connections } = serverOf();
    sessions.serve(server);
    const session = await open(client);
    const channels = await Promise.all(Array.from({ length: 256 }, () => session.openSocket("/")));
    await expect(session.openSocket("/")).rejects.toMatchObject({ code: "channel_refused" });
    expect(connections()).toBe(256);
    // The session and its other channels go on.
    expect(await session.roundTrip()).toBeGreaterThan(0);
    channels[7]!.destroy();
    await eventually(() => session.openSocket("/"));
    session.close();
  });

  test("is sent away when its key is no longer allowed; others stay", async () => {
    const other = makeKeyPair("other");
    let allowed = [publicKey(USER), publicKey(other)];
    const { server: sessions } = serverOf({ allowedKeys: () => allowed });
    const [one, two] = [pairOfDuplexes(), pairOfDuplexes()];
    sessions.serve(one.server);
    sessions.serve(two.server);
    const first = await open(one.client);
    const second = await open(two.client, { authenticate: steps({ method: "publickey", key: other.privateKey }) });
    allowed = [publicKey(other)];
    sessions.revoke();
    expect(await first.closed).toMatchObject({ code: "link_down" });
    expect(await second.roundTrip()).toBeGreaterThan(0);
    second.close();
  });

  test("that says nothing any more is taken for gone", async () => {
    const { client, server } = pairOfDuplexes();
    const served = serverOf({ silenceMs: 1_000 }).server.serve(server);
    const session = await open(client);
    // It speaks for longer than the silence that is allowed.
    for (const since = performance.now(); performance.now() - since < 1_500; await Bun.sleep(10)) await session.roundTrip();
    expect((await served.closed)?.message).toContain("nothing came for 1000 ms");
    expect(await session.closed).toMatchObject({ code: "link_down" });
  });

  test("that asks for packets of no size is cut off from that channel, and holds nobody up", async () => {
    const { client: duplex, server } = pairOfDuplexes();
    const { server: sessions, connections } = serverOf();
    sessions.serve(server);
    const client = await rawClient(duplex);
    const { _protocol: protocol } = client as unknown as {
      _protocol: { openssh_directStreamLocal(channel: number, window: number, packet: number, to: { socketPath: string }): void };
    };
    protocol.openssh_directStreamLocal(77, 1_000, 0, { socketPath: "/" });
    await eventually(() => connections() === 1);
    const channel = await new Promise<Duplex>((resolve, reject) => openSocket(client, resolve, reject));
    channel.end("still here");
    expect(String(await readAll(channel))).toBe("still here");
    client.end();
  });
});

/** As ssh2's own method, which asks for a server that is called OpenSSH. */
function openSocket(client: ssh2.Client, resolve: (channel: Duplex) => void, reject: (error: Error) => void): void {
  (client as unknown as { config: { strictVendor: boolean } }).config.strictVendor = false;
  client.openssh_forwardOutStreamLocal("/", (error, channel) => (error ? reject(error) : resolve(channel)));
}
