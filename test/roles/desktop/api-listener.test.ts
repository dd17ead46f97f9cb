import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { Hono } from "hono";
import * as v from "valibot";
import { ListenerRequest, type ListenerRequestInput } from "../../../src/config/api-listener.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { ApiListener } from "../../../src/roles/desktop/api-listener.ts";
import { eventually } from "../../runner/wait.ts";
import { startDaemon } from "./daemon.ts";
import { FREE, raw, reasonOf, servedApis } from "./served-api.ts";

const { served, directory, ending } = servedApis();

describe("the token", () => {
  test("is made into a private file, and every route but /healthz wants it", async () => {
    const { daemon, status, url, token, get } = await served();
    expect(status).toMatchObject({ state: "listening", detail: null, token_file: daemon.paths.apiTokenFile });
    expect(fs.statSync(status.token_file).mode & 0o777).toBe(0o600);
    expect(token()).toMatch(/^[\w-]{43}$/);
    expect(await (await get("/healthz", {})).json()).toEqual({ ok: true, auth: true, version: "1.2.3" });
    const closed = [
      "/status",
      "/clusters",
      "/links",
      "/metrics",
      "/openapi.json",
      "/identity",
      "/listener",
      "/nowhere",
      "/clusters/near/echo",
    ];
    for (const route of closed) {
      const refused = await get(route, {});
      expect([route, refused.status, refused.headers.get("www-authenticate")]).toEqual([route, 401, 'Bearer realm="clio-relay"']);
      if (refused.body !== null) expect([route, await refused.text()]).toEqual([route, expect.stringContaining("clio-relay api status")]);
    }
    expect(((await (await get("/status")).json()) as { socket: string }).socket).toBe(url);
  });

  test("opens by either field, and where both are there by both", async () => {
    const { token, get } = await served();
    const right = token();
    const cases: [Record<string, string>, number][] = [
      [{ authorization: `Bearer ${right}` }, 200],
      [{ "x-clio-relay-token": right }, 200],
      [{ authorization: `Bearer ${right}`, "x-clio-relay-token": right }, 200],
      [{ authorization: `Bearer ${right}`, "x-clio-relay-token": "other" }, 401],
      [{ authorization: "Bearer other", "x-clio-relay-token": right }, 401],
      [{ authorization: `Basic ${right}` }, 401],
      [{ authorization: right }, 401],
      [{ authorization: `Bearer ${right.slice(0, -1)}` }, 401],
      [{ authorization: `Bearer ${right}x` }, 401],
      [{ "x-clio-relay-token": "" }, 401],
      [{ cookie: `token=${right}` }, 401],
    ];
    for (const [headers, status] of cases) expect([headers, (await get("/status", headers)).status]).toEqual([headers, status]);
    expect((await get(`/status?token=${right}`, {})).status).toBe(401);
  });

  test("stays with the daemon: the worker is not told", async () => {
    const { worker, token, get } = await served();
    await get("/clusters/near/echo", { authorization: `Bearer ${token()}`, "x-clio-relay-token": token(), traceparent: "kept" });
    expect(worker.seen).toHaveLength(1);
    expect(JSON.stringify(worker.seen)).not.toContain(token());
    expect(worker.seen[0]!.headers["traceparent"]).toBe("kept");
  });

  test("another spelling of what is open opens nothing else", async () => {
    const { url, worker } = await served();
    const { port } = new URL(url);
    for (const target of [
      "/clusters/near/../../healthz",
      "/clusters/near/%2e%2e/%2e%2e/healthz",
      "/healthz/../clusters",
      "//healthz",
      "/healthz/",
    ]) {
      const answer = await raw(Number(port), `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
      expect([target, answer.slice(0, 12)]).not.toEqual([target, "HTTP/1.1 201"]);
      expect(answer).not.toContain('clusters":[');
    }
    expect(worker.seen).toEqual([]);
  });
});

describe("rotation", () => {
  test("the old token opens nothing from then on, and what it opened ends", async () => {
    const { daemon, token, get } = await served();
    const old = token();
    const stream = await get("/clusters/near/two");
    const reader = stream.body!.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe("data: 1\n\n");
    expect((await daemon.client.listener()).connections!.proven).toBeGreaterThan(0);
    const after = await daemon.client.rotateListenerToken();
    expect(after.state).toBe("listening");
    expect(token()).not.toBe(old);
    const end = await reader.read().then(
      ({ done }) => done,
      () => "broken",
    );
    expect([true, "broken"]).toContain(end);
    expect((await get("/status", { authorization: `Bearer ${old}` })).status).toBe(401);
    expect((await get("/status")).status).toBe(200);
    expect(daemon.log.join("\n")).not.toContain(old);
  });

  test("a file that another program replaces counts; without one nobody is let in", async () => {
    const { daemon, get } = await served();
    const file = daemon.paths.apiTokenFile;
    const other = "0123456789abcdef0123456789abcdef";
    fs.writeFileSync(`${file}.new`, other, { mode: 0o600 });
    fs.renameSync(`${file}.new`, file);
    await eventually(async () => (await get("/status", { authorization: `Bearer ${other}` })).status === 200);
    fs.chmodSync(file, 0o644);
    fs.renameSync(file, `${file}.away`);
    await eventually(async () => (await daemon.client.listener()).state === "failed");
    expect((await get("/status", { authorization: `Bearer ${other}` })).status).toBe(401);
    expect((await daemon.client.listener()).detail).toContain("is not there");
    fs.chmodSync(`${file}.away`, 0o600);
    fs.renameSync(`${file}.away`, file);
    await eventually(async () => (await get("/status", { authorization: `Bearer ${other}` })).status === 200);
    expect((await daemon.client.listener()).state).toBe("listening");
  });
});

describe("what was asked for", () => {
  test("is served again by the next daemon, on the same port with the same token, until it is stopped", async () => {
    const base = directory();
    const first = await served(FREE, base);
    const token = first.token();
    await first.daemon.stop();
    const second = await startDaemon(base);
    ending.push(() => second.stop());
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${first.url}/status`, { headers })).status).toBe(200);
    expect(await second.client.stopListener()).toMatchObject({ state: "stopped", url: null });
    await expect(fetch(`${first.url}/status`, { headers })).rejects.toThrow();
    await second.stop();
    const third = await startDaemon(base);
    ending.push(() => third.stop());
    expect(await third.client.listener()).toMatchObject({ state: "stopped", listener: null });
  });

  test("that cannot be had is refused, and what was served before is served again", async () => {
    const { daemon, url, get } = await served();
    const taken = net.createServer().listen(0, "127.0.0.1");
    ending.push(() => taken.close());
    await new Promise((resolve) => taken.once("listening", resolve));
    const { port } = taken.address() as net.AddressInfo;
    const refused = daemon.client.startListener({ port });
    await expect(refused).rejects.toMatchObject({ code: "configuration_error", message: expect.stringContaining(String(port)) });
    expect((await daemon.client.listener()).url).toBe(url);
    expect((await get("/status")).status).toBe(200);
  });

  test("and is the same as before changes nothing; something else moves it", async () => {
    const { daemon, status, get } = await served();
    const stream = await get("/clusters/near/two");
    const port = Number(new URL(status.url!).port);
    expect(await daemon.client.startListener({ port })).toMatchObject({ url: status.url, since: status.since });
    const reader = stream.body!.getReader();
    expect(Buffer.from((await reader.read()).value!).toString()).toBe("data: 1\n\n");
    const moved = await daemon.client.startListener({ port, allow_origins: ["https://app.example.edu"] });
    expect(moved.listener!.allow_origins).toEqual(["https://app.example.edu"]);
    expect((await get("/status")).status).toBe(200);
    await reader.cancel().catch(() => undefined);
  });

  test.each([
    ["off loopback without TLS", { host: "0.0.0.0", port: 0 }],
    ["a name of the network without TLS", { host: "relay.example.edu", port: 0 }],
    ["certificates that are not there", { port: 0, tls: { cert_file: "/nowhere/cert.pem", key_file: "/nowhere/key.pem" } }],
    ["a token file that others may read", { port: 0, token_file: "SHARED" }],
    ["a token file with a short token", { port: 0, token_file: "SHORT" }],
    ["a token file that is a link", { port: 0, token_file: "LINK" }],
  ] satisfies [string, ListenerRequestInput][])("%s is refused by name", async (_, request: ListenerRequestInput) => {
    const base = directory();
    fs.writeFileSync(path.join(base, "SHARED"), "x".repeat(40), { mode: 0o644 });
    fs.writeFileSync(path.join(base, "SHORT"), "short", { mode: 0o600 });
    fs.symlinkSync(path.join(base, "SHORT"), path.join(base, "LINK"));
    const daemon = await startDaemon(base);
    ending.push(() => daemon.stop());
    const token_file = request.token_file == null ? null : path.join(base, request.token_file);
    const started = daemon.client.startListener({ ...request, token_file });
    await expect(started).rejects.toMatchObject({ code: "configuration_error" });
    expect((await daemon.client.listener()).state).toBe("stopped");
    expect(fs.existsSync(daemon.paths.listenerFile)).toBe(false);
  });

  test("a port that is taken when the daemon starts is said, and had when it is free", async () => {
    const base = directory();
    const place = path.join(base, "run");
    fs.mkdirSync(place, { mode: 0o700 });
    const taken = net.createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    const { port } = taken.address() as net.AddressInfo;
    const paths = { runDir: place, listenerFile: path.join(base, "listener.json"), apiTokenFile: path.join(base, "token") };
    const log: string[] = [];
    const make = () =>
      new ApiListener({
        paths,
        env: { uid: process.getuid!(), platform: process.platform },
        clock: systemClock,
        connections: 64,
        log: (level, message) => log.push(`${level}: ${message}`),
        appFor: () => new Hono().get("/healthz", (c) => c.text("ok")),
      });
    fs.writeFileSync(paths.apiTokenFile, "t".repeat(32), { mode: 0o600 });
    const listener = v.parse(ListenerRequest, { port });
    fs.writeFileSync(paths.listenerFile, JSON.stringify({ schema_version: "clio-relay.api-listener.v1", listener }), { mode: 0o600 });
    const api = make();
    ending.push(() => api.close());
    await api.resume();
    expect(api.status()).toMatchObject({ state: "failed", url: null, detail: expect.stringContaining(String(port)) });
    expect(log.join("\n")).toContain("error: the API is not served on TCP");
    await new Promise((resolve) => taken.close(resolve));
    await api.look();
    expect(api.status()).toMatchObject({ state: "listening", detail: null });
    expect(await (await fetch(`http://127.0.0.1:${port}/healthz`)).text()).toBe("ok");
    // Its inner socket is gone: nobody would be let through.
    fs.rmSync(path.join(place, "api.sock"));
    await api.look();
    expect(await (await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { authorization: `Bearer ${"t".repeat(32)}` } })).text()).toBe(
      "ok",
    );
  });

  test("TLS is spoken where there is a certificate", async () => {
    const base = directory();
    const [cert_file, key_file] = [path.join(base, "cert.pem"), path.join(base, "key.pem")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"];
    spawnSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key_file, "-out", cert_file, ...subject]);
    const { url, token } = await served({ host: "0.0.0.0", port: 0, tls: { cert_file, key_file } }, base);
    expect(url).toStartWith("https://0.0.0.0:");
    const at = url.replace("0.0.0.0", "127.0.0.1");
    const tls = { ca: fs.readFileSync(cert_file, "utf8") };
    const answer = await fetch(`${at}/status`, { headers: { authorization: `Bearer ${token()}` }, tls } as RequestInit);
    expect(answer.status).toBe(200);
    await expect(fetch(at.replace("https", "http"))).rejects.toThrow();
  });
});

test("bodies and later heads are bounded as everywhere", async () => {
  const { url, get, token } = await served();
  const { port } = new URL(url);
  const large = await get("/clusters", { authorization: `Bearer ${token()}` }, { method: "POST", body: "x".repeat(3 << 20) });
  expect([large.status, await reasonOf(large)]).toEqual([413, "payload_too_large"]);
  const first = `GET /status HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token()}\r\n\r\n`;
  const answers = await raw(Number(port), `${first}GET /status HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nA: ${"x".repeat(20_000)}\r\n\r\n`);
  expect(answers.match(/HTTP\/1\.1 (\d+)/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 431"]);
});

test("who comes in through the listener does not decide on it", async () => {
  const { get, daemon } = await served();
  expect((await get("/listener")).status).toBe(403);
  for (const route of ["/listener/start", "/listener/stop", "/listener/rotate-token"]) {
    const headers = { authorization: `Bearer ${fs.readFileSync(daemon.paths.apiTokenFile, "utf8").trim()}` };
    const refused = await get(route, headers, { method: "POST" });
    expect([route, refused.status, await reasonOf(refused)]).toEqual([route, 403, "resource_ownership_refused"]);
  }
  expect((await daemon.client.listener()).state).toBe("listening");
});

test("what was refused is counted and said, once a minute for each address", async () => {
  const { get, daemon } = await served();
  for (let n = 0; n < 5; n++) await (await get("/status", { authorization: "Bearer guess" })).arrayBuffer();
  expect((await daemon.client.listener()).refused).toMatchObject({ authentication: 5 });
  expect(daemon.log.filter((line) => line.includes("the API refused 127.0.0.1: authentication"))).toHaveLength(1);
  const metrics = await (await daemon.fetch("/metrics")).text();
  expect(metrics).toContain('clio_relay_api_refused_total{reason="authentication"} 5');
});
