import { afterAll, beforeAll, expect, test } from "bun:test";
import path from "node:path";
import { HttpPeer } from "../../../src/api/client/http-peer.ts";
import { ClusterClient } from "../../../src/api/client.ts";
import { type Patience, withLifeSigns } from "../../../src/cli/follow/life-signs.ts";
import { Reconnect } from "../../../src/cli/follow/reconnect.ts";
import { RelayError } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";

const directory = temporaryDirectory();
const unix = path.join(directory.path, "s");

/** A worker that is asked for a sign of life, and gives none while it is held. */
let asked = 0;
let held: PromiseWithResolvers<void> | null = null;
let server: Bun.Server<undefined>;
beforeAll(() => {
  const fetch = async (): Promise<Response> => {
    asked++;
    await held?.promise;
    return Response.json({ ok: true, auth: false, version: "1", cluster: "local" });
  };
  server = Bun.serve({ unix, idleTimeout: 0, fetch } as unknown as Bun.Serve.Options<undefined>) as Bun.Server<undefined>;
});
afterAll(async () => {
  await server.stop(true);
  directory[Symbol.dispose]();
});

/** Something that waits, with the notices about it. */
function waiting(patience: Patience) {
  const said: string[] = [];
  const stderr = { write: async (text: string | Uint8Array) => void said.push(String(text)) };
  const reconnect = new Reconnect(stderr, systemClock, new AbortController().signal);
  const cluster = new ClusterClient("local", new HttpPeer({ kind: "unix", path: unix }));
  const over = Promise.withResolvers<string>();
  return { said, over, work: withLifeSigns(cluster, reconnect, () => over.promise, patience) };
}

const askedOftenAgain = (): Promise<true> => {
  const before = asked;
  return eventually(() => asked >= before + 5, { what: "a worker that is asked often" });
};

test("a quiet worker that answers is not silent", async () => {
  const { said, over, work } = waiting({ quietMs: 10, answerMs: 60_000 });
  await askedOftenAgain();
  over.resolve("done");
  expect(await work).toBe("done");
  expect(said).toEqual([]);
});

test("silence is said once, and so is its end", async () => {
  held = Promise.withResolvers();
  const { said, over, work } = waiting({ quietMs: 10, answerMs: 100 });
  await eventually(() => said.length > 0);
  await askedOftenAgain();
  expect(said).toEqual([expect.stringMatching(/^notice: no sign of life from the worker of local for \d+ s; still waiting\n$/)]);
  held.resolve();
  held = null;
  await eventually(() => said.length > 1);
  expect(said[1]).toBe("notice: it answers again\n");
  held = Promise.withResolvers();
  await eventually(() => said.length > 2);
  over.resolve("done");
  expect(await work).toBe("done");
  held.resolve();
});

test("what only a person can put right is said once an outage, also where it began as a broken connection", async () => {
  const said: string[] = [];
  const stderr = { write: async (text: string | Uint8Array) => void said.push(String(text)) };
  const reconnect = new Reconnect(stderr, systemClock, new AbortController().signal);
  const answers = [
    new RelayError("link_down", "the connection broke"),
    new RelayError("authorization_required", "only you", {}, "clio-relay connect far"),
    new RelayError("authorization_required", "only you", {}, "clio-relay connect far"),
  ];
  expect(await reconnect.persist(async () => "up")).toBe("up");
  const work = async (): Promise<string> => {
    const failure = answers.shift();
    if (failure !== undefined) throw failure;
    return "up again";
  };
  expect(await reconnect.persist(work)).toBe("up again");
  expect(said).toEqual([
    "notice: the connection broke; trying again until it is back\n",
    "notice: it does not come back by itself: clio-relay connect far\n",
    "notice: connected again\n",
  ]);
});

test("what ends an outage that lasts is said once; one that passes by itself is left to", async () => {
  const said: string[] = [];
  const stderr = { write: async (text: string | Uint8Array) => void said.push(String(text)) };
  let now = 0;
  const reconnect = new Reconnect(stderr, { ...systemClock, monotonic: () => now }, new AbortController().signal);
  const absent = () => new RelayError("worker_not_running", "no worker is running for far", {}, "clio-relay worker start --cluster far");
  /** One outage: a connection that breaks, and a failure at each of these times after it. */
  const through = async (...seconds: number[]): Promise<string[]> => {
    const answers = [() => new RelayError("link_down", "the connection broke"), ...seconds.map(() => absent)];
    const times = [...seconds];
    await reconnect.persist(async () => {
      const failure = answers.shift();
      if (failure === undefined) return;
      if (answers.length < seconds.length) now += times.shift()! * 1_000;
      throw failure();
    });
    return said.splice(0);
  };
  const [broke, back] = ["notice: the connection broke; trying again until it is back\n", "notice: connected again\n"];
  expect(await through(1)).toEqual([broke, back]);
  expect(await through(1, 1, 1)).toEqual([broke, "notice: no worker is running for far: clio-relay worker start --cluster far\n", back]);
});
