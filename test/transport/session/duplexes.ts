import { spawn } from "node:child_process";
import net from "node:net";
import path from "node:path";
import { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";

/** The two ends of one byte stream. */
export interface Ends extends AsyncDisposable {
  readonly client: Duplex;
  readonly server: Duplex;
}

class End extends Duplex {
  peer: End | undefined;
  #waiting: (() => void) | undefined;

  override _read(): void {
    const goOn = this.#waiting;
    this.#waiting = undefined;
    goOn?.();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    // Never within the writer's own call, as no real stream does.
    setImmediate(() => {
      const { peer } = this;
      if (peer === undefined || peer.destroyed) done(new Error("the other end is gone"));
      else if (peer.push(Buffer.from(chunk))) done();
      else peer.#waiting = done;
    });
  }

  override _final(done: () => void): void {
    setImmediate(() => {
      this.peer?.push(null);
      done();
    });
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    setImmediate(() => {
      if (this.peer?.destroyed === false) this.peer.push(null);
    });
    done(error);
  }
}

/** Both ends in this process, without the system. */
export function pairOfDuplexes(): { client: Duplex; server: Duplex } {
  const [client, server] = [new End(), new End()];
  client.peer = server;
  server.peer = client;
  return { client, server };
}

async function overSockets(listen: net.ListenOptions): Promise<Ends> {
  const listener = net.createServer({ allowHalfOpen: true });
  const accepted = new Promise<net.Socket>((resolve) => listener.once("connection", resolve));
  await new Promise<void>((resolve) => listener.listen(listen, resolve));
  const address = listener.address();
  const client =
    typeof address === "string"
      ? net.connect({ path: address })
      : net.connect({ port: (address as net.AddressInfo).port, host: "127.0.0.1" });
  const server = await accepted;
  return {
    client,
    server,
    async [Symbol.asyncDispose]() {
      client.destroy();
      server.destroy();
      listener.close();
    },
  };
}

async function overPipes(directory: string): Promise<Ends> {
  const socket = path.join(directory, "pipes.sock");
  const listener = net.createServer({ allowHalfOpen: true });
  const accepted = new Promise<net.Socket>((resolve) => listener.once("connection", resolve));
  await new Promise<void>((resolve) => listener.listen(socket, resolve));
  const child = spawn(process.execPath, [fileURLToPath(new URL("./duplex-process.ts", import.meta.url)), socket], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const client = Duplex.from({ readable: child.stdout, writable: child.stdin } as never);
  const server = await accepted;
  return {
    client,
    server,
    async [Symbol.asyncDispose]() {
      client.on("error", () => undefined);
      client.destroy();
      server.destroy();
      listener.close();
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await new Promise((resolve) => child.once("exit", resolve));
    },
  };
}

/** What a session may run on. `directory` is an empty one. */
export const DUPLEXES: Readonly<Record<string, (directory: string) => Promise<Ends>>> = {
  "a TCP connection": () => overSockets({ port: 0, host: "127.0.0.1" }),
  "a Unix socket": (directory) => overSockets({ path: path.join(directory, "session.sock") }),
  "the pipes of a process": overPipes,
  "a pair of Duplexes": async () => {
    const { client, server } = pairOfDuplexes();
    return {
      client,
      server,
      async [Symbol.asyncDispose]() {
        client.destroy();
        server.destroy();
      },
    };
  },
};
