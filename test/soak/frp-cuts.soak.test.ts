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
import { scaled, soakSettings } from "../runner/soak.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { Campaign } from "./campaign.ts";
import { LinkLoad } from "./link-load.ts";

const ROUNDS = 100;
const JOBS = 150;
const CALM = { delayMs: 0, bytesPerSecond: Number.POSITIVE_INFINITY, blackhole: false };

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
      kinds: ["plain", "plain", "failing", "bulk", "reporting", "leaving", "leaving", "retried", "canceled"],
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

    const { faults, submitted } = campaign;
    const rounds = scaled(ROUNDS, 6);
    const jobs = scaled(JOBS, 15);
    const linkState = async (): Promise<string> => (await desk.json<{ links: { state: string }[] }>("link", "list")).links[0]!.state;
    const up = (): Promise<boolean> =>
      eventually(async () => (await linkState()) === "up", { timeoutMs: 120_000, everyMs: 50, what: "a link that comes back by itself" });
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

    const happened = new Map<Fault, number>();
    const fault = async (kind: Fault): Promise<void> => {
      happened.set(kind, (happened.get(kind) ?? 0) + 1);
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
      const weather = faults.below(2) === 0 ? near.weather : far.weather;
      Object.assign(weather, kind === "blackholed" ? { blackhole: true } : { bytesPerSecond: faults.between(100_000, 3_000_000) });
      await Bun.sleep(away);
      Object.assign(weather, CALM);
    };

    await up();
    const load = new LinkLoad({ campaign, desk, rounds, jobs });
    for (; load.round < rounds; load.round++) {
      await Bun.sleep(faults.below(800));
      await fault(faults.of(FAULTS));
      await up();
      expect([frpcs(desk.home).length, frpcs(campaign.relay.home).length]).toEqual([1, 1]);
    }
    await load.over();

    const wrong = await load.wrong();
    const ledger = fs
      .readFileSync(path.join(desk.home, "state", "connections.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { outcome: string; client: string; attended: boolean });
    console.log(
      `seed ${soakSettings().seed}: ${rounds} rounds (${[...happened].map(([kind, times]) => `${times} ${kind}`).join(", ")}); ${submitted.length} jobs, ${load.watched} watched, ` +
        `${load.outages} followers went on after an outage, ${load.contents} contents read; ${ledger.filter(({ outcome }) => outcome === "open").length} links`,
    );
    expect(wrong).toEqual([]);
    expect(new Set(ledger.map(({ client, attended }) => `${client} ${attended}`))).toEqual(new Set(["frp false"]));
    expect(submitted.length).toBe(jobs);
    expect(await campaign.verify()).toEqual([]);
  });
});
