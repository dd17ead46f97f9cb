import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { initialized, MAIN } from "../../cli/source-relay.ts";
import { eventually } from "../../runner/wait.ts";
import { BEARER, BLOCK, BLOCKS, fronts, HALF_BODY, HALF_HEAD, head, type Raw, standing, TOKEN } from "./fronts.ts";

const { behind, connect, ending } = fronts();

/** Time that goes on when the test says so. */
const stillClock = () => {
  const clock = { at: 0, now: () => clock.at, monotonic: () => clock.at };
  return clock;
};

describe("bounds", () => {
  test("a head without end is too large", async () => {
    const { front } = await behind();
    const raw = await connect(front.address.port, `GET /owner HTTP/1.1\r\nA: ${"x".repeat(17 * 1024)}`);
    await raw.closed;
    expect(raw.text()).toStartWith("HTTP/1.1 431 ");
    expect(raw.text()).toContain("request_head_too_large");
  });

  test("whoever does not come to the end of a head is told that its time is over", async () => {
    const { front } = await behind({ unprovenMs: 100 });
    const raw = await connect(front.address.port, HALF_HEAD);
    await raw.closed;
    expect(raw.text()).toStartWith("HTTP/1.1 408 ");
    expect(raw.text()).toContain("request_timeout");
  });

  test("wrong tokens are answered so many times a minute, and never keep the right one out", async () => {
    const why: string[] = [];
    const { front } = await behind({ bounds: { failuresPerMinute: 3 }, onRefused: (reason) => why.push(reason) });
    const statuses: number[] = [];
    const ask = (token: string) => fetch(`http://127.0.0.1:${front.address.port}/owner`, { headers: { authorization: `Bearer ${token}` } });
    for (let n = 0; n < 6; n++) {
      const answer = await ask("guess");
      statuses.push(answer.status);
      if (answer.status !== 429) continue;
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await answer.json()).toMatchObject({ reason: "listener_busy", retryable: true });
    }
    expect(statuses).toEqual([401, 401, 401, 429, 429, 429]);
    expect(why).toEqual([...new Array<string>(3).fill("authentication"), ...new Array<string>(3).fill("rate")]);
    expect(await (await ask(TOKEN)).text()).toBe("served");
  });

  test("as many connections as there may be: one more is refused, unless one has long been silent", async () => {
    const clock = stillClock();
    const { front } = await behind({ clock, bounds: { proven: 2, idleMs: 300 } });
    const [silent, busy] = [
      await connect(front.address.port, head("GET /stream HTTP/1.1", BEARER)),
      await connect(front.address.port, head("GET /blocks HTTP/1.1", BEARER)),
    ];
    for (const raw of [silent, busy]) await eventually(() => raw.text().includes("HTTP/1.1 200 "));
    const early = await connect(front.address.port, head("GET /owner HTTP/1.1", BEARER));
    await early.closed;
    expect(early.text()).toStartWith("HTTP/1.1 429 ");
    clock.at += 300;
    const late = await connect(front.address.port, head("GET /owner HTTP/1.1", BEARER));
    await eventually(() => late.text().includes("\r\n\r\n"));
    expect(late.text()).toStartWith("HTTP/1.1 200 ");
    await eventually(() => silent.isClosed() || busy.isClosed());
    expect(front.connections.proven).toBeLessThanOrEqual(2);
  });

  test("a reader that does not read ends some time later, and one that reads slowly does not", async () => {
    const clock = stillClock();
    const { front, given } = await behind({ clock, bounds: { stalledMs: 2_000 } });
    const [deaf, slow] = [await connect(front.address.port), await connect(front.address.port)];
    for (const raw of [deaf, slow]) {
      raw.socket.pause();
      raw.socket.write(head("GET /blocks HTTP/1.1", BEARER, "Connection: close"));
    }
    await standing(given);
    // Time goes on with what is read, up to a part of it; what the kernel may hold is little beside that.
    slow.socket.on("data", (chunk: Buffer) => {
      clock.at += (5_000 * chunk.length) / (BLOCKS * BLOCK.length);
      slow.socket.pause();
    });
    const reading = setInterval(() => clock.at < 3_000 && slow.socket.resume(), 10);
    ending.push(() => clearInterval(reading));
    await eventually(() => front.connections.proven === 2);
    await eventually(() => front.connections.proven < 2);
    expect([front.connections.proven, slow.isClosed()]).toEqual([1, false]);
    clearInterval(reading);
    slow.socket.removeAllListeners("data");
    const rest: Buffer[] = [];
    slow.socket.on("data", (chunk: Buffer) => rest.push(chunk));
    slow.socket.resume();
    await slow.closed;
    // The end of what comes in chunks.
    expect(Buffer.concat(rest).toString("latin1")).toEndWith("\r\n0\r\n\r\n");
  });

  test("many that come at once with the token are all let in, whoever is read first", async () => {
    const { front } = await behind({ bounds: { strangers: { all: 4, perAddress: 4, atOnce: 8 } } });
    const headers = { authorization: `Bearer ${TOKEN}` };
    const url = `http://127.0.0.1:${front.address.port}/owner`;
    const answers = await Promise.all(Array.from({ length: 24 }, () => fetch(url, { headers, keepalive: false } as RequestInit)));
    expect(answers.map(({ status }) => status)).toEqual(new Array<number>(24).fill(200));
    const strangers: Raw[] = [];
    for (let n = 0; n < 40; n++) strangers.push(await connect(front.address.port, HALF_HEAD));
    expect(front.connections.unproven).toBeLessThanOrEqual(32);
    await eventually(() => front.connections.unproven <= 4);
    await eventually(() => strangers.filter((raw) => raw.isClosed()).length === 36);
    expect(strangers.slice(-4).some((raw) => raw.isClosed())).toBe(false);
  });

  test("who has said that it was all still gets the answer, and is not kept for longer", async () => {
    const patient = await behind({ bounds: { halfClosedMs: 30_000 } });
    const asking = net.connect({ port: patient.front.address.port, host: "127.0.0.1", allowHalfOpen: true });
    ending.push(() => asking.destroy());
    const chunks: Buffer[] = [];
    asking.on("data", (chunk: Buffer) => chunks.push(chunk));
    asking.end(head("GET /owner HTTP/1.1", BEARER));
    await eventually(() => Buffer.concat(chunks).toString().endsWith("served"));
    const { front, aborted } = await behind({ bounds: { halfClosedMs: 100 } });
    const following = net.connect({ port: front.address.port, host: "127.0.0.1", allowHalfOpen: true });
    ending.push(() => following.destroy());
    following.on("data", () => undefined);
    following.on("error", () => undefined);
    following.end(head("GET /stream HTTP/1.1", BEARER));
    await eventually(() => aborted.includes("/stream"));
    await eventually(() => front.connections.proven === 0);
    expect(front.connections.proven).toBe(0);
  });

  test("who has had the answer and leaves is gone at once", async () => {
    const { front, aborted } = await behind();
    const raw = await connect(front.address.port, head("GET /owner HTTP/1.1", BEARER));
    await eventually(() => raw.text().endsWith("served"));
    const following = await connect(front.address.port, head("GET /stream HTTP/1.1", BEARER));
    await eventually(() => following.text().includes("first\n"));
    raw.socket.end();
    following.socket.end();
    await eventually(() => front.connections.proven === 0, { everyMs: 5 });
    await eventually(() => aborted.includes("/stream"));
    expect(aborted).toEqual(["/stream"]);
  });

  test("a server that is not there ends the connection, and nothing else", async () => {
    const { front, server } = await behind();
    await server.stop(0);
    const raw = await connect(front.address.port, head("GET /owner HTTP/1.1", BEARER));
    await raw.closed;
    expect(raw.text()).toBe("");
    await eventually(() => front.connections.proven === 0);
    expect(front.connections).toEqual({ unproven: 0, proven: 0 });
  });
});

test("400 connections that begin and never end do not take a daemon with 200 descriptors from its owner", async () => {
  await using relay = await initialized({ CLIO_RELAY_LOCAL_LISTEN: "tcp" });
  const daemon = Bun.spawn(["sh", "-c", 'ulimit -n 200; exec "$@"', "sh", process.execPath, MAIN, "desktop", "run"], {
    env: relay.environment,
    stdout: "ignore",
    stderr: "ignore",
  });
  ending.push(() => daemon.kill("SIGKILL"));
  const record = path.join(relay.home, "run", "desktop.json");
  const port = await eventually(() => {
    const { tcp } = JSON.parse(fs.readFileSync(record, "utf8")) as { tcp: { url: string } };
    return Number(new URL(tcp.url).port);
  });
  const strangers: Raw[] = [];
  for (let n = 0; n < 400; n++) strangers.push(await connect(port, n % 2 === 0 ? HALF_HEAD : HALF_BODY));
  expect(await relay.json<{ clusters: unknown[] }>("cluster", "list")).toMatchObject({ clusters: [{ name: "local" }] });
  expect(await relay.json<{ process: { pid: number } }>("desktop", "status")).toMatchObject({ process: { pid: daemon.pid } });
  const open = (): number => strangers.filter((raw) => !raw.isClosed()).length;
  await eventually(() => open() <= 64 && fs.readdirSync(`/proc/${daemon.pid}/fd`).length < 150, { what: "connections that are ended" });
  expect(open()).toBeLessThanOrEqual(64);
});
