import { afterAll, beforeAll, expect, test } from "bun:test";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import { RelayError } from "../../../src/domain/errors.ts";
import { FRP_PROTOCOLS } from "../../../src/domain/frp.ts";
import { identify, isAlive } from "../../../src/lib/system/process-identity.ts";
import { type FrpServer, frpcConfiguration, frpsConfiguration, visitorConfiguration } from "../../../src/transport/frp/configuration.ts";
import { type Frpc, startFrpc } from "../../../src/transport/frp/frpc.ts";
import { type FrpVisit, proxyName, visit } from "../../../src/transport/frp/visit.ts";
import { frpProgram } from "../../rigs/frp/programs.ts";
import { Frps } from "../../rigs/frp/server.ts";
import { startStun } from "../../rigs/frp/stun.ts";
import { ConnectProxy } from "../../rigs/proxy/connect-proxy.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";

const ROOM = { name: "0123456789abcdef0123456789abcdef", secret: "a secret {{ .Envs.HOME }}" };
const never = new AbortController().signal;

describeWith("frp", "over a real frps", () => {
  let directory: ReturnType<typeof temporaryDirectory>;
  let frps: Frps;
  let stun: Awaited<ReturnType<typeof startStun>>;
  let worker: Frpc;
  let there: net.Server;
  const troubles: unknown[] = [];

  const ownOptions = (name: string) => ({
    frpc: frpProgram("frpc"),
    direct: true,
    directory: path.join(directory.path, "run"),
    name,
    variables: process.env,
    onTrouble: (error: unknown) => troubles.push(error),
  });
  const visitOf = (server: Partial<FrpServer> = {}, more: Partial<FrpVisit> = {}): FrpVisit => ({
    ...ownOptions(`visitor-${crypto.randomUUID()}`),
    server: frps.server(server),
    cluster: "other",
    room: ROOM,
    direct: false,
    directMs: 15_000,
    ...more,
  });
  const configurations = (): string[] => fs.readdirSync(path.join(directory.path, "run")).filter((name) => name.endsWith(".toml"));

  beforeAll(async () => {
    directory = temporaryDirectory();
    [frps, stun] = await Promise.all([Frps.start(), startStun()]);
    const socket = path.join(directory.path, "socket");
    there = net.createServer((connection) => {
      connection.on("error", () => undefined);
      connection.write("SSH-2.0-there\r\n");
      connection.pipe(connection);
    });
    await new Promise<void>((resolve) => there.listen(socket, resolve));
    worker = await startFrpc({
      ...ownOptions("worker"),
      configuration: frpcConfiguration(
        frps.server({ stunServer: stun.at }),
        (["stcp", "xtcp"] as const).map((type) => ({ name: proxyName(ROOM.name, type), type, secret: ROOM.secret, target: { socket } })),
      ),
      secrets: [],
    });
    await eventually(() => worker.said().includes("-direct] start proxy success"), { what: "the worker's proxies" });
  });
  afterAll(async () => {
    await worker.stop();
    there.close();
    await frps[Symbol.asyncDispose]();
    stun[Symbol.dispose]();
    directory[Symbol.dispose]();
    expect(troubles).toEqual([]);
  });

  const onlyWorker = (): Promise<unknown> =>
    eventually(() => fs.readdirSync(path.join(directory.path, "run")).every((name) => name.startsWith("worker")), {
      what: "the end of the visitor's frpc",
    });

  /** Says something and waits for it to come back behind what the other side says to everybody. */
  const hello = (duplex: Duplex, signal: AbortSignal): Promise<{ duplex: Duplex; said: string }> =>
    new Promise((resolve, reject) => {
      let said = "";
      duplex.on("data", (chunk: Buffer) => {
        said += chunk.toString();
        if (said.endsWith("hello")) resolve({ duplex, said });
      });
      duplex.on("close", () => reject(new RelayError("link_bringup_failed", "closed")));
      signal.addEventListener("abort", () => reject(signal.reason as Error));
      duplex.write("hello");
    });

  test.each(["tcp", "websocket"] as const)("a visit by %s, which leaves nothing behind", async (protocol) => {
    const arrival = await visit(visitOf({ protocol }), hello, never);
    expect(await arrival.direct).toBeNull();
    expect(arrival.opened.said).toBe("SSH-2.0-there\r\nhello");
    expect(configurations()).toEqual([]);
    arrival.opened.duplex.destroy();
    await onlyWorker();
  });

  test("a visit through a proxy that wants a password", async () => {
    const wanted: string[] = [];
    await using proxy = await ConnectProxy.start({
      credentials: "desk:p@ss:word",
      resolve: (target) => {
        wanted.push(target);
        return { host: "127.0.0.1", port: frps.port };
      },
    });
    const proxyUrl = `http://desk:p%40ss%3Aword@127.0.0.1:${proxy.port}`;
    const { opened } = await visit(visitOf({ address: "relay.example", proxyUrl }), hello, never);
    expect([opened.said, new Set(wanted)]).toEqual(["SSH-2.0-there\r\nhello", new Set([`relay.example:${frps.port}`])]);
    opened.duplex.destroy();
  });

  test("a visit from peer to peer", async () => {
    const fallbacks: RelayError[] = [];
    const arrival = await visit(
      visitOf({ stunServer: stun.at }, { direct: true, onFallback: (reason) => fallbacks.push(reason) }),
      hello,
      never,
    );
    const direct = await arrival.direct;
    expect([direct?.said, fallbacks.length]).toEqual(["SSH-2.0-there\r\nhello", 0]);
    // Both carry, each by a port of its own, until it ends.
    const again = once(arrival.opened.duplex, "data");
    arrival.opened.duplex.write("again");
    expect(String((await again)[0])).toBe("again");
    const gone = once(direct!.duplex, "close");
    arrival.opened.duplex.destroy();
    const last = once(direct!.duplex, "data");
    direct!.duplex.write("last");
    expect(String((await last)[0])).toBe("last");
    direct!.duplex.destroy();
    await gone;
    await onlyWorker();
  });

  test("where no hole can be punched, the same frps carries it, and that is said", async () => {
    const fallbacks: RelayError[] = [];
    // Nobody answers there, so that frpc never learns how it is seen.
    const arrival = await visit(
      visitOf({ stunServer: "127.0.0.1:9" }, { direct: true, directMs: 5_000, onFallback: (reason) => fallbacks.push(reason) }),
      hello,
      never,
    );
    // It carries before that is known.
    expect([arrival.opened.said, fallbacks]).toEqual(["SSH-2.0-there\r\nhello", []]);
    expect([await arrival.direct, fallbacks.map(({ code, data }) => [code, data["layer"], data["way"]])]).toEqual([
      null,
      [["frp_unreachable", "proxy", "xtcp"]],
    ]);
    arrival.opened.duplex.destroy();
  });

  const failure = (options: FrpVisit): Promise<RelayError> =>
    visit(options, hello, never).then(
      () => new RelayError("internal_error", "it came about"),
      (error) => error as RelayError,
    );

  test("which layer it is that fails", async () => {
    const wrongToken = await failure(visitOf({ token: "another" }));
    expect([wrongToken.code, wrongToken.data["layer"]]).toEqual(["frp_unreachable", "login"]);
    const nobody = await failure(visitOf({ port: 1 }));
    expect([nobody.code, nobody.data["layer"]]).toEqual(["frp_unreachable", "login"]);
    const [wrongSecret, noRoom] = await Promise.all([
      failure(visitOf({}, { room: { ...ROOM, secret: "another" } })),
      failure(visitOf({}, { room: { ...ROOM, name: "f".repeat(32) } })),
    ]);
    expect([wrongSecret.data["layer"], noRoom.data["layer"]]).toEqual(["proxy", "proxy"]);
    for (const { hint } of [wrongSecret, noRoom]) expect(hint).toContain("clio-relay worker status");
    expect(wrongToken.hint).toContain("clio-relay cluster add other with what frpc finds wrong");
    for (const { message } of [wrongToken, wrongSecret, noRoom]) expect(message).not.toContain(frps.token);
    expect(configurations()).toEqual([]);
  });

  test("a worker that comes while it is waited for is met by the frpc that is there", async () => {
    const room = { ...ROOM, name: crypto.randomUUID().replaceAll("-", "") };
    const absent = Promise.withResolvers<RelayError>();
    const name = `waiting-${crypto.randomUUID()}`;
    const arriving = visit(
      { ...visitOf({}, { room }), name, wait: { forMs: 60_000, onAbsent: (reason) => absent.resolve(reason) } },
      hello,
      never,
    );
    expect((await absent.promise).data["layer"]).toBe("proxy");
    const record = path.join(directory.path, "run", `${name}.json`);
    const first = fs.readFileSync(record, "utf8");
    const late = await startFrpc({
      ...ownOptions("late-worker"),
      configuration: frpcConfiguration(frps.server(), [
        { name: proxyName(room.name, "stcp"), type: "stcp", secret: room.secret, target: { socket: path.join(directory.path, "socket") } },
      ]),
      secrets: [],
    });
    const { opened } = await arriving;
    expect([opened.said, fs.readFileSync(record, "utf8")]).toEqual(["SSH-2.0-there\r\nhello", first]);
    opened.duplex.destroy();
    await late.stop();
    await onlyWorker();
  });

  test("a frpc ends with its owner, also when that one is killed, and what is left of it is found", async () => {
    const child = Bun.spawn(
      [
        process.execPath,
        path.join(import.meta.dir, "frpc-process.ts"),
        path.join(directory.path, "run"),
        frpProgram("frpc"),
        String(frps.port),
        frps.token,
      ],
      { stdin: "ignore", stdout: "pipe", env: { ...process.env } },
    );
    try {
      const reader = child.stdout.getReader();
      const pid = Number(new TextDecoder().decode((await reader.read()).value));
      const identity = identify(pid);
      expect(identity).not.toBeNull();
      await eventually(() => fs.readlinkSync(`/proc/${pid}/exe`).endsWith("frpc"));
      child.kill("SIGKILL");
      await eventually(() => !isAlive(identity!), { what: "the end of frpc" });
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("one that outlived its owner is ended by the next of its name; another process under its number is not", async () => {
    const left = Bun.spawn(["/bin/sh", "-c", "exec sleep 600"], { stdin: "ignore", detached: true });
    const stranger = Bun.spawn(["sleep", "600"], { stdin: "ignore", detached: true });
    const record = (name: string, pid: number, later: number): void => {
      const identity = identify(pid)!;
      const text = JSON.stringify({ ...identity, start_time: identity.start_time + later });
      fs.writeFileSync(path.join(directory.path, "run", `${name}.json`), text, { mode: 0o600 });
    };
    record("left", left.pid, 0);
    record("stranger", stranger.pid, 1);
    const configuration = visitorConfiguration(frps.server(), []);
    const next = await Promise.all(["left", "stranger"].map((name) => startFrpc({ ...ownOptions(name), configuration, secrets: [] })));
    await left.exited;
    expect(isAlive(identify(stranger.pid)!)).toBe(true);
    stranger.kill("SIGKILL");
    await Promise.all(next.map((frpc) => frpc.stop()));
  });

  test("one whose process cannot be written down does not run, and leaves nothing", async () => {
    const name = "unrecorded";
    const started = startFrpc({ ...ownOptions(name), configuration: visitorConfiguration(frps.server(), []), secrets: [] }, () => {
      throw new Error("no space left");
    });
    const running = (): boolean =>
      fs.readdirSync("/proc").some((pid) => {
        try {
          return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`${name}.`);
        } catch {
          return false;
        }
      });
    await expect(started).rejects.toMatchObject({
      code: "local_file_unusable",
      data: { path: path.join(directory.path, "run", `${name}.json`) },
    });
    await eventually(() => !running(), { what: "the end of frpc" });
    expect(configurations().filter((one) => one.startsWith(name))).toEqual([]);
  });

  test("a configuration that was left is removed by the next of that name, and no other", async () => {
    const run = path.join(directory.path, "run");
    const [own, other] = ["far", "far.away"].map((name) => path.join(run, `${name}.${crypto.randomUUID()}.toml`));
    for (const file of [own!, other!]) fs.writeFileSync(file, "", { mode: 0o600 });
    const frpc = await startFrpc({ ...ownOptions("far"), configuration: visitorConfiguration(frps.server(), []), secrets: [] });
    expect([fs.existsSync(own!), fs.existsSync(other!)]).toEqual([false, true]);
    await frpc.stop();
    fs.rmSync(other!);
  });

  test("frpc and frps take what is rendered for them", () => {
    const verify = (program: "frpc" | "frps", text: string): [number, string] => {
      const file = path.join(directory.path, "rendered.toml");
      fs.writeFileSync(file, text, { mode: 0o600 });
      const { exitCode, stdout } = Bun.spawnSync([frpProgram(program), "verify", "-c", file]);
      return [exitCode, stdout.toString().replace(file, "FILE").trim()];
    };
    const secret = ROOM.secret;
    for (const protocol of FRP_PROTOCOLS) {
      const server = frps.server({ protocol, token: 'with "quotes", {{ braces }} and ü' });
      const stcp = { name: "a", type: "stcp", secret, server: "there", address: "127.0.0.1", port: 9_000 } as const;
      const xtcp = { ...stcp, name: "b", type: "xtcp", port: 9_001, fallback: { to: "a", timeoutMs: 500 } } as const;
      expect(verify("frpc", frpcConfiguration(server, [{ name: "p", type: "stcp", secret, target: { port: 8_848 } }]))[0]).toBe(0);
      expect(verify("frpc", visitorConfiguration(server, [stcp, xtcp]))[0]).toBe(0);
    }
    expect(verify("frps", frpsConfiguration({ port: 7_000, token: "t" }))[0]).toBe(0);
    expect(verify("frps", `${frpsConfiguration({ port: 7_000, token: "t" })}\nunknown = 1\n`)[0]).toBe(1);
  });
});
