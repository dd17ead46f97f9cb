import { expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { register } from "../../../src/transport/meeting/register.ts";
import { newSigner, TOKEN } from "../../roles/relay-host/place.ts";
import { requireComponent } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { authority } from "../../transport/outbound/certificates.ts";
import { Collected } from "../collected.ts";
import { SourceRelay } from "../source-relay.ts";

const serve = (...args: string[]): string[] => ["relay-host", "serve", ...args];

test("it refuses to start without a token, with a short one, in a file that is open to others, and with options that do not fit", async () => {
  await using relay = new SourceRelay();
  const file = (name: string, text: string, mode: number): string => {
    const at = path.join(relay.directory, name);
    fs.writeFileSync(at, text);
    fs.chmodSync(at, mode);
    return at;
  };
  const tcp = ["--listen-tcp", "127.0.0.1:0"];
  const open = file("open", TOKEN, 0o644);
  const short = file("short", `${TOKEN}\nshort\n`, 0o600);
  const empty = file("empty", "# none\n\n", 0o600);
  for (const [args, token, code, says] of [
    [tcp, undefined, "configuration_error", "has none"],
    [tcp, "short", "configuration_error", "CLIO_RELAY_HOST_TOKEN"],
    [[...tcp, "--token-file", open], undefined, "configuration_error", "open to other users"],
    [[...tcp, "--token-file", short], undefined, "configuration_error", "line 2"],
    [[...tcp, "--token-file", empty], undefined, "configuration_error", "no token"],
    [[], TOKEN, "usage", "--listen"],
    [["--listen", ":0"], TOKEN, "usage", "--tls-cert"],
    [["--listen", ":0", "--tls-cert", open, "--tls-key", open], TOKEN, "configuration_error", "no CERTIFICATE"],
    [["--listen-tcp", "nowhere"], TOKEN, "usage", "an address and a port"],
    [[...tcp, "--edge-address-header", "X-Forwarded-For"], TOKEN, "usage", "--listen-ws"],
    [["--listen-tcp", "192.0.2.1:1"], TOKEN, "configuration_error", "cannot be listened on"],
  ] as const) {
    const { code: exit, stderr } = await relay.run(
      serve(...args, "--json"),
      token === undefined ? {} : { env: { CLIO_RELAY_HOST_TOKEN: token } },
    );
    expect([args, exit === 0, JSON.parse(stderr.trim().split("\n").at(-1)!)]).toMatchObject([args, false, { reason: code }]);
    expect(stderr).toContain(says);
    if (token !== undefined) expect(stderr).not.toContain(`"${token}"`);
  }
});

test.skipIf(!requireComponent("openssl"))("a key of another certificate is said to be one", async () => {
  await using relay = new SourceRelay();
  const ca = authority(relay.directory);
  const [{ cert }, { key }] = [ca.issue("localhost", "DNS:localhost"), ca.issue("other", "DNS:localhost")];
  const { code, stderr } = await relay.run(serve("--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key), {
    env: { CLIO_RELAY_HOST_TOKEN: TOKEN },
  });
  expect([code, stderr]).toEqual([2, expect.stringContaining("the key is not that of the certificate")]);
});

test.skipIf(!requireComponent("openssl"))("it serves on every carrier until TERM, keeps nothing on disk, and says no secret", async () => {
  await using relay = new SourceRelay();
  const ca = authority(relay.directory);
  const { cert, key } = ca.issue("localhost", "DNS:localhost,IP:127.0.0.1");
  const tokens = path.join(relay.directory, "tokens");
  fs.writeFileSync(tokens, `# the old one, and its successor\nold-${TOKEN}\n${TOKEN}\n`, { mode: 0o600 });
  const listen = [
    "--listen",
    "127.0.0.1:0",
    "--tls-cert",
    cert,
    "--tls-key",
    key,
    "--listen-ws",
    "127.0.0.1:0",
    "--listen-tcp",
    "127.0.0.1:0",
  ];
  const before = fs.readdirSync(relay.directory).sort();
  const child = relay.start(serve(...listen, "--token-file", tokens, "--json"));
  const said = new Collected(child);
  const { listening } = await eventually(() => JSON.parse(said.stdout) as { listening: { kind: string; port: number }[] });
  const port = (kind: string): number => listening.find((one) => one.kind === kind)!.port;
  expect(await (await fetch(`https://localhost:${port("tls")}/healthz`, { tls: { ca: fs.readFileSync(ca.file, "utf8") } })).text()).toBe(
    "ok\n",
  );
  expect(await (await fetch(`http://127.0.0.1:${port("ws")}/healthz`)).text()).toBe("ok\n");
  const socket = net.connect({ host: "127.0.0.1", port: port("tcp") }).on("error", () => undefined);
  const signer = newSigner();
  const at = { scheme: "tcp", authority: `127.0.0.1:${port("tcp")}` } as const;
  const registration = await register(socket, { relay: at, token: `old-${TOKEN}`, signer, onJoining: () => undefined });

  child.kill("SIGTERM");
  expect(await registration.closed).toMatchObject({ code: "shutting_down", data: { close: "draining" } });
  expect(await said.exited).toBe(0);
  expect(
    fs
      .readdirSync(relay.directory)
      .filter((name) => name !== "home" && name !== "user")
      .sort(),
  ).toEqual(before);
  const lines = said.stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { event: string });
  expect(lines.map(({ event }) => event)).toEqual([
    "listening",
    "listening",
    "listening",
    "registered",
    "draining",
    "unregistered",
    "stopped",
  ]);
  expect(said.stderr + said.stdout).not.toContain(TOKEN);
});
