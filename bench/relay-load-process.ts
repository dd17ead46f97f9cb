/**
 * Workers and desktops at a relay-host, as its argument says. Prints a line of JSON when what was asked for is there, or done, and stays until its input ends.
 */
import net from "node:net";
import type { Duplex } from "node:stream";
import { parseRelayUrl } from "../src/domain/relay-url.ts";
import { accept, join } from "../src/transport/meeting/join.ts";
import { roomOf } from "../src/transport/meeting/proof.ts";
import { type Registration, register } from "../src/transport/meeting/register.ts";
import { wayOut } from "../src/transport/outbound/way-out.ts";
import { makeKeyPair } from "../src/transport/session/key-pair.ts";
import { type Ed25519Signer, signerOf } from "../src/transport/session/signer.ts";

export interface RelayLoad {
  readonly url: string;
  readonly token: string;
  readonly caFile: string;
  readonly task:
    | { readonly kind: "park"; readonly workers: number }
    /** Pairs that send to each other as fast as they can. */
    | { readonly kind: "stream"; readonly pairs: number }
    /** One pair; the desktop sends so many bytes. */
    | { readonly kind: "send"; readonly bytes: number }
    /** Joins, one after the other. */
    | { readonly kind: "join"; readonly times: number }
    /** Openings with a wrong token, this often in a minute, until the input ends. */
    | { readonly kind: "refuse"; readonly perMinute: number };
}

/** How many that are refused may be under way at a time. */
const KNOCKING_MAX = 100;

const options = JSON.parse(process.argv[2]!) as RelayLoad;
const url = parseRelayUrl(options.url);
const surroundings = { variables: {}, caFiles: [{ from: "the benchmark", path: options.caFile }] };
const newSigner = (): Ed25519Signer => signerOf(makeKeyPair("bench").privateKey);

async function dial(): Promise<Duplex> {
  const socket = net.connect({ host: url.host, port: url.port, noDelay: true });
  await new Promise((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  const duplex = await wayOut({ url, token: options.token, version: "bench", surroundings }).climb(socket, AbortSignal.timeout(20_000));
  return duplex.on("error", () => undefined);
}

const me = { relay: url, token: options.token };

async function worker(onStream: (stream: Duplex) => void, signer = newSigner()): Promise<Registration> {
  return await register(await dial(), {
    ...me,
    signer,
    onJoining: ({ ticket }) => void dial().then(async (duplex) => onStream(await accept(duplex, { ...me, signer, ticket }))),
  });
}

const desktop = async (hostKey: Buffer, signer = newSigner()): Promise<Duplex> =>
  await join(await dial(), { ...me, signer, room: roomOf(hostKey), waitMs: 10_000 });

function pump(stream: Duplex): void {
  const chunk = Buffer.alloc(64 * 1024, 7);
  const go = (): void => {
    while (stream.write(chunk));
    stream.once("drain", go);
  };
  stream.on("data", () => undefined).resume();
  go();
}

const kept: unknown[] = [];
const say = (what: unknown): void => void process.stdout.write(`${JSON.stringify(what)}\n`);

type TaskOf<Kind extends RelayLoad["task"]["kind"]> = Extract<RelayLoad["task"], { readonly kind: Kind }>;

async function parkWorkers({ workers }: TaskOf<"park">): Promise<void> {
  for (let i = 0; i < workers; i += 20) {
    kept.push(...(await Promise.all(Array.from({ length: Math.min(20, workers - i) }, () => worker(() => undefined)))));
  }
  say({ parked: workers });
}

async function streamPairs({ pairs }: TaskOf<"stream">): Promise<void> {
  const streams: Duplex[] = [];
  for (let i = 0; i < pairs; i++) {
    const signer = newSigner();
    kept.push(await worker((stream) => void streams.push(stream), signer));
    streams.push(await desktop(signer.key));
  }
  while (streams.length < 2 * pairs) await Bun.sleep(10);
  for (const stream of streams) pump(stream);
  say({ pairs });
}

async function sendBytes({ bytes }: TaskOf<"send">): Promise<void> {
  const signer = newSigner();
  let got = 0;
  const done = Promise.withResolvers<void>();
  kept.push(
    await worker((stream) => {
      stream.on("data", (chunk: Buffer) => {
        got += chunk.length;
        if (got >= bytes) done.resolve();
      });
      stream.resume();
    }, signer),
  );
  const stream = await desktop(signer.key);
  const chunk = Buffer.alloc(64 * 1024, 7);
  const began = performance.now();
  for (let sent = 0; sent < bytes; sent += chunk.length) {
    if (!stream.write(chunk)) await new Promise((resolve) => stream.once("drain", resolve));
  }
  await done.promise;
  say({ bytes_per_second: (got / (performance.now() - began)) * 1_000 });
}

async function joinOften({ times }: TaskOf<"join">): Promise<void> {
  const signer = newSigner();
  kept.push(await worker((stream) => kept.push(stream), signer));
  const samples: number[] = [];
  for (let i = 0; i < times; i++) {
    const began = performance.now();
    const stream = await desktop(signer.key);
    samples.push(performance.now() - began);
    stream.destroy();
    await Bun.sleep(5);
  }
  say({ samples });
}

function refuseOften({ perMinute }: TaskOf<"refuse">): void {
  let refused = 0;
  const wrong = { ...me, token: options.token.replace(/./g, "x"), signer: newSigner(), onJoining: () => undefined };
  const began = performance.now();
  let started = 0;
  let underWay = 0;
  const knock = async (): Promise<void> => {
    started++;
    underWay++;
    await dial()
      .then((duplex) => register(duplex, wrong))
      .catch(() => refused++);
    underWay--;
  };
  // As many as are due by now, for a timer comes late on a busy machine.
  const timer = setInterval(() => {
    while (underWay < KNOCKING_MAX && started < ((performance.now() - began) * perMinute) / 60_000) void knock();
  }, 5);
  kept.push(timer);
  say({ refusing: true });
  process.stdin.once("end", () => say({ refused }));
}

async function run({ task }: RelayLoad): Promise<void> {
  switch (task.kind) {
    case "park":
      return await parkWorkers(task);
    case "stream":
      return await streamPairs(task);
    case "send":
      return await sendBytes(task);
    case "join":
      return await joinOften(task);
    case "refuse":
      return refuseOften(task);
  }
}

await run(options);
process.stdin.on("end", () => process.exit(0)).resume();
