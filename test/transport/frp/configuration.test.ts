import { expect, test } from "bun:test";
import { type FrpServer, frpcConfiguration, frpsConfiguration, visitorConfiguration } from "../../../src/transport/frp/configuration.ts";

const SERVER: FrpServer = { address: "relay.example.edu", port: 443, protocol: "wss", token: 'a "quoted" \\ {{ .Envs.HOME }} ütf\n' };

test("a worker's side leads to a socket, with every secret as it was", () => {
  const text = frpcConfiguration(SERVER, [{ name: "here", type: "stcp", secret: "{{s}}", target: { socket: "/run/a b.sock" } }]);
  // frp takes the file for a template before it is TOML.
  expect(text).not.toContain("{{");
  expect(Bun.TOML.parse(text)).toEqual({
    serverAddr: "relay.example.edu",
    serverPort: 443,
    loginFailExit: true,
    auth: { method: "token", token: SERVER.token },
    log: { to: "console", level: "info", disablePrintColor: true },
    transport: { protocol: "wss", tcpMux: true, tcpMuxKeepaliveInterval: 20, dialServerTimeout: 10 },
    proxies: [{ name: "here", type: "stcp", secretKey: "{{s}}", plugin: { type: "unix_domain_socket", unixPath: "/run/a b.sock" } }],
  });
});

test("a visitor that may fall back names the one that it falls back to", () => {
  const stcp = { name: "relayed", type: "stcp", secret: "s", server: "there", address: "127.0.0.1", port: 9_000 } as const;
  const xtcp = { ...stcp, name: "direct", type: "xtcp", port: 9_001, fallback: { to: "relayed", timeoutMs: 5_000 } } as const;
  const { visitors } = Bun.TOML.parse(visitorConfiguration({ ...SERVER, stunServer: "127.0.0.1:3478" }, [stcp, xtcp])) as {
    visitors: object[];
  };
  const table = { serverName: "there", secretKey: "s", bindAddr: "127.0.0.1" };
  expect(visitors).toEqual([
    { ...table, name: "relayed", type: "stcp", bindPort: 9_000 },
    { ...table, name: "direct", type: "xtcp", bindPort: 9_001, keepTunnelOpen: false, fallbackTo: "relayed", fallbackTimeoutMs: 5_000 },
  ]);
});

test("a server without a token has no word of one, and its page is on loopback", () => {
  const parsed = Bun.TOML.parse(frpsConfiguration({ port: 7_000, token: null, dashboardPort: 7_500 })) as Record<string, unknown>;
  expect(parsed["auth"]).toBeUndefined();
  expect(parsed).toMatchObject({ bindAddr: "0.0.0.0", bindPort: 7_000, webServer: { addr: "127.0.0.1", port: 7_500 } });
});
