import { Duplex } from "node:stream";
import { SESSION_USER } from "../../../src/transport/session/admission.ts";
import type { AuthenticationStep } from "../../../src/transport/session/authentication.ts";
import { type ClientSessionOptions, openClientSession } from "../../../src/transport/session/client-session.ts";
import { type KeyPair, makeKeyPair } from "../../../src/transport/session/key-pair.ts";
import { publicKeyFromLine } from "../../../src/transport/session/keys.ts";
import type { ServerSessionOptions } from "../../../src/transport/session/server-session.ts";
import { SessionServer } from "../../../src/transport/session/session-server.ts";

export const HOST = makeKeyPair("host");
export const USER = makeKeyPair("user");
export const STRANGER = makeKeyPair("stranger");

export const publicKey = ({ publicLine }: KeyPair): Buffer => publicKeyFromLine(publicLine);

/** Gives the steps one after the other, then nothing. */
export function steps(...all: AuthenticationStep[]): () => AuthenticationStep | null {
  return () => all.shift() ?? null;
}

/** A connection that says back what it is told. */
export function echo(): Duplex {
  return new Duplex({
    allowHalfOpen: true,
    read: () => undefined,
    write(chunk, _encoding, done) {
      this.push(chunk);
      done();
    },
    final(done) {
      this.push(null);
      done();
    },
  });
}

export interface Served {
  readonly server: SessionServer;
  /** How many connections channels have brought about. */
  readonly connections: () => number;
}

/** A server that lets USER in. */
export function serverOf(options: Partial<ServerSessionOptions> = {}): Served {
  let connections = 0;
  const { connect = async () => echo() } = options;
  const server = new SessionServer({
    hostKey: HOST.privateKey,
    allowedKeys: () => [publicKey(USER)],
    ...options,
    connect: () => {
      connections++;
      return connect();
    },
  });
  return { server, connections: () => connections };
}

/** What a client of ours says to a server of ours. */
export const honest = (options: Partial<ClientSessionOptions> = {}): ClientSessionOptions => ({
  user: SESSION_USER,
  algorithms: "own",
  verifyHostKey: (key) => key.equals(publicKey(HOST)),
  authenticate: steps({ method: "publickey", key: USER.privateKey }),
  ...options,
});

export const open = (duplex: Duplex, options: Partial<ClientSessionOptions> = {}) => openClientSession(duplex, honest(options));

/** Everything that a stream says until it ends; the stream is left as it is. */
export function readAll(stream: Duplex): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => resolve(Buffer.concat(chunks)));
    stream.on("error", reject);
  });
}
