import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash, type Hash, randomBytes } from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import type { Duplex } from "node:stream";
import { MeetingDesk, TestRelayHost, TOKEN } from "../cli/relay-desk.ts";
import type { FarLink } from "../cli/ssh-desk.ts";
import { Place } from "../roles/relay-host/place.ts";
import { describeWith, requireComponent } from "../runner/components.ts";
import { scaled, soakSettings } from "../runner/soak.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { authority } from "../transport/outbound/certificates.ts";

const MiB = 2 ** 20;
/** How long a side is slow: ten minutes, and a few seconds where all is to be done in a tenth. */
const SLOW_MS = scaled(600_000, 6_000, soakSettings().scale ** 2);
/** What it takes meanwhile, in bytes a second. */
const SLOW_RATE = 256 * 1024;
const TICK_MS = 50;
const TIMEOUT = SLOW_MS + 600_000;

/** For each direction a relay-host holds so much at most (docs/wire.md, Joined). */
const HELD_MAX = 576 * 1024 + 64 * 14;
/** What the kernel may hold between two sockets of TCP (tcp(7)): the sender's buffer and the receiver's. */
const kernelMax = (): number =>
  ["wmem", "rmem"].reduce((sum, one) => sum + Number(fs.readFileSync(`/proc/sys/net/ipv4/tcp_${one}`, "utf8").trim().split(/\s+/)[2]), 0);

const residentMiB = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1_024;

/** Memory by time: how much more is in use in the last quarter than in the first half, at their highest. */
class Memory {
  readonly #seen: number[] = [];

  look(mib: number): void {
    this.#seen.push(mib);
  }

  get growth(): number {
    const { length } = this.#seen;
    return Math.max(...this.#seen.slice(Math.floor(length * 0.75))) - Math.max(...this.#seen.slice(0, Math.ceil(length / 2)));
  }

  toString(): string {
    return `${Math.min(...this.#seen).toFixed(0)}-${Math.max(...this.#seen).toFixed(0)} MiB`;
  }
}

/** What a stream brings, taken slowly for some time, and then as it comes. */
class SlowReader {
  readonly #hash: Hash = createHash("sha256");
  #ended = false;
  #hurries = false;
  taken = 0;

  constructor(private readonly stream: Duplex | http.IncomingMessage) {
    stream.on("data", (chunk: Buffer) => {
      this.#hash.update(chunk);
      this.taken += chunk.length;
      if (!this.#hurries) stream.pause();
    });
    stream.on("end", () => {
      this.#ended = true;
    });
    stream.pause();
  }

  /** @param meanwhile called at each tick */
  async slowly(meanwhile: () => unknown): Promise<void> {
    const began = performance.now();
    for (let now = began; now - began < SLOW_MS && !this.#ended; now = performance.now()) {
      if (this.taken <= ((now - began) / 1_000) * SLOW_RATE) this.stream.resume();
      await meanwhile();
      await Bun.sleep(TICK_MS);
    }
  }

  /** The rest. @param bytes how many there are, once `all` is over @returns the SHA-256 of everything */
  async rest(bytes: () => number, all: Promise<unknown> = Promise.resolve()): Promise<string> {
    this.#hurries = true;
    this.stream.resume();
    await all;
    await eventually(() => this.taken >= bytes() || this.#ended, { what: "the rest" });
    return this.#hash.digest("hex");
  }
}

describe.skipIf(!requireComponent("openssl"))("a joined pair of which one side is slow", () => {
  let place: Place;
  beforeAll(() => {
    place = new Place();
  });
  afterAll(() => place.close());

  test(
    "for ten minutes, in either direction, over TLS and TCP: the fast side is stopped, and nothing is lost",
    async () => {
      const memory = new Memory();
      const pieces = Array.from({ length: 16 }, () => randomBytes(64 * 1024));
      const held: number[] = [];
      const run = async (scheme: "wss" | "tcp", slow: "worker" | "desktop"): Promise<void> => {
        const { signer, streams, registration } = await place.worker(scheme);
        const desktop = await place.join(scheme, signer.key);
        const worker = await eventually(() => streams[0]);
        const [from, to] = slow === "worker" ? [desktop, worker] : [worker, desktop];
        const reader = new SlowReader(to);
        const hash = createHash("sha256");
        let sent = 0;
        let enough = false;
        const sending = (async () => {
          for (let n = 0; !enough; n++) {
            const piece = pieces[n % pieces.length]!;
            hash.update(piece);
            sent += piece.length;
            if (!from.write(Buffer.from(piece))) await new Promise((resolve) => from.once("drain", resolve));
          }
        })();
        // Two ways through the kernel, what the relay-host holds, and what the streams at both ends do (docs/wire.md).
        const atMost = 2 * kernelMax() + HELD_MAX + 2 * MiB;
        let furthest = 0;
        await reader.slowly(() => {
          furthest = Math.max(furthest, sent - reader.taken);
        });
        enough = true;
        console.log(`${scheme}, slow ${slow}: ${(furthest / MiB).toFixed(1)} MiB ahead of the reader at most`);
        expect(furthest).toBeLessThanOrEqual(atMost);
        expect(reader.taken).toBeGreaterThan(0);
        // It may still wait to send its last one.
        const got = await reader.rest(() => sent, sending);
        expect([reader.taken, got]).toEqual([sent, hash.digest("hex")]);
        desktop.destroy();
        registration.close();
      };
      const looking = setInterval(() => {
        held.push(place.relay.gauges().held_bytes);
        memory.look(process.memoryUsage.rss() / MiB);
      }, 100);
      await Promise.all((["wss", "tcp"] as const).flatMap((scheme) => [run(scheme, "worker"), run(scheme, "desktop")]));
      clearInterval(looking);
      console.log(`four slow pairs: ${(Math.max(...held) / 1_024).toFixed(0)} KiB held at most; ${memory}`);
      expect(held.length).toBeGreaterThan(10);
      expect(Math.max(...held)).toBeLessThanOrEqual(4 * HELD_MAX);
    },
    TIMEOUT,
  );
});

/** What may be under way to a reader that stopped: the largest window of a transfer (docs/wire.md, Bulk), and what the runtime and the kernel keep for a body on either side. */
const UNDER_WAY_MAX = 24 * MiB;
/** How long a worker is stopped at a time, besides one second: a link is given up that has no sign of life for 30 s. */
const STOPPED_MS = 7_000;
/** What memory may differ by from one quarter to another without anything that is kept, in MiB. */
const FLAT_MIB = 32;

describeWith(["openssl"], "a cluster that is met at a relay-host", () => {
  const files = temporaryDirectory();
  let host: TestRelayHost;
  let both: MeetingDesk;

  beforeAll(async () => {
    const ca = authority(files.path);
    host = await TestRelayHost.start({ certificate: ca.issue("localhost", "DNS:localhost,IP:127.0.0.1") });
    both = await MeetingDesk.start({ url: `wss://localhost:${host.port}`, env: { CLIO_RELAY_CA_FILE: ca.file } });
    await both.up();
  }, TIMEOUT);
  afterAll(async () => {
    await both[Symbol.asyncDispose]();
    await host[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  /** Of the worker, the daemon and the relay-host. */
  const processes = (): readonly number[] => [both.cluster.processes("worker run")[0]!, both.desk.daemons()[0]!, host.pid];

  /** One number of the relay-host's /metrics. */
  async function relayed(name: string): Promise<number> {
    const ask = async (): Promise<string> => {
      const answer = await fetch(`https://localhost:${host.port}/metrics`, {
        headers: { authorization: `Bearer ${TOKEN}` },
        tls: { rejectUnauthorized: false },
        proxy: false,
      } as RequestInit);
      return answer.text();
    };
    // A relay-host ends a connection whose request has not come within 10 s, which on a busy machine may be this process.
    const text = await eventually(ask, { timeoutMs: 60_000, what: "an answer of the relay-host" });
    return Number(new RegExp(`^clio_relay_host_${name} (\\d+)$`, "m").exec(text)![1]);
  }

  /** Bytes that the desktop has got over the link, or put on it. */
  async function passed(which: "bytes_in" | "bytes_out"): Promise<number> {
    const answer = await fetch("http://relay/links", {
      unix: path.join(both.desk.home, "run", "desktop.sock"),
      proxy: false,
    } as RequestInit);
    const { links } = (await answer.json()) as { links: FarLink[] };
    return links.find(({ cluster }) => cluster === "far")![which]!;
  }

  /** Look at memory and at what the relay-host holds, every half second. */
  function watched(): { readonly over: () => Promise<void> } {
    const memories = processes().map((pid) => [pid, new Memory()] as const);
    const held: number[] = [];
    let looked = Promise.resolve();
    const look = async (): Promise<void> => {
      for (const [pid, memory] of memories) memory.look(residentMiB(pid));
      held.push(await relayed("held_bytes"));
    };
    const timer = setInterval(() => {
      looked = looked.then(look);
    }, 500);
    return {
      async over() {
        clearInterval(timer);
        await looked;
        console.log(
          `worker ${memories[0]![1]}, daemon ${memories[1]![1]}, relay-host ${memories[2]![1]}; ${Math.max(...held)} bytes held at most`,
        );
        expect(Math.max(...held)).toBeLessThanOrEqual(2 * HELD_MAX);
        for (const [, memory] of memories) expect(memory.growth).toBeLessThan(FLAT_MIB);
      },
    };
  }

  test(
    "whoever reads an artifact slowly stops the worker, and gets every byte",
    async () => {
      const size = 192 * MiB;
      await both.desk.submit("--wait", "--output", "content", "--", "sh", "-c", `head -c ${size} /dev/urandom > content`);
      const { artifacts } = await both.desk.json<{ artifacts: { artifact_id: string; name: string; sha256: string }[] }>(
        "job",
        "list-artifacts",
        "last",
      );
      const { artifact_id, sha256 } = artifacts.find(({ name }) => name === "content")!;
      const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
        const socketPath = path.join(both.desk.home, "run", "desktop.sock");
        http.get({ socketPath, path: `/clusters/far/artifacts/${artifact_id}/content`, agent: false }, resolve).on("error", reject);
      });
      expect(answer.statusCode).toBe(200);
      const before = await passed("bytes_in");
      const reader = new SlowReader(answer);
      const watch = watched();
      let furthest = 0;
      await reader.slowly(async () => {
        furthest = Math.max(furthest, (await passed("bytes_in")) - before - reader.taken);
      });
      await watch.over();
      console.log(`${(furthest / MiB).toFixed(1)} MiB ahead of the reader at most`);
      expect(furthest).toBeLessThanOrEqual(UNDER_WAY_MAX);
      expect(await reader.rest(() => size)).toBe(sha256);
      expect(reader.taken).toBe(size);
    },
    TIMEOUT,
  );

  test(
    "a worker that takes an input slowly stops whoever sends it, and has every byte",
    async () => {
      const size = scaled(512, 64, soakSettings().scale ** 2) * MiB;
      const input = path.join(both.desk.directory, "input");
      const hash = createHash("sha256");
      for (let left = size; left > 0; left -= 16 * MiB) {
        const piece = randomBytes(16 * MiB);
        hash.update(piece);
        fs.appendFileSync(input, piece);
      }
      const [worker] = processes();
      const watch = watched();
      const before = await passed("bytes_out");
      const sending = both.desk.start([
        "job",
        "submit",
        "--wait",
        "--max-input-bytes",
        "4GiB",
        "--input",
        `deck=${input}`,
        "--",
        "sh",
        "-c",
        'sha256sum < "$CLIO_RELAY_INPUT_DECK"',
      ]);
      let over = false;
      void sending.exited.then(() => {
        over = true;
      });
      // It lives for a twentieth of the time at most, and not as often where it would have all of it before the time is over; but so that the link stays.
      const began = performance.now();
      const allowed = (): number => ((performance.now() - began) / SLOW_MS) * 0.9 * size;
      while (!over && performance.now() - began < SLOW_MS) {
        process.kill(worker!, "SIGSTOP");
        await Bun.sleep(950);
        for (
          const stopped = performance.now();
          performance.now() - stopped < STOPPED_MS && (await passed("bytes_out")) - before > allowed();
        )
          await Bun.sleep(TICK_MS);
        process.kill(worker!, "SIGCONT");
        await Bun.sleep(50);
      }
      console.log(
        `${(((await passed("bytes_out")) - before) / MiB).toFixed(0)} MiB were sent in ${Math.round((performance.now() - began) / 1_000)} s`,
      );
      expect(over).toBe(false);
      await watch.over();
      const [code, stderr] = [await sending.exited, await sending.stderr.text()];
      expect([code, stderr]).toEqual([0, expect.any(String)]);
      expect(await both.desk.ok("job", "read-log", "last")).toContain(hash.digest("hex"));
    },
    TIMEOUT,
  );
});
