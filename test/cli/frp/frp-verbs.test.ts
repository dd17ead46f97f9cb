import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { initialized, type SourceRelay } from "../source-relay.ts";

const SERVER = ["--frp-server-addr", "relay.example.edu"];

interface Room {
  token: string | null;
  secret: string;
  name: string;
}
const roomFile = (relay: SourceRelay): string => path.join(relay.home, "config", "frp", "other.json");
const room = (relay: SourceRelay): Room => JSON.parse(fs.readFileSync(roomFile(relay), "utf8")) as Room;

test("a cluster that is met through a frps: the mode is what the options lead to, its secrets are in a private file", async () => {
  await using relay = await initialized();
  const add = (options: readonly string[], more: Parameters<SourceRelay["run"]>[1] = {}) =>
    relay.run(["cluster", "add", "other", ...options], more);
  const show = () => relay.json<{ mode: string; frp: object; ssh_host: string | null; route_revision: string }>("cluster", "show", "other");

  const made = await add(["--ssh-host", "other-login", ...SERVER, "--direct-transport"], { env: { CLIO_RELAY_FRP_TOKEN: "a token" } });
  expect([made.code, made.stdout]).toEqual([0, "added other\n"]);
  const first = await show();
  const frp = {
    server_addr: "relay.example.edu",
    server_port: 443,
    protocol: "wss",
    stun_server: null,
    direct_timeout_seconds: 10,
    frpc_bin: null,
  };
  expect(first).toMatchObject({ mode: "frp-xtcp", ssh_host: "other-login", frp });
  expect(fs.statSync(roomFile(relay)).mode & 0o777).toBe(0o600);
  const kept = room(relay);
  expect([kept.token, kept.secret.length, kept.name.length]).toEqual(["a token", 64, 32]);

  const [daemon] = relay.daemons();
  expect(fs.readFileSync(`/proc/${daemon}/environ`, "utf8")).not.toContain("a token");

  // What is not named stays, and so does what was made.
  const changed = await add(["--frp-protocol", "tcp", "--no-direct-transport", "--frp-token-file", "-"], { stdin: "another token\n" });
  expect([changed.code, changed.stderr]).toEqual([0, expect.stringContaining("the way to other has changed")]);
  expect(await show()).toMatchObject({ mode: "frp-stcp", frp: { ...frp, protocol: "tcp" } });
  expect(room(relay)).toEqual({ ...kept, token: "another token" });
  for (const text of [fs.readFileSync(path.join(relay.home, "config", "clusters.json"), "utf8"), changed.stderr, changed.stdout]) {
    for (const secret of ["a token", "another token", kept.secret]) expect(text).not.toContain(secret);
  }

  expect((await add(["--mode", "ssh"])).code).toBe(0);
  expect(await show()).toMatchObject({ mode: "ssh", ssh_host: "other-login" });
  await relay.ok("cluster", "remove", "other", "--yes");
  expect(fs.existsSync(roomFile(relay))).toBe(false);
});

test("options that do not go together, or mean nothing", async () => {
  await using relay = await initialized();
  for (const options of [
    ["--frp-protocol", "tcp"],
    ["--direct-transport"],
    [...SERVER, "--direct-transport", "--no-direct-transport"],
    [...SERVER, "--relay-host", "wss://relay.example"],
    ["--frp-server-addr", "not a host"],
    [...SERVER, "--frp-stun-server", "no-port"],
    [...SERVER, "--frp-server-port", "0"],
  ]) {
    const { code, stderr } = await relay.run(["cluster", "add", "other", ...options]);
    expect([options, code, stderr]).toEqual([options, 2, expect.stringContaining("error: ")]);
    // Nothing secret stays of what was refused.
    expect(fs.existsSync(roomFile(relay))).toBe(false);
  }
});

/** An installation whose cluster `other` is met through a frps, directly where that goes. */
async function withOther(): Promise<SourceRelay> {
  const relay = await initialized();
  await relay.run(["cluster", "add", "other", ...SERVER, "--direct-transport", "--frp-token-file", "-"], { stdin: "the token" });
  return relay;
}

test("configurations are rendered with the cluster's secrets, or with others that are no words of the command line", async () => {
  await using relay = await withOther();
  const render = async (verb: string, ...options: string[]): Promise<Record<string, unknown>> =>
    Bun.TOML.parse(await relay.ok("relay-host", `render-${verb}`, ...options)) as Record<string, unknown>;
  const { secret } = room(relay);
  expect(await render("frps-config", "--cluster", "other", "--bind-addr", "127.0.0.1")).toMatchObject({
    bindAddr: "127.0.0.1",
    bindPort: 7_000,
    auth: { method: "token", token: "the token" },
  });
  // Names are one to a frps: each cluster's are its own. Somebody with any certificate is nobody.
  const own = `relay-stcp-${room(relay).name.slice(0, 12)}`;
  const authorities = path.join(relay.home, "config", "frp", "other.ca.pem");
  expect(await render("frpc-config", "--cluster", "other", "--local-port", "8848")).toMatchObject({
    serverAddr: "relay.example.edu",
    transport: { protocol: "wss", tls: { trustedCaFile: authorities } },
    proxies: [
      { name: own, type: "stcp", secretKey: secret, localPort: 8848 },
      { name: `${own}-direct`, type: "xtcp", secretKey: secret, localPort: 8848 },
    ],
  });
  expect(fs.readFileSync(authorities, "utf8")).toContain("-----BEGIN CERTIFICATE-----");
  const visitor = { secretKey: secret, bindAddr: "127.0.0.1" };
  expect(await render("frpc-visitor-config", "--cluster", "other", "--bind-port", "8765")).toMatchObject({
    visitors: [
      { ...visitor, name: "relay-stcp-visitor", serverName: own, bindPort: -1 },
      { ...visitor, serverName: `${own}-direct`, bindPort: 8765, fallbackTo: "relay-stcp-visitor", fallbackTimeoutMs: 10_000 },
    ],
  });
});

test("a configuration that is written is private, has its authorities beside it, and is replaced only when that is said", async () => {
  await using relay = await withOther();
  fs.writeFileSync(path.join(relay.directory, "secret"), "mine\n");
  const output = path.join(relay.directory, "frpc.toml");
  await relay.ok(
    "relay-host",
    "render-frpc-config",
    "--cluster",
    "other",
    "--local-port",
    "1",
    "--secret-key",
    "@secret",
    "--output",
    output,
  );
  expect([fs.readFileSync(output, "utf8").includes('secretKey = "mine"'), fs.statSync(output).mode & 0o777]).toEqual([true, 0o600]);
  // The authorities of a site lie beside it, or where that frpc runs; without TLS there are none.
  const ca = path.join(relay.directory, "ca.pem");
  fs.writeFileSync(ca, "-----BEGIN CERTIFICATE-----\nown\n-----END CERTIFICATE-----\n");
  await relay.ok("cluster", "add", "other", "--frp-ca-file", ca);
  const rendered = ["--cluster", "other", "--local-port", "1", "--output", output] as const;
  const kept = await relay.run(["relay-host", "render-frpc-config", ...rendered]);
  expect([kept.code, kept.stderr]).toEqual([7, expect.stringContaining(`${output} [state_conflict]`)]);
  expect(fs.readFileSync(output, "utf8")).toContain('secretKey = "mine"');
  const told = await relay.run(["relay-host", "render-frpc-config", ...rendered, "--overwrite"]);
  expect([fs.readFileSync(`${output}.ca.pem`, "utf8"), told.stderr]).toEqual([
    fs.readFileSync(ca, "utf8"),
    expect.stringContaining(`frpc reads ${output}.ca.pem, too`),
  ]);
  await relay.ok("relay-host", "render-frpc-config", ...rendered, "--overwrite", "--trusted-ca-file", "/there/ca.pem");
  expect(Bun.TOML.parse(fs.readFileSync(output, "utf8"))).toMatchObject({ transport: { tls: { trustedCaFile: "/there/ca.pem" } } });
  // What was said once can be taken back: the authorities are the system's again.
  await relay.ok("cluster", "add", "other", "--unset", "frp-ca-file");
  await relay.ok("relay-host", "render-frpc-config", ...rendered, "--overwrite");
  expect(fs.readFileSync(`${output}.ca.pem`, "utf8")).not.toBe(fs.readFileSync(ca, "utf8"));
  await relay.ok("cluster", "add", "other", "--frp-stun-server", "stun.example:1", "--frpc-bin", "/opt/frpc");
  const forgotten = await relay.json("cluster", "add", "other", "--unset", "frp-stun-server", "--unset", "frpc-bin");
  expect(forgotten).toMatchObject({ mode: "frp-xtcp", frp: { stun_server: null, frpc_bin: null } });
  await relay.ok("cluster", "add", "other", "--frp-protocol", "tcp");
  await relay.ok("relay-host", "render-frpc-config", ...rendered, "--overwrite");
  expect(fs.readFileSync(output, "utf8")).not.toContain("trustedCaFile");
});

test("a secret that is a word of the command line, and a cluster that is not reached so, are refused; a frps without a token is warned of", async () => {
  await using relay = await initialized();
  const open = await relay.run(["relay-host", "render-frps-config"]);
  expect([open.code, open.stderr]).toEqual([0, "warning: without a token anybody can use that frps\n"]);
  const plain = await relay.run(["relay-host", "render-frps-config", "--token", "word"]);
  expect([plain.code, plain.stderr]).toEqual([2, expect.stringContaining("@ and a file, or - for standard input")]);
  const none = await relay.run(["relay-host", "render-frpc-config", "--cluster", "local", "--local-port", "1"]);
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining("local is not reached through a frps")]);
});

test("both programs are put where they are wanted, and nothing is fetched again for it", async () => {
  await using relay = await initialized();
  const program = (words: string) => new TextEncoder().encode(`\x7fELF ${words}`);
  const archive = await new Bun.Archive({ "frp/frpc": program("c"), "frp/frps": program("s") }, { compress: "gzip" }).bytes();
  const file = path.join(relay.directory, "frp.tar.gz");
  fs.writeFileSync(file, archive);
  const install = ["install-frp", "--platform", "linux-mips64"];
  const first = await relay.ok(...install, "--from", file, "--sha256", sha256Hex(archive));
  expect(first).toMatch(/^frpc=\/.*\/frpc\nfrps=\/.*\/frps$/);
  fs.rmSync(file);
  const there = path.join(relay.directory, "there");
  expect(await relay.ok(...install, "--destination", there)).toBe(`frpc=${there}/frpc\nfrps=${there}/frps`);
  expect(fs.readFileSync(path.join(there, "frps"), "utf8")).toBe("\x7fELF s");
});

test("a frpc that a variable names and that cannot be run fails as the program, with what mends it", async () => {
  await using relay = await initialized();
  expect((await relay.run(["cluster", "add", "other", ...SERVER], { env: { CLIO_RELAY_FRP_TOKEN: "a token" } })).code).toBe(0);
  const text = path.join(relay.directory, "frpc");
  fs.writeFileSync(text, "no program", { mode: 0o600 });
  for (const file of [text, `${text}.none`]) {
    const tried = await relay.run(["relay-host", "test-frpc-connection", "--cluster", "other", "--json"], {
      env: { CLIO_RELAY_FRPC_BIN: file },
    });
    const failure = { layer: "program", reason: "frp_not_installed", fix: expect.stringContaining("clio-relay install-frp") };
    expect([tried.code, JSON.parse(tried.stdout)]).toMatchObject([1, { ok: false, failure }]);
  }
});
