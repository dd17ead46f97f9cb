import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { configureFor, pinWorkerKey } from "../cli/relay-desk.ts";
import { frpProgram } from "../rigs/frp/programs.ts";
import { Frps } from "../rigs/frp/server.ts";
import { TcpProxy } from "../rigs/proxy/tcp-proxy.ts";
import { describeWith } from "../runner/components.ts";
import { kill, processesMarked } from "../runner/leftovers.ts";
import { Relay } from "../runner/relay.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { Campaign } from "./campaign.ts";
import { badWeather, cutRounds, KINDS, upAgain } from "./cut-rounds.ts";

type Fault =
  | "frps killed"
  | "frps hangs"
  | "desk's frpc killed"
  | "worker's frpc killed"
  | "worker killed"
  | "daemon killed"
  | "desk's path cut"
  | "cluster's path reset"
  | "blackholed"
  | "throttled";
/** In the share in which they happen. */
const FAULTS: readonly [Fault, ...Fault[]] = [
  ...(["frps killed", "frps killed", "frps killed", "frps hangs", "desk's frpc killed", "desk's frpc killed"] as const),
  ...(["worker's frpc killed", "worker's frpc killed", "worker killed", "worker killed", "daemon killed"] as const),
  ...(["desk's path cut", "cluster's path reset", "blackholed", "throttled"] as const),
];

describeWith("frp", "a link through a frps, of which something ends again and again", () => {
  const files = temporaryDirectory();
  let frps: Frps;
  /** Between each side's frpc and frps. */
  let near: TcpProxy;
  let far: TcpProxy;

  beforeAll(async () => {
    frps = await Frps.start();
    near = await TcpProxy.start({ host: "127.0.0.1", port: frps.port });
    far = await TcpProxy.start({ host: "127.0.0.1", port: frps.port });
    fs.writeFileSync(path.join(files.path, "token"), `${frps.token}\n`, { mode: 0o600 });
  });
  afterAll(async () => {
    for (const one of [near, far, frps]) await one[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  test("nothing is lost, doubled or altered, and the link is back by itself each time", async () => {
    await using desk = new Relay({ env: { CLIO_RELAY_FRPC_BIN: frpProgram("frpc") } });
    await using campaign = new Campaign("frp cuts", {
      kinds: KINDS,
    });
    await desk.json("init");
    await campaign.relay.json("init");
    const server = ["--frp-server-addr", "127.0.0.1", "--frp-server-port", String(near.port), "--frp-protocol", "tcp"];
    await desk.json("cluster", "add", "local", ...server, "--frp-token-file", path.join(files.path, "token"));
    const room = JSON.parse(fs.readFileSync(path.join(desk.home, "config", "frp", "local.json"), "utf8")) as object;
    const hostKey = await configureFor(campaign.relay, desk, "local", {
      frp: {
        server: { server_addr: "127.0.0.1", server_port: far.port, protocol: "tcp", stun_server: null },
        direct: false,
        room,
        frpc: frpProgram("frpc"),
      },
    });
    await campaign.startWorker();
    await pinWorkerKey(desk, "local", hostKey);
    campaign.users = desk;

    const { faults } = campaign;
    /** Processes of frpc whose configuration lies in an installation. */
    const frpcs = (home: string): number[] =>
      fs
        .readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .map(Number)
        .filter((pid) => {
          try {
            const line = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8");
            return line.startsWith(frpProgram("frpc")) && line.includes(home);
          } catch {
            return false;
          }
        });

    const fault = async (kind: Fault): Promise<unknown> => {
      const away = faults.between(0, 3_000);
      if (kind === "desk's path cut") return near.cut();
      if (kind === "cluster's path reset") return far.reset();
      if (kind === "desk's frpc killed") return frpcs(desk.home).forEach(kill);
      if (kind === "worker's frpc killed") return frpcs(campaign.relay.home).forEach(kill);
      if (kind === "daemon killed") {
        for (const { pid, command } of processesMarked("CLIO_RELAY_HOME", desk.home)) if (command.includes("desktop run")) kill(pid);
        return;
      }
      if (kind === "frps killed") {
        await frps.kill();
        await Bun.sleep(away);
        return frps.again();
      }
      if (kind === "worker killed") {
        await campaign.killWorker();
        await Bun.sleep(away);
        await campaign.startWorker();
        return;
      }
      if (kind === "frps hangs") {
        frps.stop();
        await Bun.sleep(away);
        return frps.goOn();
      }
      return badWeather(campaign, [near, far], kind === "blackholed");
    };

    const again = async (): Promise<void> => {
      await upAgain(desk);
      expect([frpcs(desk.home).length, frpcs(campaign.relay.home).length]).toEqual([1, 1]);
    };
    const ledger = await cutRounds({ campaign, desk, kinds: FAULTS, fault, again });
    expect(new Set(ledger.map(({ client, attended }) => `${client} ${attended}`))).toEqual(new Set(["frp false"]));
  });
});
