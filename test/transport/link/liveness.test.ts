import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import net from "node:net";
import type { RelayError } from "../../../src/domain/errors.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { FakeTime } from "./fake-time.ts";
import { bodyOf, INFO, LinkRig } from "./link-rig.ts";

const directories = temporaryDirectories();
const get = (target: string, method = "GET") => ({ method, target, headers: new Headers(), body: null });

/** A rig whose link lives in a time of the test's own. */
async function inFakeTime(): Promise<{ rig: LinkRig; time: FakeTime; pass: (ms: number) => Promise<void> }> {
  const time = new FakeTime();
  const rig = await LinkRig.start(directories(), { clock: time, timers: time });
  return { rig, time, pass: (ms) => time.pass(ms) };
}

describe("liveness", () => {
  test("is asked for with the version, so that one that does not fit any more is noticed", async () => {
    const { rig, pass } = await inFakeTime();
    await using _ = rig;
    await rig.connect();
    rig.info = { ...INFO, protocol: 0, oldest_protocol: 0 };
    await pass(16_000);
    expect(rig.link.snapshot().worker).toMatchObject({ protocol: 0 });
    await expect(rig.link.request(get("/x", "POST"))).rejects.toMatchObject({ code: "version_mismatch" });
  });

  test("is asked for after 15 s without an answer, and an answer to anything will do", async () => {
    const { rig, pass } = await inFakeTime();
    await using _ = rig;
    await rig.connect();
    const before = rig.requests;
    await pass(14_000);
    expect(rig.requests).toBe(before);
    await rig.link.request(get("/x"));
    await pass(14_000);
    expect(rig.requests).toBe(before + 1);
    await pass(2_000);
    expect(rig.requests).toBe(before + 2);
    await pass(60_000);
    expect(rig.requests).toBe(before + 6);
    expect(rig.states).toEqual(["connecting", "up"]);
  });

  test("what is new of the worker comes over a link that is never quiet, too", async () => {
    const { rig, pass } = await inFakeTime();
    await using _ = rig;
    await rig.connect();
    rig.info = { ...INFO, protocol: 0, oldest_protocol: 0 };
    for (let seconds = 0; seconds < 60; seconds += 10) {
      expect(rig.link.snapshot().worker).toMatchObject({ protocol: INFO.protocol });
      await rig.link.request(get("/x"));
      await pass(10_000);
    }
    await pass(2_000);
    expect(rig.link.snapshot().worker).toMatchObject({ protocol: 0 });
  });

  test("a path that swallows everything: degraded after 10 s, dropped after 30 s; requests that ride it fail", async () => {
    const { rig, pass } = await inFakeTime();
    await using _ = rig;
    await rig.connect();
    rig.proxy.weather.blackhole = true;
    const riding = rig.link.request(get("/x")).catch((error: unknown) => error);
    await pass(15_000 + 10_000);
    expect(rig.states).toEqual(["connecting", "up", "degraded"]);
    await pass(19_000);
    expect(rig.link.snapshot().state).toBe("degraded");
    await pass(2_000);
    expect(rig.states).toEqual(["connecting", "up", "degraded", "dropped", "authorization_required"]);
    expect(await riding).toMatchObject({ code: "link_down" });
  });

  test("an answer that stops coming while the worker answers others is given up; one that may be quiet is not", async () => {
    const heads: Readonly<Record<string, string>> = {
      known: "content-length: 100000\r\n\r\n",
      events: "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n1\r\n",
      log: "transfer-encoding: chunked\r\n\r\n1\r\n",
      large: "content-length: 10000000\r\n\r\n",
    };
    const info = JSON.stringify(INFO);
    // A worker that says no more of an answer than its beginning.
    const server = net.createServer((socket) => {
      socket.on("error", () => undefined);
      socket.on("data", (data) => {
        const kind = /^GET \/(\w+)/.exec(String(data))![1]!;
        if (kind === "link") socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${info.length}\r\n\r\n${info}`);
        else socket.write(`HTTP/1.1 200 OK\r\n${heads[kind]}`);
        socket.write(kind === "large" ? Buffer.alloc(10_000_000) : kind === "link" ? "" : "x");
      });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as net.AddressInfo;
    const time = new FakeTime();
    await using rig = await LinkRig.start(directories(), { clock: time, timers: time });
    await rig.link.connect(
      async (signal) => ({ ...(await rig.bringUp(signal)), open: () => Promise.resolve(net.connect(port, "127.0.0.1")) }),
      { cluster: "far" },
    );
    const read = (target: string) =>
      rig.link
        .request(get(target))
        .then(bodyOf)
        .catch((error: unknown) => error);
    const [known, events] = [read("/known"), read("/events")];
    const unread = await rig.link.request(get("/large"));
    const reader = ((await rig.link.request(get("/log"))).body as ReadableStream<Uint8Array>).getReader();
    await time.pass(75_000);
    for (const outcome of [known, events]) expect(await outcome).toMatchObject({ code: "link_down" });
    expect(rig.states).toEqual(["connecting", "up"]);
    // A log may be quiet for as long as its job is, and what nobody reads cannot come.
    expect(String(Buffer.from((await reader.read()).value!))).toBe("x");
    const quiet = reader.read().then(() => "ended");
    await time.pass(75_000);
    expect(await Promise.race([quiet, Bun.sleep(50).then(() => "quiet")])).toBe("quiet");
    expect((await bodyOf(unread)).length).toBe(10_000_000);
    await reader.cancel();
    server.close();
  });

  test("a path that comes back is up again, without a new connection", async () => {
    const { rig, pass } = await inFakeTime();
    await using _ = rig;
    await rig.connect();
    rig.proxy.weather.blackhole = true;
    await pass(26_000);
    expect(rig.link.snapshot().state).toBe("degraded");
    rig.proxy.weather.blackhole = false;
    await eventually(() => rig.link.snapshot().state === "up");
    await pass(60_000);
    expect(rig.states).toEqual(["connecting", "up", "degraded", "up"]);
    expect(rig.proxy.accepted).toBe(1);
  });

  test("a worker that hangs costs no connection", async () => {
    const { rig, pass } = await inFakeTime();
    await using _ = rig;
    await rig.connect();
    rig.hangs = true;
    await pass(120_000);
    expect(rig.states).toEqual(["connecting", "up", "degraded"]);
    rig.hangs = false;
    rig.workerGone = true;
    // The channel of the ping that hangs goes with the worker that is started anew.
    rig.workerGone = false;
    await rig.link.request(get("/x"));
    expect(rig.link.snapshot().state).toBe("up");
    expect(rig.proxy.accepted).toBe(1);
  });

  test("a worker that hangs fails what waits for an answer within 30 s, and not what may be quiet; nor is it brought up to", async () => {
    const time = new FakeTime();
    const sse = { headers: { "content-type": "text/event-stream" } };
    const fetch = (request: Request): Response | Promise<Response> =>
      request.url.endsWith("/events")
        ? new Response(new ReadableStream({ start: (c) => c.enqueue("x") }), sse)
        : new Promise(() => undefined);
    await using rig = await LinkRig.start(directories(), { clock: time, timers: time }, fetch);
    await rig.connect();
    const events = ((await rig.link.request(get("/events"))).body as ReadableStream<Uint8Array>).getReader();
    await events.read();
    const quiet = rig.link.request(get("/quiet")).catch((error: unknown) => error);
    await time.pass(40_000);
    expect(await Promise.race([quiet, Bun.sleep(20).then(() => "waits")])).toBe("waits");
    rig.hangs = true;
    const outcomes = [quiet, ...["GET", "POST"].map((method) => rig.link.request(get("/x", method)).catch((error: unknown) => error))];
    await time.pass(30_000);
    const hangs = async (outcome: Promise<unknown>) => {
      const error = (await Promise.race([outcome, Bun.sleep(10_000)])) as RelayError | undefined;
      return error?.code === "link_down" && error.hint?.includes("worker stop --kill --cluster far");
    };
    for (const outcome of outcomes) expect(await hangs(outcome)).toBe(true);
    const later = rig.link.request(get("/later")).catch((error: unknown) => error);
    await time.pass(15_000);
    expect(await hangs(later)).toBe(true);
    expect(rig.states).toEqual(["connecting", "up", "degraded"]);
    expect(await Promise.race([events.read(), Bun.sleep(50).then(() => "quiet")])).toBe("quiet");
    await rig.link.disconnect();
    const asked = rig.requests;
    const again = rig.connect().catch((error: unknown) => error);
    await eventually(() => rig.requests > asked);
    await time.pass(21_000);
    expect(await hangs(again)).toBe(true);
    expect(rig.link.snapshot().state).toBe("down");
  });

  test("a bring-up ends with whoever wanted it, also where it hears nothing of that", async () => {
    const { rig } = await inFakeTime();
    await using _ = rig;
    const wanted = new AbortController();
    const never = rig.link.connect(() => new Promise(() => undefined), { cluster: "far" }, wanted.signal).catch((error: unknown) => error);
    const waiting = rig.link.request(get("/x")).catch((error: unknown) => error);
    wanted.abort(new Error("gone away"));
    expect(String(await never)).toContain("gone away");
    expect(await waiting).toMatchObject({ code: "link_down" });
    expect(rig.link.snapshot().state).toBe("down");
    const other = rig.link.connect(() => new Promise(() => undefined), { cluster: "far" }).catch((error: unknown) => error);
    await rig.link.disconnect();
    expect(await other).toMatchObject({ code: "link_down" });
  });

  test("a machine that slept asks at once, whichever clock went on meanwhile", async () => {
    for (const monotonicToo of [false, true]) {
      const { rig, time, pass } = await inFakeTime();
      await using _ = rig;
      await rig.connect();
      await pass(3_000);
      const before = rig.requests;
      await time.sleep(3_600_000, monotonicToo);
      await eventually(() => rig.requests === before + 1);
      expect(rig.states).toEqual(["connecting", "up"]);
      // Asleep with a ping on the way, on a path that is gone: the sleep is not held against it, but the silence afterwards is.
      rig.proxy.weather.blackhole = true;
      await pass(16_000);
      await time.sleep(3_600_000, monotonicToo);
      expect(rig.link.snapshot().state).toBe("up");
      await pass(10_000);
      expect(rig.link.snapshot().state).toBe("degraded");
      await pass(22_000);
      expect(rig.link.snapshot().state).toBe("authorization_required");
    }
  });
});
