import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { describeWith } from "../../runner/components.ts";
import { kill } from "../../runner/leftovers.ts";
import { eventually } from "../../runner/wait.ts";
import { FrpSite } from "../frp-desk.ts";
import { farLink } from "../ssh-desk.ts";

describeWith(["frp", "sshd", "ssh"], "a cluster that is met through a frps", () => {
  let site: FrpSite;

  beforeAll(async () => {
    site = await FrpSite.start();
    await site.up();
  });
  afterAll(() => site[Symbol.asyncDispose]());

  const hello = async (): Promise<string> => {
    const job = await site.relay.submit("--wait", "--", "echo", "hello");
    return site.relay.ok("job", "read-log", job);
  };

  test("needs SSH once, for its setup, and then never", async () => {
    const before = site.site.sshd.connections();
    expect(before).toBe(1);
    await site.site.sshd[Symbol.asyncDispose]();
    expect(await hello()).toBe("hello");
    const link = await farLink(site.relay);
    expect([link.state, link.ssh_connections_since_bring_up]).toEqual(["up", 0]);
    expect(new Set(link.ledger.map(({ client }) => client))).toEqual(new Set(["builtin", "frp"]));
  });

  test("no secret is in an argument, an environment, a record or a log", async () => {
    const { relay, frps } = site;
    const room = JSON.parse(fs.readFileSync(path.join(relay.home, "config", "frp", "far.json"), "utf8")) as {
      secret: string;
      token: string;
    };
    expect(room.token).toBe(frps.token);
    const shown = [
      await relay.ok("cluster", "show", "far", "--json"),
      await relay.ok("link", "list", "--json"),
      await relay.ok("desktop", "logs"),
      fs.readFileSync(path.join(relay.home, "config", "clusters.json"), "utf8"),
      ...[...site.frpcs("visitor"), ...site.frpcs("worker")].flatMap((pid) => [
        fs.readFileSync(`/proc/${pid}/cmdline`, "utf8"),
        fs.readFileSync(`/proc/${pid}/environ`, "utf8"),
      ]),
    ];
    expect(shown.length).toBe(8);
    for (const text of shown) for (const secret of [room.secret, room.token]) expect(text).not.toContain(secret);
    expect(fs.readdirSync(path.join(relay.home, "run", "frp")).filter((name) => name.endsWith(".toml"))).toEqual([]);
  });

  test("whatever of frp dies, the link is back by itself, and a job that ran is not touched", async () => {
    const { relay, frps } = site;
    const job = await relay.submit("--", "sh", "-c", 'while [ ! -e "$HOME/go-on" ]; do sleep 0.05; done; echo finished');
    const again = async (what: string): Promise<void> => {
      await eventually(async () => (await relay.run(["job", "status", job])).code === 0, { what: `the way back after ${what}` });
      await site.up();
    };
    for (const side of ["visitor", "worker"] as const) {
      const pids = site.frpcs(side);
      expect([side, pids.length]).toEqual([side, 1]);
      kill(pids[0]!);
      await again(`the ${side}'s frpc`);
    }
    await frps.kill();
    await eventually(async () => (await farLink(relay)).state !== "up");
    await frps.again();
    await again("frps");
    const [daemon] = relay.daemons();
    const orphan = site.frpcs("visitor");
    await relay.kill(daemon!);
    await eventually(() => !site.frpcs("visitor").some((pid) => orphan.includes(pid)), { what: "the end of its frpc" });
    await again("the daemon");
    fs.writeFileSync(path.join(site.site.user.home, "go-on"), "");
    await relay.ok("job", "wait", job);
    expect(await relay.ok("job", "read-log", job)).toBe("finished");
  });

  test("the tests say what was tried, and which layer fails", async () => {
    const { relay, frps } = site;
    interface Trial {
      ok: boolean;
      tried: { step: string; ok: boolean }[];
      round_trip_ms: { count: number } | null;
      throughput: { bytes: number } | null;
      failure: { layer: string; reason: string; fix: string | null } | null;
    }
    for (const verb of ["test-http-transport", "test-frpc-connection"]) {
      const trial = await relay.json<Trial>("relay-host", verb, "--cluster", "far");
      expect([verb, trial.ok, trial.failure, trial.round_trip_ms?.count]).toEqual([verb, true, null, 10]);
      expect(trial.throughput!.bytes).toBeGreaterThan(0);
    }
    expect(await relay.ok("worker", "status", "--cluster", "far")).toMatch(/^frps +tcp:\/\/127\.0\.0\.1:\d+$/m);
    const ssh = await relay.run(["relay-host", "test-ssh-transport", "--cluster", "far", "--json"]);
    expect([ssh.code, (JSON.parse(ssh.stdout) as Trial).failure]).toMatchObject([
      2,
      { layer: "configuration", reason: "configuration_error" },
    ]);
    await frps.kill();
    const down = await relay.run(["relay-host", "test-frpc-connection", "--cluster", "far", "--json"]);
    expect([down.code, (JSON.parse(down.stdout) as Trial).failure]).toMatchObject([
      5,
      { layer: "login", reason: "frp_unreachable", fix: expect.any(String) },
    ]);
  });
});
