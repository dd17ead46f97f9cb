import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { listen } from "../../api/web-socket-client.ts";
import { TcpProxy } from "../../rigs/proxy/tcp-proxy.ts";
import { eventually } from "../../runner/wait.ts";
import { Collected } from "../collected.ts";
import { MeetingDesk, TestRelayHost, TOKEN } from "../relay-desk.ts";
import { farLink } from "../ssh-desk.ts";

/** A desk whose way to the relay-host can be cut or go silent; the cluster's is its own. */
describe("a cluster that is met at a relay-host", () => {
  let host: TestRelayHost;
  let way: TcpProxy;
  let both: MeetingDesk;

  beforeAll(async () => {
    host = await TestRelayHost.start();
    way = await TcpProxy.start({ host: "127.0.0.1", port: host.port });
    both = await MeetingDesk.start({ url: `ws://127.0.0.1:${host.port}`, deskUrl: `ws://localhost:${way.port}` });
    await both.up();
  });
  afterAll(async () => {
    await both[Symbol.asyncDispose]();
    await way[Symbol.asyncDispose]();
    await host[Symbol.asyncDispose]();
  });

  const done = async (script = "true"): Promise<void> => void (await both.desk.submit("--wait", "--", "sh", "-c", script));
  const state = async (): Promise<string> => (await farLink(both.desk)).state;

  test("works without anybody, is named for what it is, and nothing that is written down has the token", async () => {
    await done();
    const link = await farLink(both.desk);
    expect(link).toMatchObject({ mode: "relay", state: "up", ssh_connections_since_bring_up: 0 });
    expect(link.ledger).toMatchObject([{ client: "relay", attended: false, outcome: "open", target: `ws://localhost:${way.port}` }]);
    const shown = await both.desk.ok("cluster", "show", "far");
    expect(shown).toContain(`ws://localhost:${way.port}`);
    const texts = [both.desk.home, both.cluster.home].flatMap((home) =>
      [...new Bun.Glob("**/*").scanSync({ cwd: home, onlyFiles: true })]
        .filter((file) => !/relay-token|\/token|spool\//.test(file))
        .map((file) => fs.readFileSync(path.join(home, file), "latin1")),
    );
    expect(texts.length).toBeGreaterThan(5);
    expect(texts.filter((text) => text.includes(TOKEN))).toEqual([]);
    expect(host.log).not.toContain(TOKEN);
  });

  test("comes back by itself when the path is cut, and a follow-up goes on without losing or doubling a line", async () => {
    const job = await both.desk.submit("--", "sh", "-c", "for i in $(seq 1 60); do echo line $i; sleep 0.05; done");
    const reading = new Collected(both.desk.start(["job", "read-log", job, "--follow"]));
    await eventually(() => reading.stdout.includes("line 5\n"));
    way.cut();
    await both.up();
    way.reset();
    expect([await reading.exited, reading.stdout.trim().split("\n")]).toEqual([0, Array.from({ length: 60 }, (_, i) => `line ${i + 1}`)]);
  });

  test("finds a relay-host again that was killed, one that took its leave, and one that hangs for a moment", async () => {
    for (const signal of ["SIGKILL", "SIGTERM"] as const) {
      const job = await both.desk.submit("--", "sh", "-c", "sleep 1; echo kept");
      await host.end(signal);
      await eventually(async () => (await state()) === "connecting", { what: "a link that is tried again" });
      await host.start();
      await both.up();
      expect(await both.desk.ok("job", "wait", job).then(() => both.desk.ok("job", "read-log", job))).toBe("kept");
    }
    host.signal("SIGSTOP");
    const asked = done();
    host.signal("SIGCONT");
    await asked;
    expect(await state()).toBe("up");
  });

  test("has its followers told when the path is cut: a WebSocket goes on from its cursor without losing or doubling an event", async () => {
    const gate = path.join(both.cluster.directory, "enough");
    const job = await both.desk.submit("--", "sh", "-c", `until [ -e ${gate} ]; do echo line; sleep 0.2; done`);
    const url = `ws+unix://${path.join(both.desk.home, "run", "desktop.sock")}:/clusters/far/jobs/${job}/events/ws`;
    const seen: number[] = [];
    const endings = new Set<string>();
    let cuts = 0;
    const onMessage = ({ id }: { readonly id: string | null }): undefined => {
      if (cuts === 2 || Number(id) < 8 * (cuts + 1)) return;
      cuts++;
      way.cut();
    };
    for (let over = false; !over; ) {
      const { messages, code, reason } = await listen(`${url}?cursor=${(seen.at(-1) ?? 0) + 1}`, { onMessage });
      seen.push(...messages.filter(({ event }) => event !== "terminal").map(({ id }) => Number(id)));
      endings.add(`${code} ${reason}`);
      if (cuts === 2 && endings.has("1001 stream_ended")) fs.writeFileSync(gate, "");
      over = reason === "terminal";
      if (code === 1008) await both.up();
    }
    expect(seen).toEqual(seen.map((_, i) => i + 1));
    expect(cuts).toBe(2);
    expect([...endings]).toEqual(expect.arrayContaining(["1001 stream_ended", "1000 terminal"]));
    const { events } = await both.desk.json<{ events: unknown[] }>("job", "monitor", job, "--limit", "500");
    expect(seen.length).toBe(events.length);
  });

  test("says that the worker is not there, waits for it, and has it as soon as it is", async () => {
    const [worker] = both.cluster.processes("worker run");
    await both.cluster.kill(worker!);
    await eventually(async () => (await farLink(both.desk)).detail?.startsWith("worker_absent") === true, {
      what: "a worker that is missed",
    });
    const refused = await both.desk.run(["job", "list"]);
    expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining("is not at ws://localhost")]);
    // What it says to do is what there is.
    expect(refused.stderr).toContain("clio-relay worker pair --relay-host ws://localhost");
    const connect = both.desk.run(["connect", "far"]);
    await both.startWorker();
    expect(await connect).toMatchObject({ code: 0 });
    await done();
  });

  test("comes up by itself with a new daemon; disconnect ends that, connect begins it again", async () => {
    const [daemon] = both.desk.daemons();
    await both.desk.kill(daemon!);
    await done();
    expect(both.desk.daemons()).toHaveLength(1);
    await both.desk.ok("disconnect", "far");
    expect(await state()).toBe("down");
    const refused = await both.desk.run(["job", "list"]);
    expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining("clio-relay connect far")]);
    await both.desk.ok("connect", "far", "--no-input");
    await done();
  });

  test("is nobody else's concern while its relay-host is a black hole", async () => {
    await both.desk.ok("cluster", "add", "local");
    await both.desk.ok("worker", "start", "--cluster", "local");
    way.weather.blackhole = true;
    const hanging = both.desk.run(["job", "list"]);
    const other = await both.desk.run(["job", "submit", "--cluster", "local", "--wait", "--", "true"]);
    expect(other.code).toBe(0);
    way.weather.blackhole = false;
    expect((await hanging).code).toBe(0);
  });

  test("is not let in with another token or another key, and says which it is", async () => {
    const wrong = path.join(both.desk.directory, "wrong-token");
    fs.writeFileSync(wrong, "x".repeat(40), { mode: 0o600 });
    await both.desk.ok("cluster", "add", "far", "--relay-token-file", wrong);
    // What is up stays up.
    await done();
    await both.desk.ok("disconnect", "far");
    const refused = await both.desk.run(["connect", "far"]);
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining("token")]);
    fs.chmodSync(wrong, 0o644);
    const open = await both.desk.run(["cluster", "add", "far", "--relay-token-file", wrong]);
    expect([open.code, open.stderr]).toEqual([2, expect.stringContaining("chmod 600")]);
    await both.desk.ok("cluster", "add", "far", "--relay-token-file", both.tokenFile);
    await both.desk.ok("connect", "far");
    fs.rmSync(path.join(both.cluster.home, "core", "far", "link-clients.json"));
    const [daemon] = both.desk.daemons();
    await both.desk.kill(daemon!);
    const stranger = await both.desk.run(["connect", "far"]);
    expect([stranger.code, stranger.stderr]).toEqual([4, expect.stringContaining("does not let this desktop's key in")]);
  });
});
