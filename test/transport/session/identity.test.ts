import { afterEach, describe, expect, test } from "bun:test";
import { sign } from "node:crypto";
import { Transform } from "node:stream";
import ssh2 from "ssh2";
import { RelayError } from "../../../src/domain/errors.ts";
import type { Signer } from "../../../src/transport/session/authentication.ts";
import type { ClientSessionOptions } from "../../../src/transport/session/client-session.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { DUPLEXES, type Ends, pairOfDuplexes } from "./duplexes.ts";
import { HOST, open, publicKey, readAll, STRANGER, serverOf, steps, USER } from "./peers.ts";

const directories = temporaryDirectories();
const made: Ends[] = [];
afterEach(async () => {
  for (const ends of made.splice(0)) await ends[Symbol.asyncDispose]();
});

/** Signs with a key's PEM, or in another way. */
const signer = (key: Buffer, signature: (data: Buffer) => Buffer): Signer => ({ publicKey: key, sign: async (data) => signature(data) });
const pem = (privateKey: string): string => (ssh2.utils.parseKey(privateKey) as ssh2.ParsedKey).getPrivatePEM();

interface Refusal {
  readonly options: () => Partial<ClientSessionOptions>;
  readonly code: string;
}

const never = (): boolean => {
  throw new Error("no");
};

const REFUSED: Record<string, Refusal> = {
  "another host key than the pinned one": {
    options: () => ({ verifyHostKey: (key) => key.equals(publicKey(STRANGER)) }),
    code: "host_key_refused",
  },
  "a verifier that throws": { options: () => ({ verifyHostKey: never }), code: "host_key_refused" },
  "a verifier that returns a Promise of true": {
    options: () => ({ verifyHostKey: (async () => true) as unknown as () => boolean }),
    code: "host_key_refused",
  },
  "a verifier that returns a Promise of false": {
    options: () => ({ verifyHostKey: (async () => false) as unknown as () => boolean }),
    code: "host_key_refused",
  },
  "a verifier that returns 1": { options: () => ({ verifyHostKey: (() => 1) as unknown as () => boolean }), code: "host_key_refused" },
  "a verifier that returns null": {
    options: () => ({ verifyHostKey: (() => null) as unknown as () => boolean }),
    code: "host_key_refused",
  },
  "a verifier that answers false later": {
    options: () => ({ verifyHostKey: (_key, answer) => void setTimeout(() => answer(false), 5) as undefined }),
    code: "host_key_refused",
  },
  "a verifier that answers something truthy later": {
    options: () => ({ verifyHostKey: (_key, answer) => void setTimeout(() => answer("yes" as unknown as boolean), 5) as undefined }),
    code: "host_key_refused",
  },
  "another user key": {
    options: () => ({ authenticate: steps({ method: "publickey", key: STRANGER.privateKey }) }),
    code: "authentication_failed",
  },
  "the allowed key with another key's signature": {
    options: () => ({
      authenticate: steps({ method: "publickey", signer: signer(publicKey(USER), (data) => sign(null, data, pem(STRANGER.privateKey))) }),
    }),
    code: "authentication_failed",
  },
  "the allowed key with its signature over other data": {
    options: () => ({
      authenticate: steps({
        method: "publickey",
        signer: signer(publicKey(USER), (data) => sign(null, Buffer.concat([data, data]), pem(USER.privateKey))),
      }),
    }),
    code: "authentication_failed",
  },
  "the allowed key with a signature of zeros": {
    options: () => ({ authenticate: steps({ method: "publickey", signer: signer(publicKey(USER), () => Buffer.alloc(64)) }) }),
    code: "authentication_failed",
  },
  "the allowed key with half a signature": {
    options: () => ({
      authenticate: steps({
        method: "publickey",
        signer: signer(publicKey(USER), (data) => sign(null, data, pem(USER.privateKey)).subarray(0, 32)),
      }),
    }),
    code: "authentication_failed",
  },
  "another user's name": { options: () => ({ user: "root" }), code: "authentication_failed" },
  "a password": { options: () => ({ authenticate: steps({ method: "password", password: "x" }) }), code: "authentication_failed" },
  nothing: { options: () => ({ authenticate: steps({ method: "none" }) }), code: "authentication_failed" },
  "answers to questions": {
    options: () => ({ authenticate: steps({ method: "keyboard-interactive", answer: async () => ["x"] }) }),
    code: "authentication_failed",
  },
};

for (const [on, make] of Object.entries(DUPLEXES)) {
  describe(`a session on ${on}`, () => {
    const ends = async (): Promise<Ends> => {
      const both = await make(directories());
      made.push(both);
      return both;
    };

    test("opens for the right keys and carries what is said", async () => {
      const { client, server } = await ends();
      const { server: sessions, connections } = serverOf();
      const served = sessions.serve(server);
      const session = await open(client);
      expect(await served.authenticated).toEqual(publicKey(USER));
      const channel = await session.openSocket("/whatever/it/says");
      channel.end("hello");
      expect(String(await readAll(channel))).toBe("hello");
      expect(connections()).toBe(1);
      expect(await session.roundTrip()).toBeGreaterThan(0);
      const { bytesIn, bytesOut } = session.stats();
      expect(served.stats()).toEqual({ bytesIn: bytesOut, bytesOut: bytesIn });
      session.close();
      expect(await session.closed).toBeNull();
      await served.closed;
      expect(sessions.sessions).toEqual([]);
    });

    for (const [what, { options, code }] of Object.entries(REFUSED)) {
      test(`is refused: ${what}`, async () => {
        const { client, server } = await ends();
        const { server: sessions, connections } = serverOf();
        const served = sessions.serve(server);
        const failure = await open(client, options()).catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(RelayError);
        expect((failure as RelayError).code).toBe(code as RelayError["code"]);
        expect(await served.authenticated).toBeNull();
        await served.closed;
        expect(connections()).toBe(0);
      });
    }
  });
}

test("a host key that signs something else than this exchange is refused, and so is an exchange that was altered on the way", async () => {
  for (const altered of [1, 2]) {
    const [near, far] = [pairOfDuplexes(), pairOfDuplexes()];
    const { server: sessions, connections } = serverOf();
    const served = sessions.serve(far.server);
    // What the server says: its name and its offer, then the reply to the key exchange, which ends with the signature and a message of 16 bytes.
    let said = 0;
    const altering = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        const copy = Buffer.from(chunk);
        if (++said > 2) copy[altered === 1 ? 80 : copy.length - 40]! ^= 1;
        done(null, copy);
      },
    });
    near.server.pipe(far.client);
    far.client.pipe(altering).pipe(near.server);
    await expect(open(near.client)).rejects.toBeInstanceOf(RelayError);
    expect(said).toBeGreaterThan(2);
    far.client.destroy();
    expect(await served.authenticated).toBeNull();
    expect(connections()).toBe(0);
  }
});

test("the reason that a verifier gives is what the caller gets", async () => {
  for (const verifyHostKey of [
    (_key: Buffer, answer: (accepted: boolean, reason?: Error) => void) =>
      void queueMicrotask(() => answer(false, new RelayError("host_key_changed", "changed"))) as undefined,
    () => {
      throw new RelayError("host_key_changed", "changed");
    },
  ]) {
    const { client, server } = pairOfDuplexes();
    serverOf().server.serve(server);
    await expect(open(client, { verifyHostKey })).rejects.toMatchObject({ code: "host_key_changed" });
  }
});

test("a verifier that answers true later lets the session open", async () => {
  const { client, server } = pairOfDuplexes();
  serverOf().server.serve(server);
  const session = await open(client, {
    verifyHostKey: (key, answer) => void setTimeout(() => answer(key.equals(publicKey(HOST))), 20) as undefined,
  });
  expect(await session.roundTrip()).toBeGreaterThan(0);
  session.close();
});
