import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { TcpProxy } from "../rigs/proxy/tcp-proxy.ts";
import { makeKey, type Sshd, startSshd } from "../rigs/sshd.ts";
import { describeWith } from "../runner/components.ts";
import { Relay } from "../runner/relay.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { Campaign } from "./campaign.ts";
import { CALM, cutRounds, KINDS, linkState, openOf } from "./cut-rounds.ts";

type Fault = "cut" | "reset" | "session killed" | "cut while connecting" | "blackholed" | "blackholed for long" | "delayed" | "throttled";
/** In the share in which they happen. */
const FAULTS: readonly [Fault, ...Fault[]] = [
  ...(["cut", "cut", "cut", "reset", "reset", "reset", "session killed", "session killed"] as const),
  ...(["cut while connecting", "cut while connecting", "blackholed", "blackholed", "delayed", "delayed", "throttled"] as const),
  "blackholed for long",
];

describeWith(["sshd", "ssh"], "a link over an sshd, its path cut again and again", () => {
  const files = temporaryDirectory();
  let sshd: Sshd;
  let proxy: TcpProxy;

  beforeAll(async () => {
    const key = makeKey(files.path);
    fs.copyFileSync(`${key}.pub`, path.join(files.path, "authorized_keys"));
    sshd = await startSshd({
      config: ["PermitRootLogin prohibit-password", `AuthorizedKeysFile ${path.join(files.path, "authorized_keys")}`],
    });
    proxy = await TcpProxy.start({ host: sshd.host, port: sshd.port });
    const config = [
      "Host login",
      "  HostName 127.0.0.1",
      `  Port ${proxy.port}`,
      `  User ${process.env["USER"] ?? "root"}`,
      `  IdentityFile ${key}`,
      "  IdentityAgent none",
      `  UserKnownHostsFile ${path.join(files.path, "known")}`,
      "  GlobalKnownHostsFile /dev/null",
    ];
    fs.writeFileSync(path.join(files.path, "known"), `[127.0.0.1]:${proxy.port} ${sshd.hostKey()}\n`);
    fs.writeFileSync(path.join(files.path, "config"), `${config.join("\n")}\n`, { mode: 0o600 });
  });
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await sshd[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  test("nothing is lost, doubled or altered, and whoever follows goes on from where it was", async () => {
    await using campaign = await new Campaign("link cuts", {
      kinds: KINDS,
      again: ["authorization_required"],
    }).init();
    await using desk = new Relay({ env: { CLIO_RELAY_SSH_CONFIG: path.join(files.path, "config") } });
    await desk.json("init");
    await desk.json("cluster", "add", "local", "--ssh-host", "login", "--core-dir", campaign.relay.home);
    campaign.users = desk;

    const { faults } = campaign;
    const connect = (): Promise<boolean> =>
      eventually(async () => (await desk.run(["connect", "local", "--no-input"])).code === 0, {
        everyMs: 100,
        what: "the next link",
      });

    const fault = async (kind: Fault): Promise<void> => {
      if (kind === "cut") return proxy.cut();
      if (kind === "reset") return proxy.reset();
      if (kind === "session killed") return sshd.cut();
      if (kind === "cut while connecting") {
        proxy.cut();
        await eventually(async () => (await linkState(desk)) !== "up", { what: "the end of the link" });
        const attempt = desk.run(["connect", "local", "--no-input"]);
        await Bun.sleep(faults.below(500));
        proxy.cut();
        await attempt;
        return;
      }
      if (kind === "delayed") proxy.weather.delayMs = faults.between(5, 400);
      else if (kind === "throttled") proxy.weather.bytesPerSecond = faults.between(100_000, 3_000_000);
      else proxy.weather.blackhole = true;
      if (kind === "blackholed for long") {
        await eventually(async () => !["up", "degraded"].includes(await linkState(desk)), {
          what: "that the link is given up",
        });
        Object.assign(proxy.weather, CALM);
        return;
      }
      await Bun.sleep(faults.between(200, 3_000));
      Object.assign(proxy.weather, CALM);
    };

    const letIn = (): number => sshd.log.match(/^Accepted publickey /gm)?.length ?? 0;
    const ledger = await cutRounds({
      campaign,
      desk,
      kinds: FAULTS,
      fault,
      again: connect,
      summary: (dialed) => `${dialed.length} dials, ${openOf(dialed)} open, sshd saw ${sshd.connections()}, let in ${letIn()}`,
    });
    // Every connection that came was written down before, and nobody but connect asked for one.
    expect(ledger.length).toBe(proxy.accepted);
    expect(sshd.connections()).toBeLessThanOrEqual(ledger.length);
    expect(letIn()).toBeGreaterThanOrEqual(openOf(ledger));
    expect(new Set(ledger.map(({ requested_by }) => requested_by))).toEqual(new Set(["clio-relay connect local"]));
    expect(proxy.accepted).toBe(ledger.length);
  });
});
