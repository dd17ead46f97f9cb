import { expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { isRelayError } from "../../../src/domain/errors.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { bodyOf, LinkRig } from "./link-rig.ts";

const directories = temporaryDirectories();

const CONTENT = randomBytes(6 * 2 ** 20 + 1);
const TAG = `"${sha256Hex(CONTENT)}"`;
const DIGEST = Buffer.from(sha256Hex(CONTENT), "hex").toString("base64");
const LINES = 400;

/** A worker that counts what it is told, has content, and lines that are read from a cursor on. */
function worker(received: Map<string, number>): (request: Request) => Promise<Response> {
  return async (request) => {
    const url = new URL(request.url);
    if (request.method === "POST") {
      const text = await request.text();
      received.set(text, (received.get(text) ?? 0) + 1);
      return new Response(text);
    }
    if (url.pathname === "/content") {
      if (request.method === "HEAD") return new Response(null, { headers: { etag: TAG, "repr-digest": `sha-256=:${DIGEST}:` } });
      const match = /^bytes=(\d+)-(\d*)$/.exec(request.headers.get("range") ?? "");
      if (match === null || (request.headers.get("if-match") ?? TAG) !== TAG) return new Response(null, { status: 412 });
      const [start, end] = [Number(match[1]), match[2] === "" ? CONTENT.length : Math.min(Number(match[2]) + 1, CONTENT.length)];
      const headers = { etag: TAG, "content-range": `bytes ${start}-${end - 1}/${CONTENT.length}` };
      return new Response(CONTENT.subarray(start, end), { status: 206, headers });
    }
    const from = Number(url.searchParams.get("cursor"));
    let line = from;
    return new Response(
      new ReadableStream({
        async pull(controller) {
          if (line >= LINES) controller.close();
          else controller.enqueue(`${line++}\n`);
          await Bun.sleep(1);
        },
      }),
    );
  };
}

/** Failures that a link may have in such weather; everything else is a bug. */
function expected(error: unknown): void {
  if (!isRelayError(error, "link_down") && !isRelayError(error, "authorization_required")) throw error;
}

const get = (target: string) => ({ method: "GET", target, headers: new Headers(), body: null });

const rounds = Number(process.env["CLIO_RELAY_TEST_WEATHER_ROUNDS"] ?? 6);
setDefaultTimeout(90_000 + 3_000 * rounds);

test("whatever happens to the path, nothing is lost, doubled or altered, and everything goes on from its cursor", async () => {
  const received = new Map<string, number>();
  const times = { everyMs: 200, degradedMs: 1_200, silentMs: 1_500, droppedMs: 2_500, sleptMs: 60_000 };
  await using rig = await LinkRig.start(directories(), { times }, worker(received));
  await rig.connect();
  let over = false;
  let acknowledged = 0;
  let downloads = 0;
  let followed = 0;

  const submit = async (who: number): Promise<void> => {
    for (let n = 0; !over; n++) {
      const text = `${who}-${n}`;
      try {
        const answer = await rig.link.request({ ...get("/"), method: "POST", body: Buffer.from(text) });
        expect(String(await bodyOf(answer))).toBe(text);
        expect(received.get(text)).toBe(1);
        acknowledged++;
      } catch (error) {
        expected(error);
        await Bun.sleep(5);
      }
    }
  };
  const download = async (): Promise<void> => {
    while (!over) {
      try {
        const bytes = await bodyOf(await rig.link.request(get("/content"), { bulk: true }));
        expect(bytes.equals(CONTENT)).toBe(true);
        downloads++;
      } catch (error) {
        expected(error);
        await Bun.sleep(5);
      }
    }
  };
  const follow = async (): Promise<void> => {
    let text = "";
    while (!over) {
      // What is behind the last line's end is read again.
      text = text.slice(0, text.lastIndexOf("\n") + 1);
      const cursor = text.split("\n").length - 1;
      if (cursor === LINES) {
        expect(text).toBe(Array.from({ length: LINES }, (_, n) => `${n}\n`).join(""));
        followed++;
        text = "";
      }
      try {
        const { body } = await rig.link.request(get(`/lines?cursor=${cursor === LINES ? 0 : cursor}`));
        for await (const piece of body as AsyncIterable<Uint8Array>) text += Buffer.from(piece).toString();
      } catch (error) {
        expected(error);
        await Bun.sleep(5);
      }
    }
  };
  let failure: unknown = null;
  const work = [submit(1), submit(2), submit(3), download(), download(), follow(), follow()].map((one) =>
    one.catch((error: unknown) => {
      failure ??= error;
    }),
  );

  const weathers: (() => Promise<void> | void)[] = [
    () => rig.proxy.cut(),
    () => rig.proxy.reset(),
    async () => {
      rig.proxy.weather.blackhole = true;
      await eventually(() => rig.link.snapshot().state === "authorization_required", { what: "the drop" });
      rig.proxy.weather.blackhole = false;
    },
    async () => {
      rig.proxy.weather.blackhole = true;
      await Bun.sleep(300);
      rig.proxy.weather.blackhole = false;
    },
    async () => {
      rig.proxy.weather.delayMs = 20;
      rig.proxy.weather.bytesPerSecond = 20e6;
      await Bun.sleep(300);
      rig.proxy.weather.delayMs = 0;
      rig.proxy.weather.bytesPerSecond = Number.POSITIVE_INFINITY;
    },
  ];
  /** Somebody brings the link up again as soon as it is down. */
  const up = async (): Promise<boolean> => {
    if (rig.link.snapshot().state === "authorization_required") await rig.connect();
    return rig.link.snapshot().state === "up";
  };
  for (let round = 0; round < rounds; round++) {
    await Bun.sleep(100 + Math.random() * 200);
    await weathers[round % weathers.length]!();
    await eventually(up, { what: `the link in round ${round}` });
  }
  const before = { downloads, followed, acknowledged };
  const goesOn = (): boolean => downloads > before.downloads && followed > before.followed && acknowledged > before.acknowledged;
  await eventually(async () => failure !== null || ((await up()) && goesOn()), { what: "work that goes on" });
  over = true;
  await Promise.all(work);
  expect(failure).toBeNull();
  expect([...received.values()].every((times) => times === 1)).toBe(true);
  expect(received.size).toBeGreaterThanOrEqual(acknowledged);
});
