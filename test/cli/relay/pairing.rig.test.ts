import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { EXIT } from "../../../src/domain/errors.ts";
import { writeFileAtomic } from "../../../src/lib/files/atomic-file.ts";
import { readCode, writeCode } from "../../../src/transport/pairing/code.ts";
import { fingerprintOf, publicKeyFromLine } from "../../../src/transport/session/keys.ts";
import { SessionServer } from "../../../src/transport/session/session-server.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { authority } from "../../transport/outbound/certificates.ts";
import { STRANGER } from "../../transport/session/peers.ts";
import { onTerminal } from "../on-terminal.ts";
import { TestRelayHost, TOKEN } from "../relay-desk.ts";
import { initialized, type Result, type SourceRelay } from "../source-relay.ts";
import { farLink } from "../ssh-desk.ts";
import { ImpostorRelayHost } from "./impostor-relay-host.ts";

interface Made {
  readonly code: string;
  readonly expires_at: string;
  readonly host_key: string;
}
interface Listed {
  readonly keys: {
    readonly fingerprint: string;
    readonly by: string;
    readonly expires_at: string | null;
    readonly sessions: number | null;
  }[];
}
interface Entry {
  readonly mode: string;
  readonly relay_host: string;
  readonly worker_key: string;
  readonly worker_id: string;
  readonly worker_cluster: string | null;
  readonly next_worker_key: string | null;
}

/** Every file below a directory, with its content. */
function* filesBelow(directory: string): Generator<readonly [name: string, content: Buffer]> {
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    const file = path.join(directory, entry.name);
    if (entry.isDirectory()) yield* filesBelow(file);
    else if (entry.isFile()) yield [file, fs.readFileSync(file)];
  }
}

/** What can be seen of every process: its arguments and its environment. */
function* processes(): Generator<Buffer> {
  for (const pid of fs.readdirSync("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    for (const name of ["cmdline", "environ"]) {
      try {
        yield fs.readFileSync(`/proc/${pid}/${name}`);
      } catch {
        // It ended meanwhile.
      }
    }
  }
}

/** Arguments of the commands that a hint names, as they are typed. */
const hintedCommands = (stderr: string): string[][] =>
  (/^hint: (.*)$/m.exec(stderr)?.[1] ?? "")
    .split(" && ")
    .map((command) => command.match(/'[^']*'|\S+/g)!.map((word) => word.replace(/^'|'$/g, "")))
    .map(([program, ...args]) => (program === "clio-relay" ? args : [`not ours: ${program}`]));

describe("pairing at a relay-host", () => {
  let host: TestRelayHost;
  let cluster: SourceRelay;
  const files = temporaryDirectory();
  const tokenFile = path.join(files.path, "token");
  const desks: SourceRelay[] = [];
  let url = "";

  beforeAll(async () => {
    fs.writeFileSync(tokenFile, `${TOKEN}\n`, { mode: 0o600 });
    host = await TestRelayHost.start();
    url = `ws://127.0.0.1:${host.port}`;
    cluster = await initialized({ CLIO_RELAY_HOST_TOKEN: TOKEN });
  });
  afterAll(async () => {
    for (const desk of desks) await desk[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
    await host[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  async function newDesk(): Promise<SourceRelay> {
    const desk = await initialized();
    desks.push(desk);
    return desk;
  }
  const newCode = (...args: string[]): Promise<Made> => cluster.json<Made>("worker", "pair", "--relay-host", url, ...args);
  const pair = (desk: SourceRelay, code: string, ...args: string[]): Promise<Result> =>
    desk.run(["cluster", "add", "--name", "far", "--pair", "--relay-token-file", tokenFile, ...args], { stdin: `${code}\n` });
  const listed = (): Promise<Listed> => cluster.json<Listed>("worker", "keys", "list");
  const reason = ({ stderr }: Result): string => /\[(\w+)\]/.exec(stderr)?.[1] ?? stderr;

  test("a code that is piped in lets the desktop in: jobs go over the link, by this desktop's name of the cluster, and revoking ends it", async () => {
    const desk = await newDesk();
    const made = await newCode("--key-ttl", "12h");
    expect(Date.parse(made.expires_at) - Date.now()).toBeGreaterThan(500_000);
    const seen: string[] = [];
    const secrets = secretsOf(made.code);
    const watching = watchProcesses(secrets, seen);
    const { code, stdout, stderr } = await pair(desk, made.code, "--json");
    watching.stop();
    expect([code, stderr]).toEqual([0, ""]);
    expect(watching.looks).toBeGreaterThan(0);
    const entry = JSON.parse(stdout) as Entry;
    expect(entry).toMatchObject({ mode: "relay", relay_host: url, worker_cluster: "local", next_worker_key: null });
    expect(await listed()).toMatchObject({ host_key: made.host_key, keys: [{ by: "pairing", expires_at: expect.any(String) }] });
    await eventually(async () => (await farLink(desk)).state === "up", { what: "a link that is up" });
    const job = await desk.ok("job", "submit", "--cluster", "far", "--wait", "--", "echo", "said far away");
    expect(await desk.ok("job", "read-log", "--cluster", "far", job)).toBe("said far away");
    expect(await desk.ok("queue", "list", "--cluster", "far", "--include-terminal")).toContain(job);
    // Of the code nothing is anywhere: on either side's disk, in any process's arguments or environment.
    expect(seen).toEqual([]);
    for (const directory of [desk.directory, cluster.directory])
      for (const [file, content] of filesBelow(directory))
        for (const secret of secrets) expect([file, content.includes(secret)]).toEqual([file, false]);
    for (const secret of secrets) expect(host.log.includes(String(secret))).toBe(false);
    // Over the link, too; the desktop's own key is refused from then on.
    const { keys } = await desk.json<Listed>("worker", "keys", "list", "--cluster", "far");
    expect(keys).toMatchObject([{ sessions: 1 }]);
    await cluster.ok("worker", "keys", "revoke", "--yes", keys[0]!.fingerprint);
    await eventually(async () => (await farLink(desk)).state !== "up", { what: "a link that ended" });
    const refused = await desk.run(["connect", "far", "--no-input"]);
    expect([refused.code, reason(refused)]).not.toEqual([0, ""]);
    expect(await listed()).toMatchObject({ keys: [] });
  });

  test("used, guessed, mistyped and replaced codes are refused by name, and five guesses end one", async () => {
    const [desk, other] = [await newDesk(), await newDesk()];
    const first = await newCode();
    expect(
      reason(
        await pair(
          desk,
          first.code.replace(/[0-9A-Z](?=@)/, (last) => (last === "0" ? "G" : "0")),
        ),
      ),
    ).toBe("pairing_code_invalid");
    expect(reason(await pair(desk, "letmein"))).toBe("pairing_code_invalid");
    expect((await desk.run(["cluster", "add", "--name", "far", "--pair", "--no-input"])).code).toBe(2);
    expect((await desk.run(["cluster", "add", "--name", "far", "--pair", "--ssh-host", "x"], { stdin: first.code })).code).toBe(2);
    const own = ["cluster", "add", "--name", "local", "--pair", "--relay-token-file", tokenFile];
    expect(reason(await desk.run(own, { stdin: first.code }))).toBe("state_conflict");
    const second = await newCode();
    expect(reason(await pair(desk, first.code))).toBe("pairing_refused");
    // Two at once: one is let in.
    const both = await Promise.all([pair(desk, second.code), pair(other, second.code)]);
    expect(both.map(({ code }) => code).toSorted()).toEqual([0, 4]);
    expect(reason(both.find(({ code }) => code !== 0)!)).toBe("pairing_refused");
    expect((await listed()).keys).toHaveLength(1);
    const third = await newCode();
    const guess = (): string => writeCode({ ...readCode(third.code), secret: Buffer.from(crypto.getRandomValues(new Uint8Array(16))) });
    for (let tried = 0; tried < 5; tried++) expect(reason(await pair(desk, guess()))).toBe("pairing_refused");
    const late = await pair(other, third.code);
    expect([reason(late), late.stderr]).toEqual(["pairing_refused", expect.stringContaining("too often")]);
    expect((await listed()).keys).toHaveLength(1);
  });

  test("a code is asked for on the terminal, and not shown while it is typed", async () => {
    const desk = await newDesk();
    const { code } = await newCode();
    const typed = onTerminal(desk, ["cluster", "add", "--name", "far", "--pair", "--relay-token-file", tokenFile]);
    await typed.shows("Pairing code: ");
    typed.press(`${code.toLowerCase().split("@")[0]!}@${code.split("@")[1]!}\r`);
    expect([await typed.end(), typed.shown()]).toEqual([0, expect.stringContaining("paired far")]);
    expect(typed.shown().toLowerCase()).not.toContain(code.slice(6, 10).toLowerCase());
    const refused = onTerminal(desk, ["cluster", "add", "--name", "far", "--pair", "--relay-token-file", tokenFile]);
    await refused.shows("Pairing code: ");
    refused.press("\x03");
    expect(await refused.end()).toBe(130);
  });

  test("a worker that is met elsewhere is moved by the command that the refusal says, as it is typed; without a token nothing is stopped", async () => {
    await using moved = await initialized();
    const kept = path.join(files.path, "kept token");
    fs.copyFileSync(tokenFile, kept);
    await moved.ok("worker", "pair", "--relay-host", url, "--relay-token-file", kept);
    const pid = async (): Promise<number> =>
      (await moved.json<{ workers: { process: { pid: number } }[] }>("worker", "status")).workers[0]!.process.pid;
    const before = await pid();
    const there = url.replace("127.0.0.1", "localhost");
    const refused = await moved.run(["worker", "pair", "--relay-host", there]);
    expect([refused.code, reason(refused)]).toEqual([EXIT.conflict, "state_conflict"]);
    fs.renameSync(kept, `${kept}.gone`);
    const without = await moved.run(["worker", "pair", "--relay-host", there]);
    expect([without.code, reason(without), await pid()]).toEqual([EXIT.usage, "configuration_error", before]);
    fs.renameSync(`${kept}.gone`, kept);
    const [stop = [], start = []] = hintedCommands(refused.stderr);
    await moved.ok(...stop);
    expect(await moved.ok(...start)).toEndWith(`@${there}`);
    expect(await pid()).not.toBe(before);
    // What is not let in at the relay-host is not met, and has no code.
    fs.writeFileSync(kept, "another-token-0123456789-abcdefghijklm\n");
    await moved.ok("worker", "stop");
    const unmet = await moved.run(["worker", "pair", "--key-ttl", "12h"]);
    expect([unmet.code, unmet.stdout, unmet.stderr]).toEqual([5, "", expect.stringContaining("relay_token_refused")]);
    const said = /and is not there \(relay_token_refused\): (.*)$/m.exec(await moved.ok("worker", "status"))?.[1] ?? "no words";
    expect(unmet.stderr).toContain(`: relay_token_refused (${said})`);
    // The command that it names has every option of the one before.
    expect(hintedCommands(unmet.stderr)[1]).toEqual([
      ...["worker", "pair", "--cluster", "local"],
      ...["--relay-host", there, "--relay-token-file", "FILE"],
      ...["--key-ttl", "43200s"],
    ]);
    // Another token counts for the relay-host where the worker is; without one there is nothing that it could be for.
    await moved.ok("worker", "stop");
    expect(await moved.ok("worker", "pair", "--relay-token-file", tokenFile)).toEndWith(`@${there}`);
    await using nowhere = await initialized();
    const needs = await nowhere.run(["worker", "pair", "--relay-token-file", tokenFile]);
    expect([needs.code, reason(needs)]).toEqual([EXIT.usage, "usage"]);
  });

  test("a code ends with its worker, and a pairing that failed leaves no entry", async () => {
    const desk = await newDesk();
    const made = await newCode();
    await cluster.ok("worker", "stop");
    await cluster.ok("worker", "start");
    expect(reason(await pair(desk, made.code))).toBe("pairing_refused");
    expect((await desk.json<{ clusters: { name: string }[] }>("cluster", "list")).clusters.map(({ name }) => name)).toEqual(["local"]);
  });

  test("a relay-host that answers in the worker's place with another key is refused, and learns no proof", async () => {
    const desk = await newDesk();
    const { code } = await newCode();
    const asked: string[] = [];
    const between = new SessionServer({
      hostKey: STRANGER.privateKey,
      allowedKeys: () => {
        asked.push("a key");
        return [];
      },
      pairing: {
        fate: () => (asked.push("a proof") > 0 ? "open" : null),
        failed: () => undefined,
        admit: () => Promise.resolve(true),
      },
      connect: () => Promise.reject(new Error("nobody is let in")),
    });
    await using impostor = await ImpostorRelayHost.start(TOKEN, (duplex) => between.serve(duplex));
    const refused = await pair(desk, writeCode({ ...readCode(code), relayHost: impostor.url }));
    expect([refused.code, reason(refused), impostor.joins, asked]).toEqual([4, "host_key_changed", 1, []]);
    expect(refused.stderr).toContain(fingerprintOf(publicKeyFromLine(STRANGER.publicLine)));
    // The code is as good as before.
    expect((await pair(desk, code)).code).toBe(0);
    await between.close();
  });

  test("a key whose time is over ends the link, and says so until it is let in anew", async () => {
    const desk = await newDesk();
    expect((await pair(desk, (await newCode("--key-ttl", "30d")).code)).code).toBe(0);
    await eventually(async () => (await farLink(desk)).state === "up", { what: "a link that is up" });
    const said = { agent_commands: true, env_setup: "true", env_setup_strict: true, scheduler_provider: "auto" };
    await desk.ok("cluster", "add", "far", "--agent-commands", "--env-setup", "true", "--env-setup-strict", "--scheduler-provider", "auto");
    const file = path.join(cluster.home, "core", "local", "link-clients.json");
    const list = JSON.parse(fs.readFileSync(file, "utf8")) as { clients: { expires_at: string | null }[] };
    for (const client of list.clients) if (client.expires_at !== null) client.expires_at = new Date().toISOString();
    writeFileAtomic(file, JSON.stringify(list));
    await eventually(async () => (await farLink(desk)).state !== "up", { what: "a link that ended" });
    const refused = await desk.run(["connect", "far", "--no-input"]);
    expect([refused.code, reason(refused)]).toEqual([4, "key_expired"]);
    // Whoever tries the link is told what every command is told.
    const tried = await desk.run(["relay-host", "test-http-transport", "--cluster", "far", "--json"]);
    expect([tried.code, JSON.parse(tried.stdout)]).toMatchObject([
      4,
      { failure: { layer: "link", reason: "key_expired", fix: expect.stringContaining("clio-relay cluster add --name far --pair") } },
    ]);
    expect((await pair(desk, (await newCode()).code)).code).toBe(0);
    // Who is met is another matter than what was said of the cluster.
    expect(await desk.json("cluster", "show", "far")).toMatchObject(said);
    await eventually(async () => (await farLink(desk)).state === "up", { what: "a link that is up" });
  });

  test("a host key that is announced is pinned; after the switch, which the running worker makes by itself, it is the one, and old pins are refused", async () => {
    const [desk, away] = [await newDesk(), await newDesk()];
    expect((await pair(away, (await newCode()).code)).code).toBe(0);
    await away.ok("desktop", "stop", "--yes");
    await cluster.ok("worker", "keys", "rotate");
    expect((await pair(desk, (await newCode()).code)).code).toBe(0);
    const entry = (): Promise<Entry> => desk.json<Entry>("cluster", "show", "far");
    const before = await entry();
    expect(before.next_worker_key).toMatch(/^ssh-ed25519 /);
    await eventually(async () => (await farLink(desk)).state === "up", { what: "a link that is up" });
    await cluster.ok("worker", "keys", "rotate", "--now", "--yes");
    await desk.ok("disconnect", "far");
    await desk.ok("connect", "far");
    await eventually(async () => (await entry()).worker_key === before.next_worker_key, {
      what: "the new key in the place of the old one",
    });
    expect(await entry()).toMatchObject({ next_worker_key: null, worker_id: before.worker_id });
    const detail = async (): Promise<string> =>
      (await away.json<{ links: { cluster: string; detail: string | null }[] }>("link", "list")).links.find(
        ({ cluster: one }) => one === "far",
      )?.detail ?? "";
    await eventually(async () => (await detail()).startsWith("worker_absent"), { what: "a room without its worker" });
    expect(await away.json<Entry>("cluster", "show", "far")).toMatchObject({ worker_key: before.worker_key });
    await desk.ok("job", "submit", "--cluster", "far", "--wait", "--", "true");
  });
});

describeWith(["openssl"], "pairing at a relay-host of an authority that nobody else knows", () => {
  test("each side is told who vouches for it; without that it is refused, and the way out is a command", async () => {
    using files = temporaryDirectory();
    const ca = authority(files.path);
    await using host = await TestRelayHost.start({ certificate: ca.issue("relay", "DNS:localhost") });
    await using cluster = await initialized();
    await using desk = await initialized();
    const url = `wss://localhost:${host.port}`;
    const pair = ["worker", "pair", "--relay-host", url, "--relay-token-file", host.tokenFile];
    const unmet = await cluster.run(pair);
    expect([unmet.code, unmet.stdout, unmet.stderr]).toEqual([5, "", expect.stringMatching(/certificate_refused.*--relay-ca-file FILE/s)]);
    const again = await cluster.run([...pair, "--relay-ca-file", ca.file]);
    const [stop = [], start = []] = hintedCommands(again.stderr);
    expect([again.code, hintedCommands(unmet.stderr)]).toEqual([
      EXIT.conflict,
      [stop, start.map((word) => (word === ca.file ? "FILE" : word))],
    ]);
    await cluster.ok(...stop);
    const code = await cluster.ok(...start);
    const add = ["cluster", "add", "--name", "far", "--pair", "--relay-token-file", host.tokenFile];
    const refused = await desk.run(add, { stdin: code });
    expect([refused.code, refused.stderr]).toEqual([EXIT.authorization, expect.stringContaining("--relay-ca-file")]);
    const paired = await desk.run([...add, "--relay-ca-file", ca.file, "--json"], { stdin: code });
    expect([paired.code, JSON.parse(paired.stdout)]).toMatchObject([0, { relay_host: url, relay_ca_file: ca.file }]);
    await eventually(async () => (await farLink(desk)).state === "up", { what: "a link that is up" });
    expect(await desk.ok("job", "submit", "--cluster", "far", "--wait", "--", "true")).toMatch(/^job_/);
    // A desktop shuts itself out: its link ends before the answer could come by it.
    const [own] = (await desk.json<Listed>("worker", "keys", "list", "--cluster", "far")).keys;
    expect(await desk.json("worker", "keys", "revoke", "--cluster", "far", "--yes", own!.fingerprint)).toMatchObject({
      revoked: { fingerprint: own!.fingerprint },
      ended_sessions: 1,
    });
    expect(await cluster.json<Listed>("worker", "keys", "list")).toMatchObject({ keys: [] });
  });
});

/** Forms in which a code's secret could lie somewhere. */
function secretsOf(code: string): (string | Buffer)[] {
  const groups = code.split("@")[0]!;
  const { secret } = readCode(code);
  return [groups, groups.replaceAll("-", "").slice(5), secret, secret.toString("hex"), secret.toString("base64").replace(/=+$/, "")];
}

/** Look at all processes, again and again. */
function watchProcesses(secrets: readonly (string | Buffer)[], seen: string[]) {
  const watching = { looks: 0, stop: () => clearInterval(timer) };
  const timer = setInterval(() => {
    watching.looks++;
    for (const content of processes())
      for (const secret of secrets) if (content.includes(secret)) seen.push(content.toString("utf8").slice(0, 200));
  }, 20);
  return watching;
}
