import { describe, expect, test } from "bun:test";
import { RelayError } from "../../../src/domain/errors.ts";
import type { BringUp, LinkTransport } from "../../../src/transport/link-transport.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { bodyOf, INFO, LinkRig } from "./link-rig.ts";

const directories = temporaryDirectories();
const get = (target: string, method = "GET") => ({ method, target, headers: new Headers(), body: null });

describe("a link", () => {
  test("is down, is brought up, carries requests, and is down again", async () => {
    await using rig = await LinkRig.start(directories(), {}, (request) =>
      Response.json({
        client: request.headers.get("clio-relay-client"),
        token: request.headers.get("authorization"),
        path: new URL(request.url).pathname,
      }),
    );
    await expect(rig.link.request(get("/x"))).rejects.toMatchObject({ code: "link_down", hint: "clio-relay connect far" });
    await rig.connect();
    const request = { ...get("/x"), headers: new Headers({ authorization: "Bearer of-the-desktop", connection: "x-hop", "x-hop": "1" }) };
    expect(JSON.parse(String(await bodyOf(await rig.link.request(request))))).toEqual({
      client: "1.0.0; protocol=1; cluster=far",
      token: null,
      path: "/x",
    });
    expect(rig.link.snapshot()).toMatchObject({ state: "up", worker: INFO, reason: null });
    expect(rig.link.snapshot().round_trip_ms).toBeGreaterThan(0);
    expect(rig.link.snapshot().bytes_in).toBeGreaterThan(500);
    await rig.connect();
    expect(rig.proxy.accepted).toBe(1);
    await rig.link.disconnect();
    expect(rig.states).toEqual(["connecting", "up", "down"]);
    await expect(rig.link.request(get("/x"))).rejects.toMatchObject({ code: "link_down" });
    await rig.connect();
    expect(rig.link.snapshot().state).toBe("up");
  });

  test("that is lost needs a person, and says so with the command; nobody dials by himself", async () => {
    await using rig = await LinkRig.start(directories());
    await rig.connect();
    rig.proxy.cut();
    await eventually(() => rig.link.snapshot().state === "authorization_required");
    expect(rig.states).toEqual(["connecting", "up", "dropped", "authorization_required"]);
    expect(rig.link.snapshot().reason).toMatchObject({ code: "link_down" });
    await expect(rig.link.request(get("/x"))).rejects.toMatchObject({ code: "authorization_required", hint: "clio-relay connect far" });
    expect(rig.proxy.accepted).toBe(1);
    await rig.connect();
    expect(String(await bodyOf(await rig.link.request(get("/x"))))).toBe("hello");
    await rig.link.disconnect();
    expect(rig.link.snapshot().state).toBe("down");
  });

  test("goes back to where it was when a bring-up fails, and tells why", async () => {
    await using rig = await LinkRig.start(directories());
    const changed = new RelayError("host_key_changed", "no");
    await expect(rig.link.connect(() => Promise.reject(changed), { cluster: "far" })).rejects.toBe(changed);
    expect(rig.link.snapshot()).toMatchObject({ state: "down", reason: changed });
    await expect(rig.link.request(get("/x"))).rejects.toMatchObject({ code: "link_down", message: "no" });
    // Something was put right meanwhile, for all that is known.
    await rig.link.lookAgain(new AbortController().signal);
    await expect(rig.link.request(get("/x"))).rejects.toMatchObject({ code: "link_down", message: "there is no link to far" });
    const prompt = new RelayError("authorization_required", "nobody there");
    await expect(rig.link.connect(() => Promise.reject(prompt), { cluster: "far" })).rejects.toBe(prompt);
    await rig.link.lookAgain(new AbortController().signal);
    expect(rig.link.snapshot()).toMatchObject({ state: "authorization_required", reason: prompt });
    await expect(rig.link.connect(() => Promise.reject(changed), { cluster: "far" })).rejects.toBe(changed);
    expect(rig.link.snapshot().state).toBe("authorization_required");
  });

  test("whose bring-up fails behind a session that is kept for others leaves that, and closes one of its own", async () => {
    await using rig = await LinkRig.start(directories());
    const other = { cluster: "other" };
    for (const [held, ends] of [
      [true, false],
      [false, true],
    ] as const) {
      const made: LinkTransport[] = [];
      const bringUp: BringUp = async (signal) => {
        made.push({ ...(await rig.bringUp(signal)), held });
        return made[0]!;
      };
      await expect(rig.link.connect(bringUp, other)).rejects.toMatchObject({ code: "link_bringup_failed" });
      const { session } = made[0]!;
      const over = await Promise.race([session.closed.then(() => true), session.roundTrip().then(() => false)]).catch(() => true);
      expect([held, over]).toEqual([held, ends]);
      session.close();
    }
  });

  test("that is being brought up lets requests wait, each for as long as it wants to", async () => {
    await using rig = await LinkRig.start(directories());
    const { promise: person, resolve: answer } = Promise.withResolvers<void>();
    const connecting = rig.link.connect(
      async (signal) => {
        await person;
        return rig.bringUp(signal);
      },
      { cluster: "far" },
    );
    const joined = rig.connect();
    const patient = rig.link.request(get("/x"));
    const impatient = rig.link.request(get("/x"), { signal: AbortSignal.timeout(20) });
    await expect(impatient).rejects.toMatchObject({ name: "TimeoutError" });
    answer();
    await Promise.all([connecting, joined]);
    expect(String(await bodyOf(await patient))).toBe("hello");
    expect(rig.proxy.accepted).toBe(1);
  });

  test("that is disconnected while it is brought up gives the bring-up up, and those who waited fail", async () => {
    await using rig = await LinkRig.start(directories());
    let given: AbortSignal | undefined;
    const connecting = rig.link.connect(
      (signal) => {
        given = signal;
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
      { cluster: "far" },
    );
    const failed = connecting.catch((error: unknown) => error);
    const waiting = rig.link.request(get("/x")).catch((error: unknown) => error);
    await rig.link.disconnect();
    for (const failure of [failed, waiting]) expect(await failure).toMatchObject({ code: "link_down" });
    expect(given?.aborted).toBe(true);
    expect(rig.link.snapshot().state).toBe("down");
  });

  const GONE = new RelayError("worker_not_running", "no worker", {}, "clio-relay worker start --cluster far");

  /** A link whose connection is held until `lost`, and that is brought up over it again by `ways.bringUp`. */
  const overHeld = async (patienceMs = 60_000) => {
    const lost = new AbortController();
    const ways: { bringUp: BringUp } = { bringUp: () => Promise.reject(GONE) };
    const expected = () => ({ cluster: "far" });
    const rig = await LinkRig.start(directories(), {
      regain: () => ({ bringUp: (signal) => ways.bringUp(signal), expected, until: lost.signal, patienceMs, report: () => undefined }),
    });
    await rig.connect();
    rig.proxy.cut();
    await eventually(() => rig.link.snapshot().state === "connecting");
    return { rig, ways, lost };
  };

  test("that can be had again without anybody is being brought up until it is there, and requests wait for it", async () => {
    const { rig, ways } = await overHeld();
    await using _ = rig;
    const impatient = rig.link.request(get("/x"), { signal: AbortSignal.timeout(20) });
    await expect(impatient).rejects.toMatchObject({ name: "TimeoutError" });
    const waiting = rig.link.request(get("/x"));
    ways.bringUp = rig.bringUp;
    expect(String(await bodyOf(await waiting))).toBe("hello");
    expect(rig.states).toEqual(["connecting", "up", "dropped", "connecting", "up"]);
    // What is lost again is had again.
    rig.proxy.cut();
    await eventually(() => rig.states.length === 8);
    expect(rig.states.slice(5)).toEqual(["dropped", "connecting", "up"]);
  });

  test("that does not come back soon fails what waits for it with the reason, and goes on trying", async () => {
    const { rig, ways } = await overHeld(300);
    await using _ = rig;
    await expect(rig.link.request(get("/x"))).rejects.toBe(GONE);
    expect(rig.link.snapshot()).toMatchObject({ state: "connecting", reason: GONE });
    // Somebody's own bring-up is his own.
    const changed = new RelayError("host_key_changed", "no");
    await expect(rig.link.connect(() => Promise.reject(changed), { cluster: "far" })).rejects.toBe(changed);
    expect(rig.link.snapshot()).toMatchObject({ state: "connecting" });
    ways.bringUp = rig.bringUp;
    expect(await eventually(async () => String(await bodyOf(await rig.link.request(get("/x")))))).toBe("hello");
  });

  test("needs a person when what it could be had over is lost, too", async () => {
    const { rig, lost } = await overHeld();
    await using _ = rig;
    const waiting = rig.link.request(get("/x")).catch((error: unknown) => error);
    const why = new RelayError("link_down", "the session ended");
    lost.abort(why);
    expect(await waiting).toMatchObject({ code: "authorization_required" });
    expect(rig.link.snapshot()).toMatchObject({ state: "authorization_required", reason: why });
    await rig.connect();
    expect(String(await bodyOf(await rig.link.request(get("/x"))))).toBe("hello");
  });

  test("that is disconnected while it comes back stays down", async () => {
    const { rig } = await overHeld();
    await using _ = rig;
    const waiting = rig.link.request(get("/x")).catch((error: unknown) => error);
    await rig.link.disconnect();
    expect(await waiting).toMatchObject({ code: "link_down" });
    expect(rig.link.snapshot().state).toBe("down");
  });

  test("leads to the worker that is expected, or not at all", async () => {
    await using rig = await LinkRig.start(directories());
    for (const expected of [{ cluster: "other" }, { cluster: "far", worker_id: "worker_2" }]) {
      await expect(rig.link.connect(rig.bringUp, expected)).rejects.toMatchObject({ code: "link_bringup_failed" });
      expect(rig.link.snapshot().state).toBe("down");
    }
    for (const info of [{ ...INFO, protocol: "one" }, "text", { ...INFO, host: null }]) {
      rig.info = info;
      await expect(rig.connect()).rejects.toMatchObject({ code: "answer_malformed" });
    }
    await eventually(() => rig.proxy.open === 0);
    rig.info = { ...INFO, something: "of a later version" };
    await rig.link.connect(rig.bringUp, { cluster: "far", worker_id: "worker_1" });
  });

  test("to a worker of another protocol takes what changes nothing, and says which side to upgrade for the rest", async () => {
    for (const [info, outdated] of [
      [{ ...INFO, protocol: 0, oldest_protocol: 0 }, "worker"],
      [null, "worker"],
      [{ ...INFO, protocol: 9, oldest_protocol: 7 }, "desktop"],
    ] as const) {
      await using rig = await LinkRig.start(directories());
      rig.info = info;
      await rig.connect();
      expect(String(await bodyOf(await rig.link.request(get("/x"))))).toBe("hello");
      await expect(rig.link.request(get("/x", "POST"))).rejects.toMatchObject({ code: "version_mismatch", data: { outdated } });
      // Upgraded under the link.
      rig.info = INFO;
      expect((await rig.link.request(get("/x", "POST"))).status).toBe(200);
    }
    await using rig = await LinkRig.start(directories());
    rig.info = { ...INFO, protocol: 9, oldest_protocol: 1 };
    await rig.connect();
    expect((await rig.link.request(get("/x", "POST"))).status).toBe(200);
  });

  test("keeps the connection when the worker is gone, and goes on when it is back", async () => {
    await using rig = await LinkRig.start(directories());
    await rig.connect();
    rig.workerGone = true;
    // One request may still find a channel that was kept.
    await rig.link.request(get("/x"));
    const held = Array.from({ length: 4 }, () => rig.link.request(get("/x")).catch((error: unknown) => error));
    const refused = (await Promise.all(held)).filter((outcome) => outcome instanceof RelayError);
    expect(refused.length).toBeGreaterThan(0);
    for (const error of refused) expect(error).toMatchObject({ code: "worker_not_running" });
    expect(rig.link.snapshot().state).toBe("up");
    rig.workerGone = false;
    expect(String(await bodyOf(await rig.link.request(get("/x"))))).toBe("hello");
    expect(rig.proxy.accepted).toBe(1);
  });
});
