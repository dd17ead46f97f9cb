import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { type FrpServer, frpcConfiguration, visitorConfiguration } from "../../src/transport/frp/configuration.ts";
import { freePorts } from "../../src/transport/frp/free-ports.ts";
import { configureFor, pinWorkerKey } from "../../test/cli/relay-desk.ts";
import { initialized, type SourceRelay } from "../../test/cli/source-relay.ts";
import { farLink } from "../../test/cli/ssh-desk.ts";
import { frpProgram, noFrp } from "../../test/rigs/frp/programs.ts";
import { Frps } from "../../test/rigs/frp/server.ts";
import { TcpProxy } from "../../test/rigs/proxy/tcp-proxy.ts";
import { eventually } from "../../test/runner/wait.ts";
import type { BenchContext, Result, Row } from "../row.ts";
import { answeredAfter, awayMs } from "./path-back.ts";

/** What may come on top of the time that frpc itself takes to be back; seconds. */
const OVER_FRPC = 1;

/** The way of each side to frps. */
interface Ways {
  readonly frps: Frps;
  readonly desk: TcpProxy;
  readonly cluster: TcpProxy;
}

/** A frpc on each side and nothing of ours: what is said to the visitor's port comes back from the other end. */
class BareFrpc implements AsyncDisposable {
  readonly #children: readonly Bun.Subprocess[];

  private constructor(
    private readonly echo: net.Server,
    private readonly port: number,
    files: readonly string[],
  ) {
    this.#children = files.map((file) =>
      Bun.spawn([frpProgram("frpc"), "-c", file], { stdin: "ignore", stdout: "ignore", stderr: "ignore" }),
    );
  }

  static async start(directory: string, { frps, desk, cluster }: Ways): Promise<BareFrpc> {
    const echo = net.createServer((socket) => void socket.on("error", () => undefined).pipe(socket));
    await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
    const [port] = (await freePorts(1)) as [number];
    const through = (way: TcpProxy): FrpServer => frps.server({ port: way.port });
    const shared = { type: "stcp", secret: "of-the-benchmark" } as const;
    const proxy = frpcConfiguration(through(cluster), [
      { ...shared, name: "bare", target: { port: (echo.address() as net.AddressInfo).port } },
    ]);
    const visitor = visitorConfiguration(through(desk), [{ ...shared, name: "visitor", server: "bare", address: "127.0.0.1", port }]);
    const files = [proxy, visitor].map((text, at) => {
      const file = path.join(directory, `bare-${at}.toml`);
      fs.writeFileSync(file, text, { mode: 0o600 });
      return file;
    });
    const bare = new BareFrpc(echo, port, files);
    await bare.answeredAfter();
    return bare;
  }

  /** Seconds until something comes back, asked for again and again. */
  async answeredAfter(): Promise<number> {
    const began = performance.now();
    await eventually(() => this.#echoed(), { timeoutMs: 120_000, everyMs: 20, what: "an answer through frpc alone" });
    return (performance.now() - began) / 1_000;
  }

  #echoed(): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = net.connect({ port: this.port, host: "127.0.0.1", noDelay: true });
      const over = (came: boolean): void => {
        clearTimeout(late);
        socket.destroy();
        resolve(came);
      };
      const late = setTimeout(() => over(false), 1_000);
      socket.on("error", () => over(false));
      socket.on("close", () => over(false));
      socket.once("data", () => over(true));
      socket.write("x");
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      child.kill();
      await child.exited;
    }
    this.echo.close();
  }
}

/** A cluster `far` that is met through frps, as bootstrap would have set it up, until its link is up. */
async function meet(directory: string, desk: SourceRelay, cluster: SourceRelay, { frps, ...ways }: Ways): Promise<void> {
  const token = path.join(directory, "token");
  fs.writeFileSync(token, `${frps.token}\n`, { mode: 0o600 });
  const server = ["--frp-server-addr", "127.0.0.1", "--frp-server-port", String(ways.desk.port), "--frp-protocol", "tcp"];
  await desk.ok("cluster", "add", "--name", "far", ...server, "--frp-token-file", token);
  const room = JSON.parse(fs.readFileSync(path.join(desk.home, "config", "frp", "far.json"), "utf8")) as object;
  const hostKey = await configureFor(cluster, desk, "far", {
    frp: {
      server: { server_addr: "127.0.0.1", server_port: ways.cluster.port, protocol: "tcp", stun_server: null },
      direct: false,
      room,
      frpc: frpProgram("frpc"),
    },
  });
  await cluster.ok("worker", "start", "--cluster", "far");
  await pinWorkerKey(desk, "far", hostKey);
  await up(desk);
}

const stateOf = async (desk: SourceRelay): Promise<string> => (await farLink(desk)).state;
const up = (desk: SourceRelay): Promise<boolean> =>
  eventually(async () => (await stateOf(desk)) === "up", { what: "a link that is up", timeoutMs: 120_000, everyMs: 100 });

/** How long it takes until an operation is answered through a frps that is back, or whose path is, beside a pair of frpc that is left to itself. */
export const row: Row = {
  name: "path-back-frps",
  async run({ directory, scale, note }: BenchContext): Promise<Result[]> {
    const missing = noFrp();
    if (missing !== null) {
      note(`left out: ${missing}`);
      return [];
    }
    await using frps = await Frps.start();
    await using near = await TcpProxy.start({ host: "127.0.0.1", port: frps.port });
    await using far = await TcpProxy.start({ host: "127.0.0.1", port: frps.port });
    const ways = { frps, desk: near, cluster: far };
    const env = { CLIO_RELAY_FRPC_BIN: frpProgram("frpc"), CLIO_RELAY_CLUSTER: "far" };
    await using desk = await initialized(env);
    await using cluster = await initialized(env);
    await meet(directory, desk, cluster, ways);
    await using bare = await BareFrpc.start(directory, ways);
    const rounds = Math.max(1, Math.round(4 * scale));
    const measured = { silent: { bare: [] as number[], ours: [] as number[] }, restarted: { bare: [] as number[], ours: [] as number[] } };
    const away = async (what: keyof typeof measured, round: number, begin: () => unknown, end: () => unknown): Promise<void> => {
      await begin();
      await eventually(async () => (await stateOf(desk)) === "connecting", { timeoutMs: 120_000, everyMs: 100, what: "the first try" });
      await Bun.sleep(awayMs(round / rounds));
      await end();
      const [alone, ours] = await Promise.all([bare.answeredAfter(), answeredAfter(desk)]);
      measured[what].bare.push(alone);
      measured[what].ours.push(ours);
      await up(desk);
    };
    for (let round = 0; round < rounds; round++) {
      const silence = (silent: boolean) => (): void => {
        near.weather.blackhole = silent;
      };
      await away("silent", round, silence(true), silence(false));
      await away(
        "restarted",
        round,
        () => frps.kill(),
        () => frps.again(),
      );
    }
    const line = (name: string, { bare: alone, ours }: { readonly bare: number[]; readonly ours: number[] }): Result => ({
      name,
      unit: "s",
      yardstick: { name: "frpc by itself", value: Math.max(...alone) },
      ours: Math.max(...ours),
      target: { overYardstickAtMost: OVER_FRPC },
    });
    return [
      line("answered again through frps, after the desktop's packets were lost", measured.silent),
      line("answered again through frps, after frps was gone", measured.restarted),
    ];
  },
};
