import { describe, expect, test } from "bun:test";
import { problemResponse } from "../../../src/api/problem.ts";
import { RelayError } from "../../../src/domain/errors.ts";
import { listen } from "../../api/web-socket-client.ts";
import { eventually } from "../../runner/wait.ts";
import { BEARER, BLOCKS, fronts, HALF_BODY, HALF_HEAD, head, type Raw, standing, TOKEN } from "./fronts.ts";

const { behind, connect, ending } = fronts();

describe("a connection without the token", () => {
  test.each([
    ["says nothing", ""],
    ["sends half a head", HALF_HEAD],
    ["sends half a body, and keeps the answer waiting", HALF_BODY],
    ["wants to be kept", head("GET /open HTTP/1.1", "Connection: keep-alive")],
  ])("that %s ends with its time", async (_, first) => {
    const { front } = await behind({ unprovenMs: 200 });
    const { closed } = await connect(front.address.port, first);
    await closed;
    await eventually(() => front.connections.unproven === 0);
    expect(front.connections).toEqual({ unproven: 0, proven: 0 });
  });

  test("gains no time by sending on", async () => {
    const { front } = await behind({ unprovenMs: 300 });
    const raw = await connect(front.address.port, "GET / HTTP/1.1\r\n");
    const dripping = setInterval(() => raw.socket.write("A: b\r\n"), 20);
    ending.push(() => clearInterval(dripping));
    await raw.closed;
    await eventually(() => front.connections.unproven === 0);
    expect(front.connections).toEqual({ unproven: 0, proven: 0 });
  });

  test("is answered once, whatever it still wants to send, and told that this was all", async () => {
    const { front } = await behind();
    const raw = await connect(front.address.port, head("POST /echo HTTP/1.1", "Content-Length: 4000000"));
    for (let n = 0; n < 50 && !raw.isClosed(); n++) raw.socket.write(Buffer.alloc(20_000, "x"));
    await eventually(() => raw.text().endsWith('{"open":"/echo"}'));
    expect(raw.text()).toStartWith("HTTP/1.1 401 ");
    expect(raw.text()).toContain("connection: close");
    expect(raw.text().match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test("finds its place taken by the next one when there are too many; the owner's stay", async () => {
    const { front } = await behind({ maxUnproven: 3 });
    const stream = await connect(front.address.port, head("GET /stream HTTP/1.1", BEARER));
    await eventually(() => stream.text().includes("first\n"));
    const strangers: Raw[] = [];
    for (let n = 0; n < 10; n++) strangers.push(await connect(front.address.port, HALF_HEAD));
    await eventually(() => strangers.filter((raw) => raw.isClosed()).length === 7);
    expect(strangers.slice(-3).some((raw) => raw.isClosed())).toBe(false);
    expect(front.connections).toEqual({ unproven: 3, proven: 1 });
    expect(stream.isClosed()).toBe(false);
  });

  test.each([
    ["no request", "hello\r\n\r\n"],
    ["another version", head("GET /owner HTTP/1.0", BEARER)],
    ["a whole address", head("GET http://elsewhere/owner HTTP/1.1", BEARER)],
    ["a folded field", head("GET /owner HTTP/1.1", BEARER, " more")],
    ["a space before the colon", head("GET /owner HTTP/1.1", `Authorization : Bearer ${TOKEN}`)],
    ["two hosts", head("GET /owner HTTP/1.1", BEARER, "Host: elsewhere")],
    ["no host", `GET /owner HTTP/1.1\r\n${BEARER}\r\n\r\n`],
    ["two ends of its body", head("POST /echo HTTP/1.1", BEARER, "Content-Length: 3", "Transfer-Encoding: chunked")],
    ["two lengths", head("POST /echo HTTP/1.1", BEARER, "Content-Length: 3", "Content-Length: 4")],
    ["a length that is none", head("POST /echo HTTP/1.1", BEARER, "Content-Length: +3")],
    ["a length that nobody can count", head("POST /echo HTTP/1.1", BEARER, "Content-Length: 99999999999999999999")],
    ["a coding that is not known", head("POST /echo HTTP/1.1", BEARER, "Transfer-Encoding: gzip, chunked")],
  ])("with %s is refused", async (_, first) => {
    const { front } = await behind();
    const raw = await connect(front.address.port, first);
    await eventually(() => raw.text().includes("\r\n\r\n"));
    expect(raw.text()).toStartWith("HTTP/1.1 400 ");
    expect(raw.text()).toContain("http_request_malformed");
    expect(front.connections.proven).toBe(0);
  });

  test.each([
    ["two tokens", [BEARER, "Authorization: Bearer other"]],
    ["another token", ["Authorization: Bearer other"]],
    ["another scheme", [`Authorization: Basic ${TOKEN}`]],
  ])("with %s never comes to the server", async (_, fields) => {
    const { front } = await behind();
    const raw = await connect(front.address.port, head("GET /owner HTTP/1.1", ...fields));
    await eventually(() => raw.text().includes("/owner"));
    expect(raw.text()).toStartWith("HTTP/1.1 401 ");
    expect(front.connections.proven).toBe(0);
  });
});

describe("a WebSocket", () => {
  async function streaming() {
    const all = await behind({ answer: () => problemResponse(new RelayError("authentication_required", "no")) });
    return { front: all.front, url: (target: string) => `ws://127.0.0.1:${all.front.address.port}${target}` };
  }

  test.each([
    ["as a parameter", `?token=${TOKEN}`, {}],
    ["as a parameter among others", `?cursor=1&token=${TOKEN}`, {}],
    ["in the header", "", { authorization: `Bearer ${TOKEN}` }],
    ["in the header, whatever the parameter is", "?token=other", { authorization: `Bearer ${TOKEN}` }],
  ])("with the token %s passes", async (_, query, headers) => {
    const { url } = await streaming();
    expect(await listen(url(`/events/ws${query}`), { headers })).toMatchObject({
      messages: [{ data: 1 }, { event: "terminal" }],
      code: 1000,
      reason: "terminal",
    });
  });

  test.each([
    ["no token", "", {}],
    ["another token", "?token=other", {}],
    ["another one in the header, whatever the parameter is", `?token=${TOKEN}`, { authorization: "Bearer other" }],
    ["a token that is no text", "?token=%00%0d%0a", {}],
  ])("with %s is closed with the reason, and never comes to the server", async (_, query, headers) => {
    const { url, front } = await streaming();
    expect(await listen(url(`/events/ws${query}`), { headers })).toEqual({ messages: [], code: 1008, reason: "authentication_required" });
    expect(front.connections.proven).toBe(0);
  });

  test("is the only thing that a parameter lets in", async () => {
    const { front } = await streaming();
    for (const target of [`/owner?token=${TOKEN}`, `/events/ws?token=${TOKEN}`]) {
      const response = await fetch(`http://127.0.0.1:${front.address.port}${target}`);
      expect([target, response.status]).toEqual([target, 401]);
    }
  });
});

describe("a connection with the token", () => {
  test("has all the time it wants, its head in pieces or not", async () => {
    const { front } = await behind({ unprovenMs: 2_000 });
    const raw = await connect(front.address.port);
    for (const byte of head("GET /stream HTTP/1.1", BEARER)) raw.socket.write(byte);
    await eventually(() => raw.text().includes("first\n"));
    // A stranger that came later is gone already.
    await (await connect(front.address.port, HALF_HEAD)).closed;
    await eventually(() => front.connections.unproven === 0);
    expect(raw.isClosed()).toBe(false);
    expect(front.connections).toEqual({ unproven: 0, proven: 1 });
  });

  test("is kept for more requests, and carries what is large both ways", async () => {
    const { front } = await behind();
    const url = `http://127.0.0.1:${front.address.port}`;
    const headers = { authorization: `Bearer ${TOKEN}` };
    for (let n = 0; n < 3; n++) expect(await (await fetch(`${url}/owner`, { headers })).text()).toBe("served");
    expect(front.connections.proven).toBe(1);
    const sent = Buffer.alloc(8 << 20, "0123456789abcdef-");
    const back = await fetch(`${url}/echo`, { method: "POST", headers, body: sent });
    expect(Bun.SHA256.hash(await back.bytes(), "hex")).toBe(Bun.SHA256.hash(sent, "hex"));
  });

  test("whose reader does not read holds the server back", async () => {
    const { front, given } = await behind();
    const raw = await connect(front.address.port);
    raw.socket.pause();
    raw.socket.write(head("GET /blocks HTTP/1.1", BEARER, "Connection: close"));
    expect(await standing(given)).toBeLessThan(BLOCKS);
    raw.socket.resume();
    await raw.closed;
    expect(given()).toBe(BLOCKS);
    expect(raw.text().split("clio ").length - 1).toBeGreaterThan(BLOCKS * 13_000);
  });

  test("that goes away ends its request; so does the server's end end the connection", async () => {
    const { front, server, aborted } = await behind();
    const [leaving, staying] = [
      await connect(front.address.port, head("GET /stream HTTP/1.1", BEARER)),
      await connect(front.address.port, head("GET /stream HTTP/1.1", BEARER)),
    ];
    for (const raw of [leaving, staying]) await eventually(() => raw.text().includes("first\n"));
    leaving.socket.destroy();
    await eventually(() => aborted.length === 1);
    await server.stop(0);
    await staying.closed;
    await eventually(() => front.connections.proven === 0);
    expect(aborted.length).toBeGreaterThan(0);
  });
});
