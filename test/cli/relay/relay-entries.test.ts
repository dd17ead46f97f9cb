import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { TOKEN } from "../relay-desk.ts";
import { initialized, type SourceRelay } from "../source-relay.ts";

const URL_ = "wss://relay.example.invalid";
let relay: SourceRelay;
const show = (): Promise<Record<string, unknown>> => relay.json("cluster", "show", "far");
const kept = (): string => path.join(relay.home, "config", "relay-tokens", "far");

beforeAll(async () => {
  relay = await initialized();
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

test("a relay-host makes an entry of mode relay; what is not named stays, and another host has another worker", async () => {
  await relay.ok("cluster", "add", "--name", "far", "--relay-host", "WSS://Relay.Example.invalid:443/", "--ssh-host", "login");
  const entry = await show();
  expect(entry).toMatchObject({ mode: "relay", relay_host: URL_, relay_token_file: null, ssh_host: "login", worker_key: null });
  await relay.ok("cluster", "add", "far", "--worker-concurrency", "8");
  expect(await show()).toMatchObject({ mode: "relay", relay_host: URL_, ssh_host: "login", worker_capacity: { concurrency: 8 } });
  await relay.ok("cluster", "add", "far", "--relay-host", "tcp://10.0.0.1");
  const moved = await show();
  expect(moved).toMatchObject({ relay_host: "tcp://10.0.0.1", ssh_host: "login" });
  expect(moved["route_revision"]).not.toBe(entry["route_revision"]);
  await relay.ok("cluster", "add", "far", "--mode", "ssh");
  expect(await show()).toMatchObject({ mode: "ssh", ssh_host: "login" });
  expect(await show()).not.toHaveProperty("relay_host");
});

test("the token is taken from a file, standard input or the variable, and kept in a private file; forgotten with the cluster", async () => {
  const own = path.join(relay.directory, "own-token");
  fs.writeFileSync(own, `${TOKEN}\n`, { mode: 0o600 });
  const add = ["cluster", "add", "--name", "far", "--relay-host", URL_];
  await relay.ok(...add, "--relay-token-file", "own-token");
  expect((await show())["relay_token_file"]).toBe(own);
  expect(await relay.run([...add, "--relay-token-file", "-"], { stdin: `  ${TOKEN}x\n` })).toMatchObject({ code: 0 });
  expect([(await show())["relay_token_file"], fs.readFileSync(kept(), "utf8"), fs.statSync(kept()).mode & 0o777]).toEqual([
    kept(),
    `${TOKEN}x\n`,
    0o600,
  ]);
  expect(await relay.run(add, { env: { CLIO_RELAY_HOST_TOKEN: TOKEN } })).toMatchObject({ code: 0 });
  expect(fs.readFileSync(kept(), "utf8")).toBe(`${TOKEN}\n`);
  await relay.ok("cluster", "remove", "far", "--yes");
  expect([fs.existsSync(kept()), fs.existsSync(own)]).toEqual([false, true]);
});

test("what was said once can be taken back", async () => {
  const ca = path.join(relay.directory, "vouching.pem");
  fs.writeFileSync(ca, "-----BEGIN CERTIFICATE-----\nown\n-----END CERTIFICATE-----\n");
  const add = (...options: string[]) => relay.run(["cluster", "add", "--name", "far", ...options], { stdin: `${TOKEN}\n` });
  const known = ["--relay-host", URL_, "--relay-ca-file", ca, "--relay-token-file", "-", "--ssh-host", "login", "--core-dir", "/scratch/x"];
  expect(await add(...known, "--spool-dir", "/scratch/y")).toMatchObject({ code: 0 });
  expect(await show()).toMatchObject({ relay_ca_file: ca, relay_token_file: kept(), core_dir: "/scratch/x", spool_dir: "/scratch/y" });
  expect(await add("--unset", "relay-ca-file", "--unset", "core-dir")).toMatchObject({ code: 0 });
  const entry = await show();
  expect(entry).toMatchObject({ relay_host: URL_, relay_token_file: kept(), ssh_host: "login", core_dir: null, spool_dir: "/scratch/y" });
  expect(entry).not.toHaveProperty("relay_ca_file");
  expect(await add("--unset", "relay-token-file", "--unset", "ssh-host", "--unset", "spool-dir")).toMatchObject({ code: 0 });
  expect(await show()).toMatchObject({ mode: "relay", relay_token_file: null, ssh_host: null, spool_dir: null });
  expect(fs.existsSync(kept())).toBe(false);
  for (const wrong of [
    ["--unset", "relay-host"],
    ["--unset", "relay-ca-file", "--relay-ca-file", ca],
    ["--unset", "mode"],
  ])
    expect([wrong, (await add(...wrong)).code]).toEqual([wrong, 2]);
  // A worker of this machine that is to be at no relay-host any more.
  const local = (...options: string[]) => relay.json("cluster", "add", "--name", "here", ...options);
  expect(await local("--mode", "local", "--relay-host", URL_, "--relay-token-file", "own-token")).toHaveProperty("relay_host", URL_);
  expect(Object.keys(await local("--unset", "relay-host")).filter((name) => name.startsWith("relay_"))).toEqual([]);
  for (const name of ["far", "here"]) await relay.ok("cluster", "remove", name, "--yes");
});

test.each([
  ["an address with a password", ["--relay-host", "wss://me:geheim@relay.example"]],
  ["an address with a query", ["--relay-host", "wss://relay.example/?token=geheim"]],
  ["a token for a cluster without a relay-host", ["--ssh-host", "login", "--relay-token-file", "own-token"]],
  ["a relay-host that is missing", ["--mode", "relay"]],
  ["a token that is none", ["--relay-host", URL_, "--relay-token-file", "-"]],
])("%s is refused, and not repeated", async (_what, args) => {
  fs.writeFileSync(path.join(relay.directory, "own-token"), `${TOKEN}\n`, { mode: 0o600 });
  const { code, stdout, stderr } = await relay.run(["cluster", "add", "--name", "new", ...args], { stdin: "geheim geheim\n" });
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).not.toContain("geheim");
  expect((await relay.run(["cluster", "show", "new"])).code).toBe(3);
});

test("the host of a cluster that is met elsewhere is only reached by ssh when that is asked for by name", async () => {
  await relay.ok("cluster", "add", "--name", "far", "--relay-host", URL_);
  for (const verb of ["start", "stop"]) {
    const refused = await relay.run(["worker", verb, "--cluster", "far"]);
    expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining(`worker ${verb} there`)]);
  }
  await relay.ok("cluster", "add", "far", "--ssh-host", "nowhere.invalid");
  const hinted = await relay.run(["worker", "start", "--cluster", "far"]);
  expect([hinted.code, hinted.stderr]).toEqual([4, expect.stringContaining("--ssh makes one SSH connection to nowhere.invalid")]);
  const asked = await relay.run(["worker", "start", "--cluster", "far", "--ssh", "--no-input"]);
  expect([asked.code, asked.stderr]).toEqual([5, expect.stringContaining("nowhere.invalid")]);
});

test("who vouches for a relay-host is part of the entry, and not of another relay-host's", async () => {
  const ca = path.join(relay.directory, "ca.pem");
  const add = ["cluster", "add", "--name", "far", "--relay-host", URL_];
  for (const content of [null, "nothing", `-----BEGIN CERTIFICATE-----\n${"x".repeat(70_000)}\n-----END CERTIFICATE-----\n`]) {
    if (content !== null) fs.writeFileSync(ca, content);
    expect(await relay.run([...add, "--relay-ca-file", "ca.pem"])).toMatchObject({ code: 2 });
  }
  fs.writeFileSync(ca, "-----BEGIN CERTIFICATE-----\nown\n-----END CERTIFICATE-----\n");
  await relay.ok(...add, "--relay-ca-file", "ca.pem");
  await relay.ok("cluster", "add", "far", "--worker-concurrency", "4");
  expect(await show()).toMatchObject({ relay_host: URL_, relay_ca_file: ca });
  await relay.ok("cluster", "add", "far", "--relay-host", "wss://other.example.invalid");
  expect(await show()).not.toHaveProperty("relay_ca_file");
  for (const args of [
    ["cluster", "add", "here", "--relay-ca-file", "ca.pem"],
    ["cluster", "add", "there", "--ssh-host", "x", "--relay-ca-file", "ca.pem"],
  ])
    expect(await relay.run(args)).toMatchObject({ code: 2 });
});
