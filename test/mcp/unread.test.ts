import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { within } from "../../src/lib/waiting/within.ts";
import { Outgoing } from "../../src/mcp/stdio/outgoing.ts";
import { initialized, MAIN, type SourceRelay } from "../cli/source-relay.ts";
import { eventually } from "../runner/wait.ts";
import { META } from "./http-endpoint.ts";

const REQUESTS = 120;

let relay: SourceRelay;

beforeAll(async () => {
  relay = await initialized();
});
afterAll(() => relay?.[Symbol.asyncDispose]());

/** `mcp-server` with a client that reads nothing unless it is told to. */
class Unread implements Disposable {
  readonly child: Bun.Subprocess<"pipe", number, "inherit">;
  readonly #end: number;
  readonly #piece = Buffer.alloc(64 * 1024);

  constructor() {
    const fifo = path.join(relay.directory, `out-${crypto.randomUUID()}`);
    expect(Bun.spawnSync(["mkfifo", fifo]).exitCode).toBe(0);
    this.#end = fs.openSync(fifo, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
    const stdout = fs.openSync(fifo, "w");
    this.child = Bun.spawn([process.execPath, MAIN, "mcp-server"], {
      env: relay.environment,
      cwd: relay.directory,
      stdin: "pipe",
      stdout,
      stderr: "inherit",
    });
    fs.closeSync(stdout);
  }

  /** Requests whose answers are more than a pipe holds by far. */
  ask(): void {
    for (let id = 1; id <= REQUESTS; id++)
      this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/list", params: { _meta: META } })}\n`);
    void this.child.stdin.flush();
  }

  /** Bytes that are there; null where there are none. */
  read(max = this.#piece.length): Buffer | null {
    try {
      const count = fs.readSync(this.#end, this.#piece, 0, max, null);
      return count === 0 ? null : Buffer.from(this.#piece.subarray(0, count));
    } catch {
      return null;
    }
  }

  exited(): Promise<boolean> {
    return within(this.child.exited, 30_000);
  }

  [Symbol.dispose](): void {
    this.child.kill("SIGKILL");
    fs.closeSync(this.#end);
  }
}

describe.skipIf(process.platform === "win32")("a client that reads nothing", () => {
  test("does not keep the server from ending when it is told to", async () => {
    using unread = new Unread();
    unread.ask();
    await eventually(() => unread.read(1), { what: "the first byte" });
    unread.child.kill("SIGTERM");
    expect(await unread.exited()).toBe(true);
  });

  test("has all of its answers when it reads after all", async () => {
    using unread = new Unread();
    unread.ask();
    let text = (await eventually(() => unread.read(1), { what: "the first byte" })).toString();
    const answered = (): (number | undefined)[] =>
      text
        .split("\n")
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { id?: number }).id);
    const lines = (): boolean => {
      for (let piece = unread.read(); piece !== null; piece = unread.read()) text += piece.toString("latin1");
      return text.split("\n").length > REQUESTS;
    };
    await eventually(lines, { what: "all answers" });
    expect(new Set(answered())).toEqual(new Set(Array.from({ length: REQUESTS }, (_, at) => at + 1)));
    await unread.child.stdin.end();
    expect(await unread.exited()).toBe(true);
  });
});

test("what waits for a client keeps further requests from being read, until it takes some of it; one that takes none is given up", async () => {
  const taking: (() => void)[] = [];
  const failures: unknown[] = [];
  const write = (): Promise<void> => new Promise((resolve) => taking.push(resolve));
  const outgoing = new Outgoing(write, (error) => failures.push(error), 50);
  const large = { text: "x".repeat(700_000) };
  void outgoing.send(large);
  // There is room for more, however long the client takes over that.
  await outgoing.room();
  void outgoing.send(large);
  let room = false;
  const roomy = outgoing.room().then(() => (room = true));
  await eventually(() => taking.length === 1);
  expect(room).toBe(false);
  taking.shift()!();
  await roomy;
  void outgoing.send(large);
  await eventually(() => failures.length === 1, { what: "that it is given up" });
  // Whoever waits for room is let go on, and learns that it is over.
  await outgoing.room();
  await outgoing.settled();
  await outgoing.send(large);
  expect([failures.length, taking.length]).toEqual([1, 1]);
});
