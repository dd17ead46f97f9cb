import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import type { Artifact } from "../../src/domain/artifact.ts";
import type { Event } from "../../src/domain/event.ts";
import { TcpProxy } from "../rigs/proxy/tcp-proxy.ts";
import { makeKey, type Sshd, startSshd } from "../rigs/sshd.ts";
import { historyFaults } from "../roles/worker/harness.ts";
import { describeWith } from "../runner/components.ts";
import { Relay } from "../runner/relay.ts";
import { scaled, soakSettings } from "../runner/soak.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { Campaign } from "./campaign.ts";

const ROUNDS = 100;
const JOBS = 150;
const CALM = { delayMs: 0, bytesPerSecond: Number.POSITIVE_INFINITY, blackhole: false };
/** Exit codes of a command that came while there was no link, and said nothing else. */
const NO_LINK = [4, 5];

type Fault = "cut" | "reset" | "session killed" | "cut while connecting" | "blackholed" | "blackholed for long" | "delayed" | "throttled";
/** In the share in which they happen. */
const FAULTS: readonly [Fault, ...Fault[]] = [
  ...(["cut", "cut", "cut", "reset", "reset", "reset", "session killed", "session killed"] as const),
  ...(["cut while connecting", "cut while connecting", "blackholed", "blackholed", "delayed", "delayed", "throttled"] as const),
  "blackholed for long",
];

/** What a follower got, over however many tries before its first byte. */
interface Followed {
  readonly code: number;
  readonly bytes: Buffer;
  readonly stderr: string;
}

describeWith(["sshd", "ssh"], "a link over an sshd, its path cut again and again", () => {
  const files = temporaryDirectory();
  let sshd: Sshd;
  let proxy: TcpProxy;

  beforeAll(async () => {
    const key = makeKey(files.path);
    fs.copyFileSync(`${key}.pub`, path.join(files.path, "authorized_keys"));
    sshd = await startSshd({
      config: ["PermitRootLogin prohibit-password", `AuthorizedKeysFile ${path.join(files.path, "authorized_keys")}`],
    });
    proxy = await TcpProxy.start({ host: sshd.host, port: sshd.port });
    const config = [
      "Host login",
      "  HostName 127.0.0.1",
      `  Port ${proxy.port}`,
      `  User ${process.env["USER"] ?? "root"}`,
      `  IdentityFile ${key}`,
      "  IdentityAgent none",
      `  UserKnownHostsFile ${path.join(files.path, "known")}`,
      "  GlobalKnownHostsFile /dev/null",
    ];
    fs.writeFileSync(path.join(files.path, "known"), `[127.0.0.1]:${proxy.port} ${sshd.hostKey()}\n`);
    fs.writeFileSync(path.join(files.path, "config"), `${config.join("\n")}\n`, { mode: 0o600 });
  });
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]();
    await sshd[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  test("nothing is lost, doubled or altered, and whoever follows goes on from where it was", async () => {
    await using campaign = await new Campaign("link cuts", {
      kinds: ["plain", "plain", "failing", "bulk", "reporting", "leaving", "leaving", "retried", "canceled"],
      again: ["authorization_required"],
    }).init();
    await using desk = new Relay({ env: { CLIO_RELAY_SSH_CONFIG: path.join(files.path, "config") } });
    await desk.json("init");
    await desk.json("cluster", "add", "local", "--ssh-host", "login", "--core-dir", campaign.relay.home);
    campaign.users = desk;

    const { faults, submitted } = campaign;
    const rounds = scaled(ROUNDS, 6);
    const jobs = scaled(JOBS, 15);
    let round = 0;
    let over = false;

    const linkState = async (): Promise<string> => (await desk.json<{ links: { state: string }[] }>("link", "list")).links[0]!.state;
    const connect = (): Promise<boolean> =>
      eventually(async () => (await desk.run(["connect", "local", "--no-input"])).code === 0, {
        timeoutMs: 120_000,
        everyMs: 100,
        what: "the next link",
      });

    /** One that finds no link has said nothing yet, and is started again; one that has begun goes on by itself. */
    const follow = async (...args: string[]): Promise<Followed> =>
      eventually(
        async () => {
          const child = desk.start(args);
          const [bytes, stderr, code] = await Promise.all([child.stdout.bytes(), child.stderr.text(), child.exited]);
          return bytes.length === 0 && NO_LINK.includes(code) ? false : { code, bytes: Buffer.from(bytes), stderr };
        },
        { timeoutMs: 900_000, everyMs: 200, what: args.slice(0, 3).join(" ") },
      );

    const watches: { jobId: string; key: string; events: Promise<Followed>; log: Promise<Followed> }[] = [];
    const submitting = async (): Promise<void> => {
      for (let i = 0; i < jobs; i++) {
        await eventually(() => over || i * rounds <= round * jobs, { timeoutMs: 600_000, what: "the round of a job" });
        const before = submitted.length;
        await campaign.submit(1);
        if (submitted.length === before || i % 3 !== 0) continue;
        const { jobId, job } = submitted.at(-1)!;
        const events = follow("job", "watch", jobId, "--json");
        watches.push({ jobId, key: job.work.key, events, log: follow("job", "read-log", jobId, "--stream", "stdout", "--raw", "-f") });
      }
    };

    let contents = 0;
    const altered: string[] = [];
    /** Reads what jobs have left so far, all the time. */
    const reading = async (): Promise<void> => {
      while (!over) {
        const one = submitted.at(faults.below(submitted.length));
        const list = one === undefined ? null : await desk.run(["job", "list-artifacts", one.jobId, "--json"]);
        const { artifacts } = JSON.parse(list?.code === 0 ? list.stdout : '{"artifacts":[]}') as { artifacts: Artifact[] };
        const artifact = artifacts.toSorted((a, b) => b.size_bytes - a.size_bytes)[0];
        if (artifact === undefined || artifact.size_bytes === 0) {
          await Bun.sleep(50);
          continue;
        }
        const { code, bytes, stderr } = await follow("job", "read-artifact", artifact.artifact_id, "-o", "-");
        const digest = createHash("sha256").update(bytes).digest("hex");
        contents++;
        if (code !== 0 || digest !== artifact.sha256) altered.push(`${artifact.artifact_id}: ${code}, ${bytes.length} bytes, ${stderr}`);
      }
    };

    const happened = new Map<Fault, number>();
    const fault = async (kind: Fault): Promise<void> => {
      happened.set(kind, (happened.get(kind) ?? 0) + 1);
      if (kind === "cut") return proxy.cut();
      if (kind === "reset") return proxy.reset();
      if (kind === "session killed") return sshd.cut();
      if (kind === "cut while connecting") {
        proxy.cut();
        await eventually(async () => (await linkState()) !== "up", { what: "the end of the link" });
        const attempt = desk.run(["connect", "local", "--no-input"]);
        await Bun.sleep(faults.below(500));
        proxy.cut();
        await attempt;
        return;
      }
      if (kind === "delayed") proxy.weather.delayMs = faults.between(5, 400);
      else if (kind === "throttled") proxy.weather.bytesPerSecond = faults.between(100_000, 3_000_000);
      else proxy.weather.blackhole = true;
      if (kind === "blackholed for long") {
        await eventually(async () => !["up", "degraded"].includes(await linkState()), {
          timeoutMs: 90_000,
          what: "that the link is given up",
        });
        Object.assign(proxy.weather, CALM);
        return;
      }
      await Bun.sleep(faults.between(200, 3_000));
      Object.assign(proxy.weather, CALM);
    };

    await connect();
    const load = Promise.all([submitting(), reading()]);
    for (; round < rounds; round++) {
      await Bun.sleep(faults.below(800));
      await fault(faults.of(FAULTS));
      await connect();
    }
    over = true;
    await load;
    await campaign.ended();

    const wrong = [...altered];
    let outages = 0;
    for (const { jobId, key, events, log } of watches) {
      const [watched, followed] = await Promise.all([events, log]);
      outages += [watched, followed].filter(({ stderr }) => stderr.includes("connected again")).length;
      const all = watched.bytes
        .toString()
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Event);
      wrong.push(...historyFaults(all).map((one) => `${jobId} ${key}, as watched: ${one}`));
      const whole = await desk.bytes("job", "read-log", jobId, "--stream", "stdout", "--raw");
      if (!whole.equals(followed.bytes)) wrong.push(`${jobId} ${key}: followed ${followed.bytes.length} bytes of ${whole.length}`);
      if (followed.code !== 0 || ![0, 10].includes(watched.code))
        wrong.push(
          `${jobId} ${key}: watch ended with ${watched.code}, read-log with ${followed.code}: ${followed.stderr}${watched.stderr}`,
        );
    }
    const ledger = fs
      .readFileSync(path.join(desk.home, "state", "connections.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { outcome: string; requested_by: string });
    const open = ledger.filter(({ outcome }) => outcome === "open").length;
    const letIn = sshd.log.match(/^Accepted publickey /gm)?.length ?? 0;
    console.log(
      `seed ${soakSettings().seed}: ${rounds} rounds (${[...happened].map(([kind, times]) => `${times} ${kind}`).join(", ")}); ${submitted.length} jobs, ${watches.length} watched, ` +
        `${outages} followers went on after an outage, ${contents} contents read; ${ledger.length} dials, ${open} open, sshd saw ${sshd.connections()}, let in ${letIn}`,
    );
    expect(wrong).toEqual([]);
    // Every connection that came was written down before, and nobody but connect asked for one.
    expect(ledger.length).toBe(proxy.accepted);
    expect(sshd.connections()).toBeLessThanOrEqual(ledger.length);
    expect(letIn).toBeGreaterThanOrEqual(open);
    expect(new Set(ledger.map(({ requested_by }) => requested_by))).toEqual(new Set(["clio-relay connect local"]));
    expect(submitted.length).toBe(jobs);
    expect(await campaign.verify()).toEqual([]);
    expect(proxy.accepted).toBe(ledger.length);
  });
});
