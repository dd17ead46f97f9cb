import { afterEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import * as v from "valibot";
import { DesktopClient } from "../../../src/api/client/desktop-client.ts";
import type { Address } from "../../../src/api/client/http-peer.ts";
import { readDaemonRecord } from "../../../src/roles/desktop/address-file.ts";
import { desktopDoor } from "../../../src/roles/desktop/door.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";
import { startWorkerLike } from "./worker-like.ts";

const directory = temporaryDirectories();
const ending: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});

async function onLoopback(base: string, clusters: readonly string[] = []): Promise<TestDaemon & { address: Address & { kind: "tcp" } }> {
  const daemon = await startDaemon(base, { listen: "tcp", clusters });
  ending.push(() => daemon.stop());
  if (daemon.address.kind !== "tcp") throw new Error("not on loopback");
  return daemon as TestDaemon & { address: Address & { kind: "tcp" } };
}

interface Heard {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | null;
  readonly body: string;
}

/** Somebody else on the port of a daemon that is gone. */
async function squat(url: string, answer: (request: Request) => Response | Promise<Response>): Promise<Heard[]> {
  const heard: Heard[] = [];
  const options: Bun.Serve.Options<undefined> = {
    hostname: "127.0.0.1",
    port: Number(new URL(url).port),
    async fetch(request: Request) {
      const body = await request.clone().text();
      heard.push({
        method: request.method,
        path: new URL(request.url).pathname,
        authorization: request.headers.get("authorization"),
        body,
      });
      return answer(request);
    },
  };
  const server = await eventually(() => {
    try {
      return Bun.serve(options);
    } catch {
      return null;
    }
  });
  ending.push(() => server.stop(true));
  return heard;
}

const doorTo = (daemon: TestDaemon, start: () => Promise<void>) =>
  desktopDoor({ paths: daemon.paths, env: daemon.env, listen: "tcp", start });

const ANSWERS: readonly (readonly [name: string, answer: (request: Request) => Response])[] = [
  ["an answer to everything", () => Response.json({ clusters: [], process: { pid: 1 }, ok: true })],
  [
    "a proof of its own making",
    (request) =>
      Response.json({
        schema_version: "clio-relay.desktop-identity.v1",
        nonce: new URL(request.url).searchParams.get("nonce"),
        hmac_sha256: "0".repeat(64),
      }),
  ],
  ["a redirection", () => new Response(null, { status: 307, headers: { location: "http://127.0.0.1:9/" } })],
  [
    "an answer without end",
    () => new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536).fill(32)) })),
  ],
];

describe("who takes the port of a daemon that is gone", () => {
  test.each(ANSWERS)("with %s, hears neither token nor request of a client that runs", async (_name, answer) => {
    const base = directory();
    const first = await onLoopback(base);
    let next: TestDaemon | null = null;
    const client = new DesktopClient(
      doorTo(first, async () => {
        next = await onLoopback(base);
      }),
    );
    expect((await client.status()).socket).toBe(first.address.url);
    await first.stop();
    const heard = await squat(first.address.url, answer);
    // What is sent once only is sent again because nothing of it was.
    expect(await client.putCluster({ name: "mine", mode: "local", env_setup: "secret of mine" })).toMatchObject({ name: "mine" });
    const status = await client.status();
    expect([status.socket, status.clusters]).toEqual([(next!.address as Address & { kind: "tcp" }).url, ["mine"]]);
    expect(heard.map(({ method, path, authorization, body }) => [method, path, authorization, body])).toEqual([
      ["GET", "/identity", null, ""],
    ]);
  });

  test("is named to a client that knows no other address", async () => {
    const first = await onLoopback(directory());
    const client = new DesktopClient(first.address);
    await first.stop();
    const heard = await squat(first.address.url, () => Response.json({}));
    const asked = client.stop();
    await expect(asked).rejects.toMatchObject({ code: "desktop_unavailable", message: expect.stringContaining(first.address.url) });
    expect(heard.map(({ path, authorization }) => [path, authorization])).toEqual([["/identity", null]]);
  });

  test("proves nothing by asking a daemon that lives: a proof is good for one port", async () => {
    const live = await onLoopback(directory());
    const elsewhere = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        const { pathname, search } = new URL(request.url);
        return fetch(`${live.address.url}${pathname}${search}`);
      },
    });
    ending.push(() => elsewhere.stop(true));
    const fooled = new DesktopClient({ ...live.address, url: `http://127.0.0.1:${elsewhere.port}` }).status();
    await expect(fooled).rejects.toMatchObject({ code: "desktop_unavailable" });
    expect(await new DesktopClient(live.address).status()).toMatchObject({ socket: live.address.url });
  });
});

describe("the identity route", () => {
  test.each(["", "?nonce=", "?nonce=12", `?nonce=${"g".repeat(64)}`, `?nonce=${"a".repeat(64)}&more=1`])("%s is refused", async (query) => {
    const { address } = await onLoopback(directory());
    expect((await fetch(`${address.url}/identity${query}`)).status).toBe(422);
  });

  test("is of no use on a Unix socket, whose place is the proof", async () => {
    const daemon = await startDaemon(directory());
    ending.push(() => daemon.stop());
    expect((await daemon.fetch(`/identity?nonce=${"a".repeat(64)}`)).status).toBe(404);
  });
});

describe.each(["tcp", "unix"] as const)("%s: a daemon whose record was taken away", (listen) => {
  test("writes it again, and is found", async () => {
    const daemon = await startDaemon(directory(), { listen });
    ending.push(() => daemon.stop());
    const before = fs.readFileSync(daemon.paths.desktopAddress, "utf8");
    fs.rmSync(daemon.paths.desktopAddress);
    await eventually(() => fs.existsSync(daemon.paths.desktopAddress));
    expect(fs.readFileSync(daemon.paths.desktopAddress, "utf8")).toBe(before);
    expect(readDaemonRecord(daemon.paths, daemon.env)?.process.pid).toBe(process.pid);
    fs.writeFileSync(daemon.paths.desktopAddress, "{", { mode: 0o600 });
    await eventually(() => fs.readFileSync(daemon.paths.desktopAddress, "utf8") === before);
    expect(await daemon.client.status()).toMatchObject({ process: { pid: process.pid } });
  });

  test("and something put there that it cannot replace says so, and goes on as it is", async () => {
    const daemon = await startDaemon(directory(), { listen });
    ending.push(() => daemon.stop());
    const record = daemon.paths.desktopAddress;
    fs.rmSync(record);
    fs.mkdirSync(`${record}/full`, { recursive: true });
    const said = () => daemon.log.filter((line) => line.includes(`${record} cannot be written again`)).length;
    await eventually(() => said() > 0);
    // Each try makes and removes a file beside it, which must not be the reason for the next.
    const tries = said();
    for (let i = 0; i < 20; i++) {
      fs.writeFileSync(`${daemon.paths.runDir}/noise`, String(i));
      expect(await daemon.client.status()).toMatchObject({ process: { pid: process.pid } });
    }
    expect(said()).toBe(tries);
  });

  test("ends when its lock went, too: another may be the daemon by then", async () => {
    const base = directory();
    const first = await startDaemon(base, { listen });
    for (const name of fs.readdirSync(first.paths.runDir)) fs.rmSync(`${first.paths.runDir}/${name}`);
    await first.ended;
    expect(first.log.join("\n")).toContain("taken away");
    const second = await startDaemon(base, { listen });
    ending.push(() => second.stop());
    expect(await second.client.status()).toMatchObject({ process: { pid: process.pid } });
    expect(fs.existsSync(second.paths.desktopAddress)).toBe(true);
  });
});

test("requests that are forwarded are proven the same way, and streams end as streams do", async () => {
  const daemon = await onLoopback(directory(), ["near"]);
  const worker = startWorkerLike(daemon.paths.workerSocket("near"));
  ending.push(() => worker.stop());
  const peer = daemon.client.cluster("near").http;
  expect(await peer.json("/echo", async () => v.unknown(), { method: "POST", body: { a: 1 } })).toEqual({ ok: true });
  expect(worker.seen).toHaveLength(1);
  expect(worker.seen[0]).toMatchObject({ method: "POST", body: '{"a":1}' });
});
