import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { requireComponent } from "../../runner/components.ts";
import { eventually } from "../../runner/wait.ts";
import { bytesOf, newSigner, Place, SCHEMES } from "./place.ts";

const HERE = requireComponent("openssl");

let place: Place;
beforeAll(() => {
  if (!HERE) return;
  place = new Place();
});
afterAll(() => place?.close());

describe.skipIf(!HERE)("a meeting", () => {
  test.each(SCHEMES.map((scheme) => [scheme]))("over %s carries bytes both ways, and an end", async (scheme) => {
    const { signer, streams, registration, seen } = await place.worker(scheme);
    const me = newSigner();
    const desktop = await place.join(scheme, signer.key, { signer: me });
    const worker = await eventually(() => streams[0]);
    expect(seen[0]!.key).toEqual(me.key);
    expect(seen[0]!.address).toBe("127.0.0.1");

    const there = randomBytes(700_000);
    const back = randomBytes(300_000);
    desktop.write(there);
    worker.write(back);
    const [gotThere, gotBack] = await Promise.all([bytesOf(worker, there.length), bytesOf(desktop, back.length)]);
    expect(gotThere.equals(there)).toBe(true);
    expect(gotBack.equals(back)).toBe(true);

    desktop.end("the end");
    expect((await bytesOf(worker)).toString()).toBe("the end");
    registration.close();
    expect(await registration.closed).toBeNull();
  });

  test("many desktops of one room, over other carriers than the worker's", async () => {
    const { signer, streams, registration } = await place.worker("tls");
    const desktops = await Promise.all(SCHEMES.flatMap((scheme) => [place.join(scheme, signer.key), place.join(scheme, signer.key)]));
    await eventually(() => streams.length === desktops.length);
    for (const [i, desktop] of desktops.entries()) desktop.write(`desktop ${i}`);
    const heard = await Promise.all(streams.map((stream) => bytesOf(stream, 9)));
    expect(heard.map(String).sort()).toEqual(desktops.map((_, i) => `desktop ${i}`).sort());
    for (const desktop of desktops) desktop.destroy();
    await eventually(() => place.relay.gauges().joins === 0);
    registration.close();
    await eventually(() => place.relay.gauges().workers === 0);
  });

  test("a connection that breaks is no end for the other side", async () => {
    const { signer, streams, registration } = await place.worker("tcp");
    const desktop = await place.join("tcp", signer.key);
    const worker = await eventually(() => streams[0]);
    const failed = new Promise<string>((resolve) => {
      worker.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      worker.on("end", () => resolve("an end"));
      worker.resume();
    });
    (desktop as Socket).resetAndDestroy();
    expect(await failed).toBe("ECONNRESET");
    registration.close();
  });

  test("a desktop waits for its worker, and is told what for", async () => {
    const signer = newSigner();
    const waited: string[] = [];
    const joined = place.join("ws", signer.key, { waitMs: 30_000, onWaiting: (what) => waited.push(what) });
    await eventually(() => waited[0] === "worker");
    const { registration, streams } = await place.worker("wss", signer);
    const desktop = await joined;
    expect(waited).toEqual(["worker", "admission"]);
    desktop.write("there you are");
    expect((await bytesOf(await eventually(() => streams[0]), 13)).toString()).toBe("there you are");
    desktop.destroy();
    registration.close();
  });

  test("without a worker, or not let in, a desktop is told so", async () => {
    await expect(place.join("tcp", newSigner().key)).rejects.toMatchObject({ code: "worker_absent", data: { close: "absent" } });
    const waiting = place.join("tcp", newSigner().key, { waitMs: 50 });
    await expect(waiting).rejects.toMatchObject({ code: "worker_absent" });
    const signer = newSigner();
    const registration = await place.register("tcp", signer, {
      onJoining: ({ refuse }) => refuse("key"),
    });
    await expect(place.join("ws", signer.key)).rejects.toMatchObject({
      code: "join_refused",
      data: { close: "refused", retry_ms: 60_000 },
    });
    registration.close();
    await registration.closed;
  });
});

test.skipIf(!HERE)("health and metrics", async () => {
  const at = `http://127.0.0.1:${place.urls.ws.port}`;
  const health = await fetch(`${at}/healthz`);
  expect([health.status, await health.text()]).toEqual([200, "ok\n"]);
  expect((await fetch(`${at}/metrics`)).status).toBe(401);
  expect((await fetch(`${at}/metrics`, { headers: { authorization: "Bearer wrong" } })).status).toBe(401);
  expect((await fetch(`${at}/nowhere`)).status).toBe(404);
  expect((await fetch(`${at}/healthz`, { method: "POST", body: "x" })).status).toBe(405);
  expect((await fetch(`${at}/meet`)).status).toBe(426);
  const text = await place.metrics();
  expect(text).toContain("# TYPE clio_relay_host_joins gauge");
  expect(text).toMatch(/^clio_relay_host_openings_total\{role="register"\} \d+$/m);
  expect(text).toMatch(/^process_resident_memory_bytes \d{7,}$/m);
});
