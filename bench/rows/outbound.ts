import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { newRoom } from "../../src/config/frp-room.ts";
import { PLAIN_COPIES } from "../../src/lib/system/plain-copies.ts";
import { frpcConfiguration, visitorConfiguration } from "../../src/transport/frp/configuration.ts";
import { freePorts } from "../../src/transport/frp/free-ports.ts";
import { ON_ONE_PROCESSOR } from "../../src/transport/frp/frpc.ts";
import { proxyName } from "../../src/transport/frp/visit.ts";
import { SESSION_USER } from "../../src/transport/session/admission.ts";
import { makeKeyPair } from "../../src/transport/session/key-pair.ts";
import { frpProgram, noFrp } from "../../test/rigs/frp/programs.ts";
import { Frps } from "../../test/rigs/frp/server.ts";
import { eventually } from "../../test/runner/wait.ts";
import { authority } from "../../test/transport/outbound/certificates.ts";
import { install } from "../installation.ts";
import { startLink } from "../link.ts";
import type { LinkProcessOptions } from "../link-process.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { SshYardstick } from "../yardsticks/ssh.ts";
import { download, makeArtifact, median } from "./link.ts";

const MB = 1_000_000;
const ROUNDS = 4;
const TOKEN = "token-of-the-benchmark-0123456789abcdef";

/** A way to a worker that accepts no connections. */
interface Way extends AsyncDisposable {
  /** What the worker has to be told of it. */
  readonly configuration: object;
  readonly settings: Record<string, string>;
  readonly to: LinkProcessOptions["to"];
  /** Bytes alone on the same way, with nothing of ours on it; bytes per second. */
  readonly bare?: (bytes: number) => Promise<number>;
}

/** By WebSocket over TLS, or by TCP: what is in it is encrypted either way. */
const throughRelayHost =
  (carrier: "wss" | "tcp") =>
  async (context: BenchContext): Promise<Way> => {
    const ca = authority(context.directory);
    const { cert, key } = ca.issue("localhost", "DNS:localhost,IP:127.0.0.1");
    const listen = carrier === "tcp" ? ["--listen-tcp", "127.0.0.1:0"] : ["--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key];
    const child = Bun.spawn([context.executable, "relay-host", "serve", ...listen, "--json"], {
      env: { ...process.env, ...PLAIN_COPIES, CLIO_RELAY_HOST_TOKEN: TOKEN, CLIO_RELAY_HOME: path.join(context.directory, "relay-host") },
      stdin: "ignore",
      stdout: "pipe",
      stderr: Bun.file(path.join(context.directory, "relay-host.log")),
    });
    const { value } = await child.stdout.getReader().read();
    const { listening } = JSON.parse(new TextDecoder().decode(value)) as { listening: [{ port: number }] };
    const relay = `${carrier}://localhost:${listening[0].port}`;
    return {
      configuration: { relay: { relay_host: relay, token: TOKEN } },
      settings: { CLIO_RELAY_CA_FILE: ca.file },
      to: { relay, token: TOKEN, caFile: ca.file },
      async [Symbol.asyncDispose]() {
        child.kill();
        await child.exited;
      },
    };
  };

/** Sends as many bytes as it is asked for, and ends. */
async function source(): Promise<net.Server> {
  const chunk = Buffer.alloc(64 * 1024, 7);
  const server = net.createServer((socket) => {
    socket
      .on("error", () => undefined)
      .once("data", (asked: Buffer) => {
        let left = asked.readUInt32BE();
        const go = (): void => {
          while (left > 0) {
            const piece = chunk.subarray(0, left);
            left -= piece.length;
            if (!socket.write(piece) && left > 0) return void socket.once("drain", go);
          }
          socket.end();
        };
        go();
      });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

/** Asks for bytes at a port of this machine; bytes per second. */
async function bareStream(port: number, bytes: number): Promise<number> {
  const socket = await SshYardstick.connect(port);
  const asked = Buffer.alloc(4);
  asked.writeUInt32BE(bytes);
  const began = performance.now();
  socket.write(asked);
  let got = 0;
  for await (const piece of socket) got += (piece as Buffer).length;
  if (got !== bytes) throw new Error(`${got} of ${bytes} bytes came`);
  return (got / (performance.now() - began)) * 1_000;
}

async function throughFrps(context: BenchContext): Promise<Way> {
  const frps = await Frps.start();
  const room = { ...newRoom(), token: frps.token };
  const [port, barePort] = (await freePorts(2)) as [number, number];
  const near = { type: "stcp", secret: room.secret, address: "127.0.0.1" } as const;
  const visitors = [
    { ...near, name: "visitor", server: proxyName(room.name, "stcp"), port },
    { ...near, name: "bare-visitor", server: "bare", port: barePort },
  ];
  const bytes = await source();
  const target = { port: (bytes.address() as net.AddressInfo).port };
  const configurations = {
    visitor: visitorConfiguration(frps.server(), visitors),
    bare: frpcConfiguration(frps.server(), [{ name: "bare", type: "stcp", secret: room.secret, target }]),
  };
  const started = Object.entries(configurations).map(([name, text]) => {
    const file = path.join(context.directory, `${name}.toml`);
    fs.writeFileSync(file, text, { mode: 0o600 });
    // As the desktop starts one.
    const env = { ...process.env, ...(name === "visitor" ? ON_ONE_PROCESSOR : {}) };
    return Bun.spawn([frpProgram("frpc"), "-c", file], { env, stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  });
  return {
    configuration: {
      frp: {
        server: { server_addr: "127.0.0.1", server_port: frps.port, protocol: "tcp", stun_server: null },
        direct: false,
        room,
        frpc: frpProgram("frpc"),
      },
    },
    settings: {},
    to: { port },
    bare: (size) => bareStream(barePort, size),
    async [Symbol.asyncDispose]() {
      for (const child of started) {
        child.kill();
        await child.exited;
      }
      bytes.close();
      await frps[Symbol.asyncDispose]();
    },
  };
}

/** A link of that way beside one over sshd, to the same worker, in turns. */
async function beside(name: string, context: BenchContext, begin: (context: BenchContext) => Promise<Way>): Promise<Result[]> {
  const directory = path.join(context.directory, name.replaceAll(/[^a-z]+/g, "-"));
  fs.mkdirSync(directory);
  await using way = await begin({ ...context, directory });
  const keyFile = path.join(directory, "desktop-key");
  const { privateKey, publicLine } = makeKeyPair("bench");
  fs.writeFileSync(keyFile, privateKey, { mode: 0o600 });
  let hostKey = "";
  await using relay = await install({ ...context, directory }, way.settings, async (run) => {
    const configuration = {
      schema_version: "clio-relay.worker-configuration.v1",
      cluster: "local",
      env_setup: null,
      worker_capacity: { concurrency: 3, control_query_concurrency: 1, kind_concurrency: {} },
      client_keys: [publicLine],
      ...way.configuration,
    };
    hostKey = (JSON.parse(await run(["worker", "configure"], JSON.stringify(configuration))) as { host_key: string }).host_key;
  });
  await using ssh = await SshYardstick.start(directory);
  const size = Math.max(32 * 2 ** 20, Math.ceil(2 ** 30 * Math.min(1, context.scale)));
  const { target } = await makeArtifact(relay, directory, size);
  const sockets = { ssh: path.join(directory, "s.sock"), ours: path.join(directory, "o.sock"), alone: path.join(directory, "a.sock") };
  using _ssh = await startLink(context, {
    to: { port: ssh.sshd.port },
    user: ssh.user,
    algorithms: "site",
    hostKey: ssh.sshd.hostKey(),
    keyFile: ssh.key,
    remote: relay.paths.workerSocket("local"),
    local: sockets.ssh,
    bringUps: 1,
  });
  const own = {
    to: way.to,
    user: SESSION_USER,
    algorithms: "own",
    hostKey,
    keyFile,
    remote: "/",
    local: sockets.ours,
    bringUps: 1,
  } as const;
  using _ours = await eventually(() => startLink(context, own), { timeoutMs: 60_000, what: `a link through ${name}` });
  // Without anything between the two.
  const beside = { ...own, to: { path: relay.paths.workerLinkSocket("local") }, local: sockets.alone };
  using _alone = way.bare === undefined ? null : await startLink(context, beside);
  const rate = { ssh: [] as number[], ours: [] as number[], bare: [] as number[], bound: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    for (const kind of ["ssh", "ours"] as const) rate[kind].push(await download(sockets[kind], target, size));
    if (way.bare === undefined) continue;
    const [bare, alone] = [await way.bare(size), await download(sockets.alone, target, size)];
    rate.bare.push(bare);
    rate.bound.push(1 / (1 / bare + 1 / alone));
  }
  const result = { name: `artifact through ${name}`, unit: "MB/s", ours: median(rate.ours) / MB };
  const overSshd = { name: "our link over sshd", value: median(rate.ssh) / MB };
  const results: Result[] = [{ ...result, yardstick: overSshd, target: { ratioAtLeast: 0.8 } }];
  // How much of it is the way's; and what both come to where all processors are busy with either, so that their times add up.
  if (rate.bare.length > 0) {
    for (const [what, values] of [
      ["bytes alone there", rate.bare],
      ["bytes alone there, then a link without it", rate.bound],
    ] as const)
      results.push({ ...result, yardstick: { name: what, value: median(values) / MB }, target: null });
  }
  return results;
}

/** Links of clusters that accept no connections, beside one that does. */
export const row: Row = {
  name: "outbound",
  async run(context: BenchContext): Promise<Result[]> {
    const results = [
      ...(await beside("a relay-host (wss)", context, throughRelayHost("wss"))),
      ...(await beside("a relay-host (tcp)", context, throughRelayHost("tcp"))),
    ];
    const missing = noFrp();
    if (missing === null) results.push(...(await beside("frps", context, throughFrps)));
    else context.note(`left out: frps (${missing})`);
    return results;
  },
};
