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

/** What clients do over a link, again and again, each from where it stopped. */
class Work {
  acknowledged = 0;
  downloads = 0;
  followed = 0;
  failure: unknown = null;
  #over = false;
  readonly #all: Promise<void>[];

  constructor(
    private readonly rig: LinkRig,
    private readonly received: ReadonlyMap<string, number>,
  ) {
    const all = [1, 2, 3].map((who) => this.#submit(who));
    all.push(this.#download(), this.#download(), this.#follow(), this.#follow());
    this.#all = all.map((one) =>
      one.catch((error: unknown) => {
        this.failure ??= error;
      }),
    );
  }

  /** Whether more of everything was done than so much. */
  isBeyond(before: Pick<Work, "acknowledged" | "downloads" | "followed">): boolean {
    return this.downloads > before.downloads && this.followed > before.followed && this.acknowledged > before.acknowledged;
  }

  async end(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#all);
  }

  async #submit(who: number): Promise<void> {
    for (let n = 0; !this.#over; n++) {
      const text = `${who}-${n}`;
      try {
        const answer = await this.rig.link.request({ ...get("/"), method: "POST", body: Buffer.from(text) });
        expect(String(await bodyOf(answer))).toBe(text);
        expect(this.received.get(text)).toBe(1);
        this.acknowledged++;
      } catch (error) {
        expected(error);
        await Bun.sleep(5);
      }
    }
  }

  async #download(): Promise<void> {
    while (!this.#over) {
      try {
        const bytes = await bodyOf(await this.rig.link.request(get("/content"), { bulk: true }));
        expect(bytes.equals(CONTENT)).toBe(true);
        this.downloads++;
      } catch (error) {
        expected(error);
        await Bun.sleep(5);
      }
    }
  }

  async #follow(): Promise<void> {
    let text = "";
    while (!this.#over) {
      // What is behind the last line's end is read again.
      text = text.slice(0, text.lastIndexOf("\n") + 1);
      const cursor = text.split("\n").length - 1;
      if (cursor === LINES) {
        expect(text).toBe(Array.from({ length: LINES }, (_, n) => `${n}\n`).join(""));
        this.followed++;
        text = "";
      }
      try {
        const { body } = await this.rig.link.request(get(`/lines?cursor=${cursor === LINES ? 0 : cursor}`));
        for await (const piece of body as AsyncIterable<Uint8Array>) text += Buffer.from(piece).toString();
      } catch (error) {
        expected(error);
        await Bun.sleep(5);
      }
    }
  }
}

/** What may happen to the path. */
const weathers = ({ proxy, link }: LinkRig): (() => Promise<void> | void)[] => [
  () => proxy.cut(),
  () => proxy.reset(),
  async () => {
    proxy.weather.blackhole = true;
    await eventually(() => link.snapshot().state === "authorization_required", { what: "the drop" });
    proxy.weather.blackhole = false;
  },
  async () => {
    proxy.weather.blackhole = true;
    await Bun.sleep(300);
    proxy.weather.blackhole = false;
  },
  async () => {
    proxy.weather.delayMs = 20;
    proxy.weather.bytesPerSecond = 20e6;
    await Bun.sleep(300);
    proxy.weather.delayMs = 0;
    proxy.weather.bytesPerSecond = Number.POSITIVE_INFINITY;
  },
];

const rounds = Number(process.env["CLIO_RELAY_TEST_WEATHER_ROUNDS"] ?? 6);
setDefaultTimeout(90_000 + 3_000 * rounds);

test("whatever happens to the path, nothing is lost, doubled or altered, and everything goes on from its cursor", async () => {
  const received = new Map<string, number>();
  const times = { everyMs: 200, newsMs: 60_000, degradedMs: 1_200, silentMs: 1_500, droppedMs: 2_500, sleptMs: 60_000 };
  await using rig = await LinkRig.start(directories(), { times }, worker(received));
  await rig.connect();
  const work = new Work(rig, received);
  /** Somebody brings the link up again as soon as it is down. */
  const up = async (): Promise<boolean> => {
    if (rig.link.snapshot().state === "authorization_required") await rig.connect();
    return rig.link.snapshot().state === "up";
  };
  const changes = weathers(rig);
  for (let round = 0; round < rounds; round++) {
    await Bun.sleep(100 + Math.random() * 200);
    await changes[round % changes.length]!();
    await eventually(up, { what: `the link in round ${round}` });
  }
  const { downloads, followed, acknowledged } = work;
  const goesOn = (): boolean => work.isBeyond({ downloads, followed, acknowledged });
  await eventually(async () => work.failure !== null || ((await up()) && goesOn()), { what: "work that goes on" });
  await work.end();
  expect(work.failure).toBeNull();
  expect([...received.values()].every((times) => times === 1)).toBe(true);
  expect(received.size).toBeGreaterThanOrEqual(work.acknowledged);
});
