import fs from "node:fs";
import path from "node:path";
import { HttpPeer } from "../../src/api/client/http-peer.ts";
import { InputClient } from "../../src/api/client/input-client.ts";
import { InputFile } from "../../src/api/staging/input-file.ts";
import { snapshots, stage } from "../../src/api/staging/stage.ts";
import { PLAIN_COPIES } from "../../src/lib/system/plain-copies.ts";
import { install, residentBytes } from "../installation.ts";
import { startLink } from "../link.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { latencyOf } from "../yardsticks/latency.ts";
import { SshYardstick } from "../yardsticks/ssh.ts";

const MB = 1_000_000;
const GIB = 2 ** 30;
const ROUNDS = 3;

const median = (values: readonly number[]): number => latencyOf(values).p50;

/** An input on its way to the worker, from the first look at the file to its record, beside the same bytes as one stream: through ssh, and over a link like its own; in turns. */
export const row: Row = {
  name: "staging",
  async run(context: BenchContext): Promise<Result[]> {
    const { directory } = context;
    await using relay = await install(context);
    await using ssh = await SshYardstick.start(directory);
    const local = path.join(directory, "o.sock");
    const site = { user: ssh.user, algorithms: "site", hostKey: ssh.sshd.hostKey(), keyFile: ssh.key, bringUps: 1 } as const;
    const to = { port: ssh.sshd.port };
    const worker = relay.paths.workerSocket("local");
    using _link = await startLink(context, { ...site, to, remote: worker, local });
    await using sink = await fileSink(context, worker);
    const plain = path.join(directory, "p.sock");
    using _plain = await startLink(context, { ...site, to, remote: sink.socket, local: plain });
    const client = new InputClient("local", new HttpPeer({ kind: "unix", path: local }));
    const size = Math.max(32 * 2 ** 20, Math.ceil(GIB * Math.min(1, context.scale)));
    const rates = { ssh: [] as number[], plain: [] as number[], ours: [] as number[] };
    const rate = async (work: Promise<unknown>): Promise<number> => {
      const began = performance.now();
      await work;
      return (size / (performance.now() - began)) * 1_000;
    };
    let resident = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const file = path.join(directory, `input-${round}`);
      writeRandom(file, size);
      const turns = [
        async () => rates.ssh.push((size / (await ssh.send(file))) * 1_000),
        async () => rates.plain.push(await rate(sendPlain(plain, file, size))),
        async () => rates.ours.push(await rate(stageFile(client, file, directory))),
      ];
      for (let n = 0; n < turns.length; n++) await turns[(round + n) % turns.length]!();
      resident = Math.max(resident, residentBytes(relay.workerPid));
      fs.rmSync(file);
      // What the others wrote is gone, too: where files stay, the next one costs more.
      removeInputs(path.join(relay.paths.spoolDir("local"), "inputs"));
    }
    return [
      {
        name: "input to its record",
        unit: "MB/s",
        yardstick: { name: "ssh cat, flushed", value: median(rates.ssh) / MB },
        ours: median(rates.ours) / MB,
        target: { ratioAtLeast: 0.8 },
      },
      {
        name: "the same",
        unit: "MB/s",
        yardstick: { name: "one stream over a link, flushed", value: median(rates.plain) / MB },
        ours: median(rates.ours) / MB,
        target: { ratioAtLeast: 0.8 },
      },
      { name: "worker after an input, resident", unit: "MB", yardstick: null, ours: resident / MB, target: null },
    ];
  },
};

async function fileSink(context: BenchContext, worker: string): Promise<AsyncDisposable & { readonly socket: string }> {
  const socket = path.join(context.directory, "sink.sock");
  const script = path.join(path.dirname(import.meta.dir), "file-sink-process.ts");
  const link = await (await fetch("http://worker/link", { unix: worker } as RequestInit)).text();
  const child = Bun.spawn([context.bun, script, socket, path.join(context.directory, "sunk"), link], {
    env: { ...process.env, ...PLAIN_COPIES },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  await child.stdout.getReader().read();
  return {
    socket,
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}

async function sendPlain(unix: string, file: string, size: number): Promise<void> {
  const request = { method: "PUT", body: Bun.file(file), unix, timeout: false, proxy: false };
  const said = await (await fetch("http://sink/", request as unknown as RequestInit)).text();
  if (said !== String(size)) throw new Error(`the sink says ${said}`);
}

async function stageFile(client: InputClient, file: string, root: string): Promise<void> {
  const options = { persist: <T>(work: () => Promise<T>) => work(), onProgress: () => undefined };
  const input = await InputFile.at({ where: file, path: file, root, platform: process.platform });
  await stage(client, await snapshots([{ logicalName: path.basename(file), file: input }], options, client), () => 1, options);
}

function writeRandom(file: string, size: number): void {
  const block = Buffer.allocUnsafe(2 ** 20);
  const fd = fs.openSync(file, "w");
  for (let at = 0; at < size; at += block.length) {
    for (let from = 0; from < block.length; from += 65_536) crypto.getRandomValues(block.subarray(from, from + 65_536));
    fs.writeSync(fd, block, 0, Math.min(block.length, size - at));
  }
  // What is on its way to the disk is nobody's work that is measured.
  fs.fsyncSync(fd);
  fs.closeSync(fd);
}

function removeInputs(directory: string): void {
  for (const name of fs.readdirSync(directory)) fs.chmodSync(path.join(directory, name), 0o700);
  fs.rmSync(directory, { recursive: true });
}
