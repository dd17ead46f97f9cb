import { afterEach, expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { PassThrough } from "node:stream";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { runBridge } from "../../../src/roles/worker/bridge.ts";
import { hostPublicKey } from "../../../src/roles/worker/host-key.ts";
import { allowClients } from "../../../src/roles/worker/link-keys.ts";
import { LinkSessions } from "../../../src/roles/worker/link-sessions.ts";
import { serveLinkSocket } from "../../../src/roles/worker/link-socket.ts";
import { ChannelPool } from "../../../src/transport/http/channel-pool.ts";
import { openClientSession } from "../../../src/transport/session/client-session.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { honest, STRANGER, steps, USER } from "../../transport/session/peers.ts";

const directories = temporaryDirectories();
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function rig() {
  const directory = directories();
  const [httpSocket, socketPath, coreDir] = ["http.sock", "link.sock", "core"].map((name) => path.join(directory, name)) as [
    string,
    string,
    string,
  ];
  const http = Bun.serve({ unix: httpSocket, fetch: () => new Response("the worker") } as unknown as Bun.Serve.Options<undefined>);
  const troubles: unknown[] = [];
  const onTrouble = (error: unknown) => troubles.push(error);
  const connect = () => Promise.resolve(net.connect({ path: httpSocket, allowHalfOpen: true } as net.NetConnectOpts));
  const sessions = new LinkSessions({ coreDir, comment: "test", clock: systemClock, connect, onTrouble });
  const options = { socketPath, sessions, onTrouble };
  const server = await serveLinkSocket(options);
  stops.push(
    () => sessions.close(),
    () => server.stop(0),
    () => http.stop(true),
  );
  await allowClients(coreDir, [USER.publicLine], { by: "bootstrap" });
  const open = (privateKey: string) =>
    openClientSession(
      net.connect(socketPath),
      honest({
        verifyHostKey: (key) => key.equals(hostPublicKey(coreDir, "test")),
        authenticate: steps({ method: "publickey", key: privateKey }),
      }),
    );
  return { directory, socketPath, coreDir, options, server, sessions, troubles, open };
}

test("the link socket is the user's alone, and answers with the worker's key those whose key it has", async () => {
  const { socketPath, coreDir, options, server, sessions, open } = await rig();
  expect(fs.statSync(socketPath).mode & 0o777).toBe(0o600);
  await expect(serveLinkSocket(options)).rejects.toMatchObject({ code: "already_running" });
  const session = await open(USER.privateKey);
  const pool = new ChannelPool({ open: (signal) => session.openSocket("/anything", signal) });
  const answer = await pool.request({ method: "GET", target: "/", headers: new Headers(), body: null });
  expect(Buffer.from(answer.body as Uint8Array).toString()).toBe("the worker");
  await expect(open(STRANGER.privateKey)).rejects.toMatchObject({ code: "authentication_failed" });
  expect(fs.statSync(path.join(coreDir, "link-host-key")).mode & 0o777).toBe(0o600);
  expect(server.present).toBe(true);
  await server.stop(0);
  await sessions.close();
  expect(await session.closed).toMatchObject({ code: "link_down" });
  expect(fs.existsSync(socketPath)).toBe(false);
});

test("a key that is open to others serves nobody, and the worker is told why", async () => {
  const { coreDir, open, troubles } = await rig();
  hostPublicKey(coreDir, "test");
  fs.chmodSync(path.join(coreDir, "link-host-key"), 0o644);
  await expect(openClientSessionFails(() => open(USER.privateKey))).resolves.toBe("failed");
  expect(troubles).toEqual([expect.objectContaining({ code: "configuration_error" })]);
  fs.chmodSync(path.join(coreDir, "link-host-key"), 0o600);
  (await open(USER.privateKey)).close();
});

const openClientSessionFails = (open: () => Promise<unknown>): Promise<string> =>
  open().then(
    () => "opened",
    () => "failed",
  );

test("the bridge says its line, and carries a session behind it", async () => {
  const { socketPath, coreDir } = await rig();
  const [input, output] = [new PassThrough(), new PassThrough()];
  const bridging = runBridge(socketPath, "0".repeat(32), input, output);
  const first = await new Promise<Buffer>((resolve) => output.once("data", resolve));
  expect(String(first)).toBe(`clio-relay-bridge 1 ${"0".repeat(32)}\n`);
  const { Duplex } = await import("node:stream");
  const duplex = Duplex.from({ readable: output, writable: input } as never);
  const session = await openClientSession(duplex, honest({ verifyHostKey: (key) => key.equals(hostPublicKey(coreDir, "test")) }));
  expect(await session.roundTrip()).toBeGreaterThan(0);
  session.close();
  await bridging;
  await expect(runBridge(`${socketPath}-nobody`, "0".repeat(32), new PassThrough(), new PassThrough())).rejects.toMatchObject({
    code: "worker_not_running",
  });
});
