import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { type KeyPair, makeKeyPair } from "../../../src/transport/session/key-pair.ts";
import { fingerprintOf, publicKeyFromLine } from "../../../src/transport/session/keys.ts";
import { openWorkerSession } from "../../../src/transport/session/worker-session.ts";
import { initialized, type SourceRelay } from "../source-relay.ts";

interface Listed {
  readonly host_key: string;
  readonly next_host_key: { readonly fingerprint: string } | null;
  readonly keys: {
    readonly fingerprint: string;
    readonly comment: string;
    readonly sessions: number | null;
    readonly expires_at: string | null;
  }[];
}

const printOf = ({ publicLine }: KeyPair): string => fingerprintOf(publicKeyFromLine(publicLine));

describe("worker keys", () => {
  let relay: SourceRelay;
  beforeAll(async () => {
    relay = await initialized();
  });
  afterAll(() => relay[Symbol.asyncDispose]());

  const coreDir = (): string => path.join(relay.home, "core", "local");
  const list = (): Promise<Listed> => relay.json<Listed>("worker", "keys", "list");

  /** Let keys in as bootstrap does. */
  async function configure(keys: readonly KeyPair[], more: Record<string, unknown> = {}): Promise<{ host_key: string }> {
    const configuration = {
      schema_version: "clio-relay.worker-configuration.v1",
      cluster: "local",
      env_setup: null,
      worker_capacity: { concurrency: 3, control_query_concurrency: 1, kind_concurrency: {} },
      client_keys: keys.map(({ publicLine }) => publicLine),
      ...more,
    };
    const { code, stdout, stderr } = await relay.run(["worker", "configure"], { stdin: JSON.stringify(configuration) });
    if (code !== 0) throw new Error(stderr);
    return JSON.parse(stdout) as { host_key: string };
  }

  function connect(key: KeyPair, workerKey: string) {
    const directory = path.join(relay.home, "run");
    const socket = fs.readdirSync(directory).find((name) => /^link-.*\.sock$/.test(name))!;
    const keys = { workerKeys: [publicKeyFromLine(workerKey)], privateKey: key.privateKey };
    return openWorkerSession(net.connect(path.join(directory, socket)), keys, { cluster: "local" });
  }

  test("are listed, revoked and rotated without a worker, on its files", async () => {
    const [ada, bob] = [makeKeyPair("ada@desk"), makeKeyPair("bob@desk")];
    expect(await list()).toMatchObject({ keys: [] });
    await configure([ada, bob], { renew_keys: true, key_ttl_seconds: 3_600 });
    const before = await list();
    expect(before.keys).toMatchObject([
      { fingerprint: printOf(ada), comment: "ada@desk", sessions: null, by: "bootstrap", expired: false, last_used_at: null },
      { fingerprint: printOf(bob) },
    ]);
    expect(Date.parse(before.keys[0]!.expires_at!) - Date.now()).toBeGreaterThan(3_000_000);
    expect((await relay.run(["worker", "keys", "revoke", "--yes", "SHA256:AAAAAAAAAAAA"])).code).toBe(3);
    expect((await relay.run(["worker", "keys", "revoke", "--yes", "SHA"])).code).toBe(3);
    expect(await relay.json("worker", "keys", "revoke", "--yes", printOf(ada).slice(7, 20))).toMatchObject({
      revoked: { fingerprint: printOf(ada) },
      ended_sessions: null,
    });
    expect((await list()).keys.map(({ fingerprint }) => fingerprint)).toEqual([printOf(bob)]);
    const announced = await relay.json<{ next_host_key: { fingerprint: string } }>("worker", "keys", "rotate", "--overlap", "2d");
    expect(announced).toMatchObject({ state: "announced", host_key: before.host_key, previous: null });
    expect(await list()).toMatchObject({ host_key: before.host_key, next_host_key: announced.next_host_key });
    expect(await relay.json("worker", "keys", "rotate")).toMatchObject({ state: "pending", next_host_key: announced.next_host_key });
    expect(await relay.json("worker", "keys", "rotate", "--now", "--yes")).toEqual({
      state: "switched",
      host_key: announced.next_host_key.fingerprint,
      previous: before.host_key,
      next_host_key: null,
    });
    expect(await list()).toMatchObject({ host_key: announced.next_host_key.fingerprint, next_host_key: null });
    expect((await relay.run(["worker", "keys", "rotate", "--now", "--yes", "--overlap", "1d"])).code).toBe(2);
    expect(fs.readdirSync(coreDir()).filter((name) => name.includes("next") || name.endsWith(".tmp"))).toEqual([]);
  });

  test("of a running worker are, too: a key that is revoked ends its session before the command answers, a new host key is announced and answers", async () => {
    const [ada, bob] = [makeKeyPair("ada@desk"), makeKeyPair("bob@desk")];
    const { host_key } = await configure([ada, bob]);
    await relay.ok("worker", "start");
    const [gone, stays] = [(await connect(ada, host_key)).session, (await connect(bob, host_key)).session];
    const listed = (await list()).keys.filter(({ fingerprint }) => [printOf(ada), printOf(bob)].includes(fingerprint));
    expect(listed.map(({ sessions }) => sessions)).toEqual([1, 1]);
    expect(await relay.json("worker", "keys", "revoke", "--yes", printOf(ada))).toMatchObject({ ended_sessions: 1 });
    expect(await gone.closed).toMatchObject({ code: "link_down" });
    expect(await stays.roundTrip()).toBeGreaterThan(0);
    expect(await connect(ada, host_key).catch((error: unknown) => error)).toMatchObject({ code: "authentication_failed" });
    const { next_host_key: next } = await relay.json<Listed>("worker", "keys", "rotate");
    const info = await fetch("http://worker/link", { unix: path.join(relay.home, "run", "worker-local.sock") } as RequestInit);
    const { next_host_key: line } = (await info.json()) as { next_host_key: string };
    expect(fingerprintOf(publicKeyFromLine(line))).toBe(next!.fingerprint);
    (await connect(bob, host_key)).session.close();
    await relay.ok("worker", "keys", "rotate", "--now", "--yes");
    const refused = await connect(bob, host_key).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "host_key_changed", data: { fingerprint: next!.fingerprint } });
    expect((refused as { hint: string }).hint).toContain("worker keys list");
    (await connect(bob, line)).session.close();
    expect((await list()).keys.find(({ fingerprint }) => fingerprint === printOf(bob))).toMatchObject({
      last_used_at: expect.any(String),
    });
    stays.close();
    await relay.ok("worker", "stop");
  });

  test("are never lost or torn by two that change them at once, or by one that is killed meanwhile", async () => {
    const keys = Array.from({ length: 6 }, () => makeKeyPair("desk"));
    await Promise.all(keys.map((key) => configure([key])));
    const prints = async (): Promise<string[]> => (await list()).keys.map(({ fingerprint }) => fingerprint);
    expect(await prints()).toEqual(expect.arrayContaining(keys.map(printOf)));
    const [killed, ...others] = keys;
    for (let ms = 150; ms < 450; ms += 60) {
      const child = relay.start(["worker", "keys", "rotate", "--now", "--yes"]);
      const other = relay.start(["worker", "keys", "revoke", "--yes", printOf(killed!)]);
      await Bun.sleep(ms);
      child.kill("SIGKILL");
      other.kill("SIGKILL");
      await Promise.all([child.exited, other.exited]);
      const left = await list();
      expect(left.host_key).toMatch(/^SHA256:/);
      expect(left.keys.map(({ fingerprint }) => fingerprint)).toEqual(expect.arrayContaining(others.map(printOf)));
    }
    await configure([killed!]);
    expect(await prints()).toEqual(expect.arrayContaining(keys.map(printOf)));
  });

  test("a list that is damaged lets nobody in, and says so", async () => {
    fs.writeFileSync(path.join(coreDir(), "link-clients.json"), "{}", { mode: 0o600 });
    const { code, stderr } = await relay.run(["worker", "keys", "list"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("[configuration_error]")]);
    fs.rmSync(path.join(coreDir(), "link-clients.json"));
  });
});
