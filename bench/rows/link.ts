import fs from "node:fs";
import path from "node:path";
import { hostPublicKey } from "../../src/roles/worker/host-key.ts";
import { allowClients } from "../../src/roles/worker/link-keys.ts";
import { SESSION_USER } from "../../src/transport/session/admission.ts";
import { makeKeyPair } from "../../src/transport/session/key-pair.ts";
import { lineOfPublicKey } from "../../src/transport/session/keys.ts";
import { TcpProxy } from "../../test/rigs/proxy/tcp-proxy.ts";
import { eventually } from "../../test/runner/wait.ts";
import { type Installation, install } from "../installation.ts";
import { startLink } from "../link.ts";
import type { LinkProcessOptions } from "../link-process.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { latencyOf } from "../yardsticks/latency.ts";
import { SshYardstick } from "../yardsticks/ssh.ts";

const MB = 1_000_000;
const GIB = 2 ** 30;
const ROUNDS = 4;
/** Small requests of a round, and as many before the first: a link is up all day, and what it does then is compiled. */
const SMALL = 600;
const PATH_DELAY_MS = 25;

const ask = (socket: string, target: string): Promise<Response> =>
  fetch(`http://worker${target}`, { unix: socket, timeout: false, proxy: false } as unknown as RequestInit);

async function smallMs(socket: string): Promise<number> {
  const began = performance.now();
  await (await ask(socket, "/healthz")).text();
  return performance.now() - began;
}

/** Reads content to its end; bytes per second. */
export async function download(socket: string, target: string, expected: number): Promise<number> {
  const began = performance.now();
  let bytes = 0;
  for await (const piece of (await ask(socket, target)).body as unknown as AsyncIterable<Uint8Array>) bytes += piece.length;
  if (bytes !== expected) throw new Error(`${bytes} of ${expected} bytes came`);
  return (bytes / (performance.now() - began)) * 1_000;
}

/** Small requests while content is read. */
async function smallDuring(socket: string, target: string, size: number): Promise<number[]> {
  const samples: number[] = [];
  let over = false;
  const reading = download(socket, target, size).finally(() => {
    over = true;
  });
  while (!over) {
    samples.push(await smallMs(socket));
    await Bun.sleep(5);
  }
  await reading;
  return samples;
}

/** An artifact of so many bytes that a job has left; the path of its content, and of the file. */
export async function makeArtifact(relay: Installation, directory: string, size: number): Promise<{ target: string; file: string }> {
  const argv = ["sh", "-c", `head -c ${size} /dev/urandom > content`];
  const job = await relay.worker.submit({ cluster: "local", kind: "command", spec: { argv, workdir: directory, outputs: ["content"] } });
  await relay.worker.wait(job.job_id, { timeout_seconds: 300 });
  const artifact = await eventually(
    async () => (await relay.worker.artifacts(job.job_id)).artifacts.find(({ name }) => name === "content"),
    {
      timeoutMs: 60_000,
    },
  );
  return { target: `/artifacts/${artifact.artifact_id}/content`, file: path.join(directory, "content") };
}

export const median = (values: readonly number[]): number => latencyOf(values).p50;

function peakResident(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1_024;
}

/** The link beside OpenSSH's own forwarding to the same socket, in turns. */
export const row: Row = {
  name: "link",
  async run(context: BenchContext): Promise<Result[]> {
    const { directory } = context;
    await using relay = await install(context);
    await using ssh = await SshYardstick.start(directory);
    const size = Math.max(32 * 2 ** 20, Math.ceil(GIB * Math.min(1, context.scale)));
    const { target, file } = await makeArtifact(relay, directory, size);
    const remote = relay.paths.workerSocket("local");
    const sockets = { ssh: path.join(directory, "l.sock"), ours: path.join(directory, "o.sock"), own: path.join(directory, "w.sock") };
    using _forward = await ssh.forward(remote, sockets.ssh);
    const site = { user: ssh.user, algorithms: "site", hostKey: ssh.sshd.hostKey(), keyFile: ssh.key, remote } as const;
    using ours = await startLink(context, { ...site, to: { port: ssh.sshd.port }, local: sockets.ours, bringUps: 9 });

    const small = { ssh: [] as number[], ours: [] as number[] };
    const during = { ssh: [] as number[], ours: [] as number[] };
    const rate = { ssh: [] as number[], ours: [] as number[] };
    const connects: number[] = [];
    for (const kind of ["ssh", "ours"] as const) for (let i = 0; i < SMALL; i++) await smallMs(sockets[kind]);
    for (let round = 0; round < ROUNDS; round++) {
      for (const kind of ["ssh", "ours"] as const) {
        for (let i = 0; i < SMALL; i++) small[kind].push(await smallMs(sockets[kind]));
        rate[kind].push(await download(sockets[kind], target, size));
        during[kind].push(...(await smallDuring(sockets[kind], target, size)));
      }
      connects.push(await ssh.hostTrue(), await ssh.hostTrue());
    }
    return [
      {
        name: "small request, kept connection, p50",
        unit: "ms",
        yardstick: { name: "ssh -L", value: median(small.ssh) },
        ours: median(small.ours),
        target: { ratioAtMost: 1.5 },
      },
      {
        name: "small request during a download, p99",
        unit: "ms",
        yardstick: { name: "ssh -L", value: latencyOf(during.ssh).p99 },
        ours: latencyOf(during.ours).p99,
        target: { ratioAtMost: 1.5 },
      },
      {
        name: "artifact, one reader",
        unit: "MB/s",
        yardstick: { name: "ssh -L", value: median(rate.ssh) / MB },
        ours: median(rate.ours) / MB,
        target: { ratioAtLeast: 0.9 },
      },
      {
        name: "bring-up to the first answer",
        unit: "ms",
        yardstick: { name: "ssh host true", value: median(connects) },
        ours: median(ours.bringUps),
        target: { ratioAtMost: 1.5 },
      },
      await overLongPath(context, ssh, { ...site, local: path.join(directory, "d.sock") }, target, file, size),
      await ownSessions(context, relay, sockets.own, target, size),
    ];
  },
};

/** A path of 50 ms there and back. */
async function overLongPath(
  context: BenchContext,
  ssh: SshYardstick,
  options: Omit<LinkProcessOptions, "to" | "bringUps">,
  target: string,
  file: string,
  size: number,
): Promise<Result> {
  await using proxy = await TcpProxy.start({ host: ssh.sshd.host, port: ssh.sshd.port });
  proxy.weather.delayMs = PATH_DELAY_MS;
  using _link = await startLink(context, { ...options, to: { port: proxy.port }, bringUps: 1 });
  const rates = { scp: [] as number[], ours: [] as number[] };
  for (let round = 0; round < 2; round++) {
    rates.scp.push((size / (await ssh.scp(file, proxy.port))) * 1_000);
    rates.ours.push(await download(options.local, target, size));
  }
  return {
    name: "artifact over a path of 50 ms",
    unit: "MB/s",
    yardstick: { name: "scp", value: median(rates.scp) / MB },
    ours: median(rates.ours) / MB,
    target: { ratioAtLeast: 0.8 },
  };
}

/** Sessions that the worker itself answers, so that the cryptography is in its memory. */
async function ownSessions(context: BenchContext, relay: Installation, local: string, target: string, size: number): Promise<Result> {
  const keyFile = path.join(context.directory, "desktop-key");
  const { privateKey, publicLine } = makeKeyPair("bench");
  fs.writeFileSync(keyFile, privateKey, { mode: 0o600 });
  const coreDir = relay.paths.coreDir("local");
  await allowClients(coreDir, [publicLine], { by: "bootstrap" });
  using _link = await startLink(context, {
    to: { path: relay.paths.workerLinkSocket("local") },
    user: SESSION_USER,
    algorithms: "own",
    hostKey: lineOfPublicKey(hostPublicKey(coreDir, "bench")),
    keyFile,
    remote: "/",
    local,
    bringUps: 1,
  });
  // proc(5): from here on the high-water mark is counted anew.
  fs.writeFileSync(`/proc/${relay.workerPid}/clear_refs`, "5");
  await Promise.all(Array.from({ length: 8 }, () => download(local, target, size)));
  return {
    name: "worker during 8 downloads of its own sessions, resident",
    unit: "MB",
    yardstick: null,
    ours: peakResident(relay.workerPid) / MB,
    target: { atMost: 160 },
  };
}
