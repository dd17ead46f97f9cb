import { afterEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import { HttpPeer } from "../../../src/api/client/http-peer.ts";
import { DEFAULT_CAPACITY } from "../../../src/config/cluster-entry.ts";
import { readDaemonRecord } from "../../../src/roles/desktop/address-file.ts";
import { LogFile, newBytes, tailOf } from "../../../src/roles/desktop/log-file.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { type DaemonOptions, startDaemon, type TestDaemon } from "./daemon.ts";
import { startWorkerLike } from "./worker-like.ts";

const directory = temporaryDirectories();
const running: TestDaemon[] = [];
afterEach(async () => {
  for (const daemon of running.splice(0)) await daemon.stop();
});
async function start(options?: DaemonOptions, base = directory()): Promise<TestDaemon> {
  const daemon = await startDaemon(base, options);
  running.push(daemon);
  return daemon;
}
const entry = (name: string) => ({ name, mode: "local" as const, env_setup: null, worker_capacity: DEFAULT_CAPACITY });

describe("on a Unix socket", () => {
  test("the socket is the user's alone, and goes with the daemon", async () => {
    const daemon = await start();
    expect(fs.statSync(daemon.paths.desktopSocket).mode & 0o777).toBe(0o600);
    expect(fs.statSync(daemon.paths.runDir).mode & 0o777).toBe(0o700);
    expect(fs.statSync(daemon.paths.desktopAddress).mode & 0o777).toBe(0o600);
    await daemon.stop();
    expect(fs.existsSync(daemon.paths.desktopSocket)).toBe(false);
    expect(readDaemonRecord(daemon.paths, daemon.env)).toBeNull();
  });

  test("status says who and where", async () => {
    const daemon = await start({ clusters: ["a", "b"] });
    expect(await daemon.client.status()).toMatchObject({
      version: "1.2.3",
      process: { pid: process.pid },
      socket: daemon.paths.desktopSocket,
      clusters: ["a", "b"],
      registry_error: null,
      active_requests: 0,
    });
    const health = await daemon.fetch("/healthz");
    expect(health.headers.get("clio-relay-version")).toBe("1.2.3");
    expect(await health.json()).toEqual({ ok: true, auth: false, version: "1.2.3" });
  });

  test("a second one is refused, naming the first", async () => {
    const base = directory();
    const first = await start({}, base);
    const second = startDaemon(base);
    await expect(second).rejects.toMatchObject({ code: "already_running", data: { pid: process.pid } });
    expect((await first.client.status()).process.pid).toBe(process.pid);
  });

  test("asked to stop, it answers and ends", async () => {
    const daemon = await start();
    expect(await daemon.client.stop()).toEqual({ stopping: true });
    await daemon.ended;
    expect(fs.existsSync(daemon.paths.desktopSocket)).toBe(false);
  });

  test("streams that are open do not keep it", async () => {
    const daemon = await start({ clusters: ["a"] });
    const worker = startWorkerLike(daemon.paths.workerSocket("a"));
    try {
      const response = await daemon.fetch("/clusters/a/two");
      await daemon.stop();
      const reader = response.body!.getReader();
      const rest = await reader
        .read()
        .then(() => reader.read())
        .then(
          ({ done }) => done,
          () => "broken",
        );
      expect([true, "broken"]).toContain(rest);
    } finally {
      await worker.stop();
    }
  });

  test("unknown routes, methods and failures are problems", async () => {
    const daemon = await start();
    const missing = await daemon.fetch("/nowhere");
    expect([missing.status, await missing.json()]).toEqual([
      404,
      expect.objectContaining({ reason: "route_not_found", hint: expect.stringContaining("/clusters/NAME") }),
    ]);
    expect(missing.headers.get("clio-relay-version")).toBe("1.2.3");
    expect((await daemon.fetch("/stop")).status).toBe(405);
  });
});

describe("the registry", () => {
  test("is changed through the daemon", async () => {
    const { client } = await start();
    expect(await client.putCluster({ name: "a", mode: "local" })).toEqual(entry("a"));
    await client.putCluster({ ...entry("a"), env_setup: "module load x" });
    await client.putCluster({ name: "b", mode: "local" });
    expect((await client.clusters()).map(({ name, env_setup }) => [name, env_setup])).toEqual([
      ["a", "module load x"],
      ["b", null],
    ]);
    expect(await client.removeCluster("a")).toMatchObject({ name: "a" });
    await expect(client.removeCluster("a")).rejects.toMatchObject({ code: "cluster_not_found", hint: "clusters: b" });
    expect((await client.clusters()).map(({ name }) => name)).toEqual(["b"]);
  });

  test("an entry has a tag, and a change that was made from another is refused", async () => {
    const daemon = await start();
    const put = (env_setup: string, headers: Record<string, string>) =>
      daemon.fetch("/clusters", { method: "POST", body: JSON.stringify({ name: "a", mode: "local", env_setup }), headers });
    expect((await put("1", { "if-match": "*" })).status).toBe(412);
    const first = await put("1", { "if-none-match": "*" });
    const tag = first.headers.get("etag")!;
    expect([first.status, (await daemon.fetch("/clusters/a")).headers.get("etag")]).toEqual([200, tag]);
    expect((await put("2", { "if-none-match": "*" })).status).toBe(412);
    expect((await put("2", { "if-match": tag })).status).toBe(200);
    const late = await put("3", { "if-match": tag });
    expect([late.status, ((await late.json()) as { reason: string }).reason]).toEqual([412, "precondition_failed"]);
    expect((await daemon.client.clusterEntry("a")).env_setup).toBe("2");
  });

  test("changes of many at once are all kept", async () => {
    const { client } = await start();
    await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        client.changeCluster("a", (known) => ({ name: "a", mode: "local", env_setup: `${known?.env_setup ?? ""}${i};` })),
      ),
    );
    const { env_setup } = await client.clusterEntry("a");
    expect(env_setup!.split(";").toSorted()).toEqual(["", ...Array.from({ length: 12 }, (_, i) => String(i))].toSorted());
  });

  test("what does not fit is refused, with the place", async () => {
    const daemon = await start();
    const response = await daemon.fetch("/clusters", { method: "POST", body: JSON.stringify({ name: "a", mode: "local", colour: 1 }) });
    expect(response.status).toBe(422);
    expect(await response.json()).toMatchObject({ reason: "request_validation_failed", issues: [{ path: "colour" }] });
  });

  test("a change of the file is seen at once; one that cannot be read fails what needs it, and the status says so", async () => {
    const daemon = await start({ clusters: ["a"] });
    fs.writeFileSync(daemon.paths.clustersFile, JSON.stringify({ version: 1, clusters: [entry("a"), entry("c")] }));
    expect((await daemon.client.clusters()).map(({ name }) => name)).toEqual(["a", "c"]);
    fs.writeFileSync(daemon.paths.clustersFile, "{");
    const failed = daemon.client.clusters();
    await expect(failed).rejects.toMatchObject({ code: "configuration_error" });
    expect(await daemon.client.status()).toMatchObject({ clusters: [], registry_error: expect.stringContaining("is not JSON") });
    fs.writeFileSync(daemon.paths.clustersFile, JSON.stringify({ version: 1, clusters: [entry("c")] }));
    expect((await daemon.client.clusters()).map(({ name }) => name)).toEqual(["c"]);
  });
});

describe("on loopback", () => {
  test("address and token are in a private file, new with each start", async () => {
    const base = directory();
    const first = await start({ listen: "tcp" }, base);
    if (first.address.kind !== "tcp") throw new Error("not on loopback");
    expect(first.address.url).toStartWith("http://127.0.0.1:");
    expect(first.address.token.length).toBeGreaterThan(40);
    expect(fs.statSync(first.paths.desktopAddress).mode & 0o777).toBe(0o600);
    expect(fs.existsSync(first.paths.desktopSocket)).toBe(false);
    expect((await first.client.status()).socket).toBe(first.address.url);
    const { token } = first.address;
    await first.stop();
    const second = await start({ listen: "tcp" }, base);
    expect(second.address).not.toMatchObject({ token });
  });

  test("nothing but /healthz and the identity answers without the token", async () => {
    const { address } = await start({ listen: "tcp", clusters: ["a"] });
    if (address.kind !== "tcp") throw new Error("not on loopback");
    expect(await (await fetch(`${address.url}/healthz`)).json()).toMatchObject({ ok: true, auth: true });
    for (const authorization of ["", "Bearer", "Bearer wrong", `Basic ${address.token}`, `bearer ${address.token}x`]) {
      for (const [method, route] of [
        ["GET", "/status"],
        ["POST", "/stop"],
        ["GET", "/clusters/a/jobs"],
        ["GET", "/nowhere"],
      ] as const) {
        const response = await fetch(`${address.url}${route}`, { method, headers: { authorization } });
        expect([authorization, route, response.status]).toEqual([authorization, route, 401]);
        expect(response.headers.get("www-authenticate")).toBe('Bearer realm="clio-relay"');
      }
    }
    // Whoever has another token is not told this one's owner, and does not send its own.
    const wrong = new HttpPeer({ ...address, token: "x" }).send("/status");
    await expect(wrong).rejects.toMatchObject({ code: "desktop_unavailable" });
  });

  test("another Host is refused, token or not", async () => {
    const { address } = await start({ listen: "tcp" });
    if (address.kind !== "tcp") throw new Error("not on loopback");
    const response = await fetch(`${address.url}/status`, {
      headers: { host: "relay.example.edu", authorization: `Bearer ${address.token}` },
    });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ reason: "host_refused" });
  });
});

test.each(["tcp", "unix"] as const)(
  "%s: the OpenAPI document has each worker's operations, and what a request needs to pass",
  async (listen) => {
    const daemon = await start({ listen });
    const document = (await (await daemon.fetch("/openapi.json")).json()) as {
      paths: Record<string, Record<string, { operationId: string; security?: unknown; responses: object; parameters: { name: string }[] }>>;
      security?: unknown;
      components: { securitySchemes?: unknown };
    };
    const { paths } = document;
    expect(paths["/clusters/{name}/jobs/{id}/events/sse"]!["get"]!.parameters.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["name", "id", "cursor", "Last-Event-ID"]),
    );
    expect(Object.keys(paths["/clusters/{name}/jobs"]!["post"]!.responses)).toContain("503");
    const ids = Object.values(paths).flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
    expect(new Set(ids).size).toBe(ids.length);
    const onTcp = listen === "tcp";
    expect(document.security).toEqual(onTcp ? [{ token: [] }, { token_field: [] }] : undefined);
    expect(document.components.securitySchemes ?? {}).toMatchObject(
      onTcp ? { token: { type: "http", scheme: "bearer" }, token_field: { type: "apiKey", in: "header", name: "X-Clio-Relay-Token" } } : {},
    );
    expect(document.components.securitySchemes === undefined).toBe(!onTcp);
    expect(paths["/identity"]!["get"]!.security).toEqual(onTcp ? [] : undefined);
    expect(Object.keys(paths["/status"]!["get"]!.responses).includes("401")).toBe(onTcp);
  },
);

describe("the log", () => {
  test("is put aside once it is large, so that both together are bounded", () => {
    const base = directory();
    const file = `${base}/log/desktop.log`;
    const log = new LogFile(file, { now: () => 0, monotonic: () => 0 }, 1_000);
    for (let i = 0; i < 200; i++) log.write("info", `line ${i}\nsecond`);
    expect(fs.readdirSync(`${base}/log`).toSorted()).toEqual(["desktop.log", "desktop.log.1"]);
    expect(fs.statSync(file).size).toBeLessThanOrEqual(1_000);
    expect(fs.readFileSync(file, "utf8")).toEndWith("1970-01-01T00:00:00.000Z info line 199\n  second\n");
  });

  test("can be read from its end, and on from there", async () => {
    const file = `${directory()}/desktop.log`;
    const log = new LogFile(file, { now: () => 0, monotonic: () => 0 });
    expect(tailOf(file, 10)).toEqual({ text: "", offset: 0 });
    for (let i = 0; i < 5; i++) log.write("warn", `line ${i}`);
    const { text, offset } = tailOf(file, 2);
    expect(text).toBe("1970-01-01T00:00:00.000Z warn line 3\n1970-01-01T00:00:00.000Z warn line 4\n");
    log.write("error", "more");
    const added = await eventually(() => newBytes(file, offset));
    expect(Buffer.from(added.bytes).toString()).toBe("1970-01-01T00:00:00.000Z error more\n");
    fs.writeFileSync(file, "new\n");
    expect(Buffer.from(newBytes(file, added.offset).bytes).toString()).toBe("new\n");
  });
});
