import { afterAll, beforeAll, expect, test } from "bun:test";
import { startStun } from "../../rigs/frp/stun.ts";
import { NginxEdge } from "../../rigs/nginx-edge.ts";
import { describeWith } from "../../runner/components.ts";
import { kill } from "../../runner/leftovers.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { authority } from "../../transport/outbound/certificates.ts";
import { FrpSite } from "../frp-desk.ts";
import { farLink } from "../ssh-desk.ts";

describeWith(["frp", "sshd", "ssh", "nginx", "openssl"], "a cluster behind an edge, with a direct way beside it", () => {
  const files = temporaryDirectory();
  let site: FrpSite;
  let edge: NginxEdge;
  let stun: Awaited<ReturnType<typeof startStun>>;

  beforeAll(async () => {
    const ca = authority(files.path);
    const certificate = ca.issue("edge", "DNS:localhost");
    stun = await startStun();
    site = await FrpSite.start({
      async server({ port }) {
        edge = await NginxEdge.start({ certificate, port, location: "/" });
        return ["--frp-server-addr", "localhost", "--frp-server-port", String(edge.port), "--frp-ca-file", ca.file];
      },
      options: ["--direct-transport", "--frp-stun-server", stun.at, "--direct-timeout-seconds", "3"],
    });
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
    await edge[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  interface Trial {
    ok: boolean;
    tried: { step: string; ok: boolean; detail: string | null }[];
    failure: { layer: string; reason: string } | null;
  }
  const trial = async (...options: string[]): Promise<Trial & { code: number }> => {
    const { code, stdout } = await site.relay.run(["relay-host", "test-direct-transport", "--cluster", "far", "--json", ...options]);
    return { code, ...(JSON.parse(stdout) as Trial) };
  };

  const carriedBy = (carrier: string) =>
    eventually(
      async () => {
        const now = await farLink(site.relay);
        return now.state === "up" && now.carrier === carrier ? now : null;
      },
      { what: `a link over ${carrier}` },
    );

  test("goes from peer to peer where a hole can be punched", async () => {
    await site.up();
    const link = await carriedBy("frp-xtcp");
    expect(link.detail).toBeNull();
    expect(await site.relay.ok("job", "submit", "--wait", "--", "true")).toMatch(/^job_/);
    const { code, tried } = await trial();
    expect([code, tried.map(({ step, ok }) => [step, ok])]).toEqual([
      0,
      ["configuration", "program", "connection", "direct", "round_trip", "throughput"].map((step) => [step, true]),
    ]);
  });

  test("goes over the same frps where none can be, and says so", async () => {
    const { relay } = site;
    stun[Symbol.dispose]();
    kill(site.frpcs("visitor")[0]!);
    // It carries while the direct way is still looked for.
    await carriedBy("frp-stcp");
    const link = await eventually(async () => {
      const now = await farLink(relay);
      return now.state === "up" && now.detail !== null ? now : null;
    });
    expect([link.carrier, link.detail]).toEqual(["frp-stcp", expect.stringContaining("no direct way")]);
    expect(await relay.ok("desktop", "logs")).toContain("it goes through frps: no direct way");
    const refused = await trial();
    expect([refused.code, refused.failure]).toMatchObject([5, { layer: "direct", reason: "frp_unreachable" }]);
    // Once, with the time that it took.
    expect(refused.tried.filter(({ ok }) => !ok)).toMatchObject([{ step: "direct", detail: expect.stringContaining("no direct way") }]);
    const allowed = await trial("--allow-stcp-fallback");
    expect([allowed.code, allowed.tried.filter(({ ok }) => !ok).map(({ step }) => step)]).toEqual([0, ["direct"]]);
    // The mode is what it was.
    expect((await relay.json<{ mode: string }>("cluster", "show", "far")).mode).toBe("frp-xtcp");
  });

  test("and is back when the edge was away", async () => {
    await edge.restart();
    await eventually(async () => (await site.relay.run(["job", "list"])).code === 0, { what: "the way back" });
    expect((await site.up()).state).toBe("up");
  });

  test("an edge with a certificate of somebody else is not gone through", async () => {
    const others = temporaryDirectory();
    await site.relay.ok("cluster", "add", "far", "--frp-ca-file", authority(others.path).file);
    others[Symbol.dispose]();
    const { code, stdout } = await site.relay.run(["relay-host", "test-frpc-connection", "--cluster", "far", "--json"]);
    expect([code, (JSON.parse(stdout) as Trial).failure]).toMatchObject([5, { layer: "login", reason: "frp_unreachable" }]);
  });
});
