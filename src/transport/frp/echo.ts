import fs from "node:fs";
import net from "node:net";
import type { Duplex } from "node:stream";
import { joinOwnPort } from "../dial.ts";

/** How long a connection to an echo may last, in milliseconds, and how many there may be: whoever runs the frps can make as many as he likes. */
const PATIENCE_MS = 30_000;
const MAX_CONNECTIONS = 32;

/** Says a word to everybody who comes to its socket, and nothing else: who hears it has come the whole way, and keeps that way as long as it is there. */
export class Echo {
  readonly #word = crypto.randomUUID();
  readonly #server: net.Server;

  #connections = 0;

  private constructor(
    readonly socket: string,
    patienceMs: number,
  ) {
    this.#server = net.createServer((connection) => {
      connection.on("error", () => undefined);
      if (this.#connections >= MAX_CONNECTIONS) {
        connection.destroy();
        return;
      }
      this.#connections++;
      const timer = setTimeout(() => connection.destroy(), patienceMs);
      connection.once("close", () => {
        this.#connections--;
        clearTimeout(timer);
      });
      // Whoever carries it may have nothing to carry before the other side has said something.
      connection.once("data", () => connection.write(this.#word));
    });
  }

  /** @param socket its path; what an earlier one left there is replaced */
  static async listen(socket: string, { patienceMs = PATIENCE_MS } = {}): Promise<Echo> {
    const echo = new Echo(socket, patienceMs);
    fs.rmSync(socket, { force: true });
    await new Promise<void>((resolve, reject) => {
      echo.#server.once("error", reject);
      echo.#server.listen(socket, resolve);
    });
    fs.chmodSync(socket, 0o600);
    return echo;
  }

  /** Those that are open. */
  get connections(): number {
    return this.#connections;
  }

  /** What brought the word back by a port of this machine, all the way, in so many milliseconds: it closes when that way is gone, or the echo's patience is over. Null: nothing came. */
  async heard(port: number, withinMs: number, stop: AbortSignal): Promise<Duplex | null> {
    const signal = AbortSignal.any([stop, AbortSignal.timeout(withinMs)]);
    let duplex: Awaited<ReturnType<typeof joinOwnPort>>;
    try {
      duplex = await joinOwnPort(port, withinMs, signal);
    } catch {
      return null;
    }
    return new Promise((resolve) => {
      let said = "";
      const done = (): void => {
        signal.removeEventListener("abort", done);
        const came = said === this.#word;
        if (!came) duplex.destroy();
        resolve(came ? duplex : null);
      };
      signal.addEventListener("abort", done, { once: true });
      duplex.on("error", done);
      duplex.on("close", done);
      duplex.on("data", (chunk: Buffer) => {
        said = `${said}${chunk.toString("latin1")}`.slice(0, 64);
        if (said.length >= this.#word.length) done();
      });
      duplex.write("?");
    });
  }

  close(): void {
    this.#server.close();
    fs.rmSync(this.socket, { force: true });
  }
}
