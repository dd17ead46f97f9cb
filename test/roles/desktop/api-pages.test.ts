import { describe, expect, test } from "bun:test";
import { namesOf } from "../../../src/api/listener/access.ts";
import { FREE, raw, reasonOf, servedApis } from "./served-api.ts";

const { served } = servedApis();

describe("Host and Origin", () => {
  test.each([
    ["the address", "127.0.0.1:PORT", 200],
    ["its name", "localhost:PORT", 200],
    ["the other family's", "[::1]:PORT", 200],
    ["in capitals", "LOCALHOST:PORT", 200],
    ["what was allowed, with any port", "relay.example.edu:1", 200],
    ["what was allowed, without one", "relay.example.edu", 200],
    ["another port", "127.0.0.1:1", 403],
    ["no port", "127.0.0.1", 403],
    ["a name that leads here", "rebound.example.com:PORT", 403],
    ["a name that begins so", "127.0.0.1.example.com:PORT", 403],
    ["one that ends so", "evil-localhost:PORT", 403],
    ["two", "127.0.0.1:PORT, evil.example.com", 403],
    ["a user before it", "127.0.0.1:PORT@evil.example.com", 403],
    ["a number for it", "2130706433:PORT", 403],
    ["a dot behind it", "localhost.:PORT", 403],
    ["nothing", "", 403],
  ])("Host: %s (%s) is answered with %d", async (_, host, expected) => {
    const { url, token } = await served({ ...FREE, allow_hosts: ["relay.example.edu"] });
    const { port } = new URL(url);
    const request = (more: string) =>
      raw(Number(port), `GET /status HTTP/1.1\r\nHost: ${host.replace("PORT", port)}\r\n${more}Connection: close\r\n\r\n`);
    const answer = await request(`Authorization: Bearer ${token()}\r\n`);
    // A server may find a Host malformed before anybody else does.
    expect([expected, expected === 403 ? 400 : expected]).toContain(Number(answer.slice(9, 12)));
    if (answer.startsWith("HTTP/1.1 403")) expect(answer).toContain("host_refused");
  });

  test("on all addresses each address in digits is one, and no name is", () => {
    const names = namesOf({ host: "0.0.0.0", port: 8765, tls: false, allowed: [] });
    expect(["10.1.2.3:8765", "[2001:db8::1]:8765", "localhost:8765"].map(names)).toEqual([true, true, true]);
    expect(["10.1.2.3", "10.1.2.3:80", "10.1.2:8765", "host.example.edu:8765", "[nonsense]:8765"].map(names)).toEqual([
      false,
      false,
      false,
      false,
      false,
    ]);
    const secure = namesOf({ host: "relay.example.edu", port: 443, tls: true, allowed: [] });
    expect(["relay.example.edu", "relay.example.edu:443", "relay.example.edu:80"].map(secure)).toEqual([true, true, false]);
  });

  const PAGE = "https://app.example.edu";

  test("a page is refused, whatever it brings, and is told nothing that it could read", async () => {
    const { get, token } = await served();
    const right = { authorization: `Bearer ${token()}` };
    for (const origin of [PAGE, "null", "http://127.0.0.1:1", ""]) {
      const refused = await get("/status", { ...right, origin });
      expect([origin, refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([origin, 403, null]);
      expect(await reasonOf(refused)).toBe("origin_refused");
    }
    const preflight = await get("/status", { origin: PAGE, "access-control-request-method": "GET" }, { method: "OPTIONS" });
    expect([preflight.status, preflight.headers.get("access-control-allow-origin")]).toEqual([403, null]);
  });

  test("a page of an allowed origin is let in with the token, and no other is", async () => {
    const { get, token } = await served({ ...FREE, allow_origins: [PAGE] });
    const right = { authorization: `Bearer ${token()}` };
    const asks = { "access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type" };
    const preflight = await get("/clusters/near/jobs", { origin: PAGE, ...asks }, { method: "OPTIONS" });
    expect([preflight.status, await preflight.text()]).toEqual([204, ""]);
    expect(preflight.headers.get("access-control-allow-origin")).toBe(PAGE);
    expect(preflight.headers.get("access-control-allow-headers")).toBe("authorization,content-type");
    expect(preflight.headers.get("access-control-allow-credentials")).toBeNull();
    for (const [headers, status] of [
      [{ ...right, origin: PAGE }, 200],
      [{ origin: PAGE }, 401],
    ] as const) {
      const answer = await get("/status", headers);
      expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([status, PAGE]);
      expect(answer.headers.get("vary")).toContain("origin");
    }
    for (const origin of [`${PAGE}.evil.com`, "http://app.example.edu", "https://app.example.edu:444", "null"]) {
      const refused = await get("/status", { ...right, origin });
      expect([origin, refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([origin, 403, null]);
    }
    const rebound = await get("/status", { origin: PAGE, ...asks, host: "evil.example.com" }, { method: "OPTIONS" });
    expect(rebound.status).toBe(403);
  });
});
