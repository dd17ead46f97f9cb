import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { configureForRelay, pinWorkerKey, TestRelayHost, TOKEN } from "../cli/relay-desk.ts";
import { NginxEdge } from "../rigs/nginx-edge.ts";
import { ConnectProxy } from "../rigs/proxy/connect-proxy.ts";
import { TcpProxy } from "../rigs/proxy/tcp-proxy.ts";
import { describeWith } from "../runner/components.ts";
import { Relay } from "../runner/relay.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { authority } from "../transport/outbound/certificates.ts";
import { Campaign } from "./campaign.ts";
import { badWeather, cutRounds, KINDS, upAgain } from "./cut-rounds.ts";

type Fault =
  | "desk's path cut"
  | "cluster's path reset"
  | "relay-host killed"
  | "relay-host restarted"
  | "edge killed"
  | "proxy hangs up"
  | "worker killed"
  | "relay-host hangs"
  | "blackholed"
  | "throttled";
/** In the share in which they happen. */
const FAULTS: readonly [Fault, ...Fault[]] = [
  ...(["desk's path cut", "desk's path cut", "cluster's path reset", "relay-host killed", "relay-host killed"] as const),
  ...(["relay-host restarted", "edge killed", "proxy hangs up", "proxy hangs up", "worker killed", "worker killed"] as const),
  ...(["relay-host hangs", "blackholed", "throttled", "throttled"] as const),
];

describeWith(["nginx", "openssl"], "a link by way of a proxy, an edge and a relay-host, of which something ends again and again", () => {
  const files = temporaryDirectory();
  let host: TestRelayHost;
  let edge: NginxEdge;
  let proxy: ConnectProxy;
  /** Between the desk and the proxy, and between the worker and the relay-host. */
  let near: TcpProxy;
  let far: TcpProxy;
  let ca: string;

  beforeAll(async () => {
    const own = authority(files.path);
    ca = own.file;
    host = await TestRelayHost.start();
    edge = await NginxEdge.start({ certificate: own.issue("edge", "DNS:relay.example"), port: host.port });
    proxy = await ConnectProxy.start({ credentials: "desk:word", resolve: () => ({ host: "127.0.0.1", port: edge.port }) });
    near = await TcpProxy.start({ host: "127.0.0.1", port: proxy.port });
    far = await TcpProxy.start({ host: "127.0.0.1", port: host.port });
    fs.writeFileSync(path.join(files.path, "token"), `${TOKEN}\n`, { mode: 0o600 });
  });
  afterAll(async () => {
    for (const one of [near, far, proxy, edge, host]) await one[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  test("nothing is lost, doubled or altered, and the link is back by itself each time", async () => {
    await using desk = new Relay({ env: { CLIO_RELAY_CA_FILE: ca, HTTPS_PROXY: `http://desk:word@127.0.0.1:${near.port}` } });
    await using campaign = new Campaign("relay cuts", {
      kinds: KINDS,
    });
    await desk.json("init");
    await campaign.relay.json("init");
    const hostKey = await configureForRelay(campaign.relay, desk, "local", `ws://127.0.0.1:${far.port}`);
    await campaign.startWorker();
    await desk.json(
      "cluster",
      "add",
      "local",
      "--relay-host",
      "wss://relay.example/relay",
      "--relay-token-file",
      path.join(files.path, "token"),
    );
    await pinWorkerKey(desk, "local", hostKey);
    campaign.users = desk;

    const { faults } = campaign;
    const fault = async (kind: Fault): Promise<unknown> => {
      const away = faults.between(0, 3_000);
      if (kind === "desk's path cut") return near.cut();
      if (kind === "cluster's path reset") return far.reset();
      if (kind === "edge killed") return edge.restart();
      if (kind === "proxy hangs up") return proxy.cut();
      if (kind === "relay-host killed" || kind === "relay-host restarted") {
        await host.end(kind === "relay-host killed" ? "SIGKILL" : "SIGTERM");
        await Bun.sleep(away);
        return host.start();
      }
      if (kind === "worker killed") {
        await campaign.killWorker();
        await Bun.sleep(away);
        return campaign.startWorker();
      }
      if (kind === "relay-host hangs") {
        host.signal("SIGSTOP");
        await Bun.sleep(away);
        return host.signal("SIGCONT");
      }
      return badWeather(campaign, [near, far], kind === "blackholed");
    };

    const ledger = await cutRounds({ campaign, desk, kinds: FAULTS, fault, again: () => upAgain(desk) });
    expect(new Set(ledger.map(({ client, attended }) => `${client} ${attended}`))).toEqual(new Set(["relay false"]));
  });
});
