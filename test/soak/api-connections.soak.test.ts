import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { ListenerStatus } from "../../src/api/desktop/listener-views.ts";
import { MAIN, type SourceRelay, withWorker } from "../cli/source-relay.ts";
import { scaled } from "../runner/soak.ts";
import { eventually } from "../runner/wait.ts";

const MANY = scaled(10_000, 300);
/** With the token: as many whatever the scale is, which takes seconds. */
const IDLE = 10_000;
/** Descriptors that the daemon keeps for everything else, and two more of a connection that is asked something. */
const OTHER_DESCRIPTORS = 256 + 2;
/** As many descriptors as there may be: root may have more than it was given. */
const OPEN_FILES = 'ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -H -n)"; exec "$@"';
/** Of readers that do not read: each holds what the systems keep for it. */
const DEAF = scaled(500, 20);
const LOG_BYTES = 24 * 1024 * 1024;

let relay: SourceRelay;
let daemon: Bun.Subprocess;
let url: URL;
let token: string;
/** As many of IDLE as the machine's limit of descriptors leaves room for. */
let idle: number;

beforeAll(async () => {
  relay = await withWorker({ CLIO_RELAY_API_CONNECTIONS: String(IDLE + DEAF + 64) });
  await relay.ok("desktop", "stop");
  daemon = Bun.spawn(["sh", "-c", OPEN_FILES, "sh", process.execPath, MAIN, "desktop", "run"], {
    // As a command starts it.
    env: { ...relay.environment, BUN_CONFIG_MAX_HTTP_REQUESTS: "16384" },
    stdout: "ignore",
    stderr: "inherit",
  });
  await eventually(() => relay.ok("desktop", "status"));
  const status = await relay.json<ListenerStatus>("api", "start", "--port", "0");
  const [, openFiles] = /^Max open files\s+(\d+)/m.exec(fs.readFileSync(`/proc/${daemon.pid}/limits`, "utf8"))!;
  expect(status.connections_max).toBe(Math.min(IDLE + DEAF + 64, Number(openFiles) - OTHER_DESCRIPTORS));
  idle = Math.min(IDLE, status.connections_max - DEAF - 64);
  url = new URL(status.url!);
  token = fs.readFileSync(status.token_file, "utf8").trim();
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

const rss = (): number => Number(/^VmRSS:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${daemon.pid}/status`, "utf8"))![1]) / 1024;
const descriptors = (): number => fs.readdirSync(`/proc/${daemon.pid}/fd`).length;
const headers = () => ({ authorization: `Bearer ${token}` });

async function counted(): Promise<NonNullable<ListenerStatus["connections"]>> {
  const socket = path.join(relay.home, "run", "desktop.sock");
  const answer = await fetch("http://relay/listener", { unix: socket } as RequestInit);
  return ((await answer.json()) as ListenerStatus).connections!;
}

/** Whoever has the token is answered, with all that is there. */
async function served(): Promise<void> {
  for (let n = 0; n < 10; n++) {
    const answer = await fetch(new URL("/clusters/local/jobs", url), { headers: headers(), keepalive: false } as RequestInit);
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("jobs")]);
  }
}

interface Held extends AsyncDisposable {
  report(): Promise<{ open: number; statuses: Record<string, number>; failed: number }>;
}

/** Connections that another process holds. */
async function held(count: number, what: "kept" | "dripping" | "deaf", first: string): Promise<Held> {
  const script = path.join(import.meta.dir, "connections-child.ts");
  const child = Bun.spawn(["sh", "-c", OPEN_FILES, "sh", process.execPath, script, url.port, String(count), what], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = createInterface({ input: Readable.fromWeb(child.stdout as never) })[Symbol.asyncIterator]();
  const ask = async (line: string) => {
    child.stdin.write(`${line}\n`);
    await child.stdin.flush();
    return JSON.parse((await lines.next()).value as string);
  };
  await ask(first.replaceAll("\r\n", "\\r\\n"));
  return {
    report: () => ask("?"),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

const head = (target: string, ...more: string[]): string => [`GET ${target} HTTP/1.1`, `Host: ${url.host}`, ...more, "", ""].join("\r\n");
const bearer = () => `Authorization: Bearer ${token}`;

test(`${MANY} connections that say nothing, or a byte now and then, hold nobody up`, async () => {
  const [before, files] = [rss(), descriptors()];
  for (const [what, first] of [
    ["kept", ""],
    ["dripping", head("/status", "A: b")],
    ["kept", `POST /clusters/local/jobs HTTP/1.1\r\nHost: ${url.host}\r\nContent-Length: 100000\r\n\r\n{`],
  ] as const) {
    await using strangers = await held(MANY, what, first);
    await served();
    await eventually(async () => (await counted()).unproven <= 512);
    await eventually(() => descriptors() - files < 600);
    const { open } = await eventually(async () => {
      const report = await strangers.report();
      return report.open <= 512 && report;
    });
    expect(open).toBeLessThanOrEqual(512);
  }
  await eventually(async () => (await counted()).unproven === 0);
  console.log(`strangers, ${MANY} at a time: RSS ${before.toFixed(0)} -> ${rss().toFixed(0)} MiB`);
});

test("connections with the token that are open and idle are held, and given back", async () => {
  const [before, files] = [rss(), descriptors()];
  {
    await using kept = await held(idle, "kept", head("/status", bearer()));
    const { statuses } = await eventually(async () => {
      const report = await kept.report();
      return Object.values(report.statuses).reduce((sum, n) => sum + n, 0) === idle && report;
    });
    expect(statuses).toEqual({ 200: idle });
    expect((await kept.report()).open).toBe(idle);
    expect((await counted()).proven).toBeGreaterThanOrEqual(idle);
    await served();
    const each = ((rss() - before) * 1024) / idle;
    console.log(
      `${idle} idle: RSS ${before.toFixed(0)} -> ${rss().toFixed(0)} MiB (${each.toFixed(1)} KiB each), ${descriptors() - files} descriptors`,
    );
    expect(each).toBeLessThan(64);
  }
  await eventually(async () => (await counted()).proven <= 1);
  await eventually(() => descriptors() - files < 32);
  await served();
});

test(`${DEAF} readers that do not read hold what the systems keep for them, and no more`, async () => {
  const job = await relay.submit("--wait", "--", "head", "-c", String(LOG_BYTES), "/dev/zero");
  const before = rss();
  {
    await using deaf = await held(DEAF, "deaf", head(`/clusters/local/jobs/${job}/logs/stdout/content`, bearer()));
    await eventually(async () => (await counted()).proven >= DEAF);
    let last = -1;
    await eventually(
      () => {
        const now = rss();
        const stands = Math.abs(now - last) < 8;
        last = now;
        return stands;
      },
      { everyMs: 500 },
    );
    await served();
    expect((await deaf.report()).open).toBe(DEAF);
    console.log(
      `${DEAF} that do not read: RSS ${before.toFixed(0)} -> ${last.toFixed(0)} MiB (${(((last - before) * 1024) / DEAF).toFixed(0)} KiB each)`,
    );
    // All of it, for all of them, would be many times that.
    expect(last - before).toBeLessThan((DEAF * LOG_BYTES) / 2 ** 20 / 8);
  }
  await eventually(async () => (await counted()).proven <= 1);
  await served();
});
