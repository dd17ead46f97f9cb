import fs from "node:fs";
import path from "node:path";
import { HttpPeer } from "../../src/api/http-peer.ts";
import { InputClient } from "../../src/api/input-client.ts";
import { InputFile } from "../../src/api/staging/input-file.ts";
import { snapshots, stage } from "../../src/api/staging/stage.ts";
import { install, residentBytes } from "../installation.ts";
import { startLink } from "../link.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { latencyOf } from "../yardsticks/latency.ts";
import { SshYardstick } from "../yardsticks/ssh.ts";

const MB = 1_000_000;
const GIB = 2 ** 30;
const ROUNDS = 3;

const median = (values: readonly number[]): number => latencyOf(values).p50;

/** An input on its way to the worker, from the first look at the file to its record, beside the same bytes through ssh, in turns. */
export const row: Row = {
  name: "staging",
  async run(context: BenchContext): Promise<Result[]> {
    const { directory } = context;
    await using relay = await install(context);
    await using ssh = await SshYardstick.start(directory);
    const local = path.join(directory, "o.sock");
    using _link = await startLink(context, {
      user: ssh.user,
      algorithms: "site",
      hostKey: ssh.sshd.hostKey(),
      keyFile: ssh.key,
      remote: relay.paths.workerSocket("local"),
      to: { port: ssh.sshd.port },
      local,
      bringUps: 1,
    });
    const client = new InputClient("local", new HttpPeer({ kind: "unix", path: local }));
    const size = Math.max(32 * 2 ** 20, Math.ceil(GIB * Math.min(1, context.scale)));
    const rates = { ssh: [] as number[], ours: [] as number[] };
    let resident = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const file = path.join(directory, `input-${round}`);
      writeRandom(file, size);
      rates.ssh.push((size / (await ssh.send(file))) * 1_000);
      const began = performance.now();
      await stageFile(client, file, directory);
      rates.ours.push((size / (performance.now() - began)) * 1_000);
      resident = Math.max(resident, residentBytes(relay.workerPid));
      fs.rmSync(file);
    }
    return [
      {
        name: "input to its record",
        unit: "MB/s",
        yardstick: { name: "ssh cat, flushed", value: median(rates.ssh) / MB },
        ours: median(rates.ours) / MB,
        target: { ratioAtLeast: 0.8 },
      },
      { name: "worker after an input, resident", unit: "MB", yardstick: null, ours: resident / MB, target: null },
    ];
  },
};

async function stageFile(client: InputClient, file: string, root: string): Promise<void> {
  const options = { persist: <T>(work: () => Promise<T>) => work(), onProgress: () => undefined };
  const input = await InputFile.at({ where: file, path: file, root, platform: process.platform });
  await stage(client, await snapshots([{ logicalName: path.basename(file), file: input }], options), () => 1, options);
}

function writeRandom(file: string, size: number): void {
  const block = Buffer.allocUnsafe(2 ** 20);
  const fd = fs.openSync(file, "w");
  for (let at = 0; at < size; at += block.length) {
    for (let from = 0; from < block.length; from += 65_536) crypto.getRandomValues(block.subarray(from, from + 65_536));
    fs.writeSync(fd, block, 0, Math.min(block.length, size - at));
  }
  fs.closeSync(fd);
}
