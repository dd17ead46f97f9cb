import { expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
import { contentOf } from "../../src/api/content-body.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";

const temporary = temporaryDirectories();
const SOURCE = path.resolve(import.meta.dir, "../../src");

/** A server in a process of its own, whose answer gives one piece and fails: what a client gets, and what the process writes to standard error. */
async function brokenOff(failure: string): Promise<{ answer: string; said: string }> {
  const socket = path.join(temporary(), "s.sock");
  const script = `
    import { contentBody } from "${SOURCE}/api/content-body.ts";
    import { RelayError } from "${SOURCE}/domain/errors.ts";
    async function* pieces() { yield Buffer.from("piece"); await Bun.sleep(0); throw ${failure}; }
    Bun.serve({ unix: ${JSON.stringify(socket)}, fetch: () => new Response(contentBody(pieces()), { headers: { "content-length": "10" } }) });
    for await (const _ of Bun.stdin.stream());
    process.exit(0);`;
  const server = Bun.spawn([process.execPath, "-e", script], { stdin: "pipe", stdout: "ignore", stderr: "pipe" });
  try {
    const client = await eventually(async () => {
      const made = net.connect({ path: socket });
      await new Promise<void>((resolve, reject) => made.once("connect", resolve).once("error", reject));
      return made;
    });
    const chunks: Buffer[] = [];
    client.on("data", (chunk: Buffer) => chunks.push(chunk));
    const closed = new Promise<void>((resolve) => client.once("close", () => resolve()));
    client.on("error", () => undefined);
    client.write("GET / HTTP/1.1\r\nHost: relay\r\n\r\n");
    await closed;
    await server.stdin.end();
    return { answer: Buffer.concat(chunks).toString(), said: await server.stderr.text() };
  } finally {
    server.kill("SIGKILL");
    await server.exited;
  }
}

test("a failure that can be expected breaks the answer off, and nothing is written to standard error", async () => {
  const { answer, said } = await brokenOff('new RelayError("artifact_changed", "it changed")');
  expect(answer).toStartWith("HTTP/1.1 200 ");
  expect(answer).toContain("piece");
  // Neither ten bytes nor the last chunk.
  expect(answer).not.toEndWith("0\r\n\r\n");
  expect(said).toBe("");
});

test("one that nobody expected is told", async () => {
  const { answer, said } = await brokenOff('new Error("a surprise")');
  expect(answer).not.toEndWith("0\r\n\r\n");
  expect(said).toContain("a surprise");
});

test("pieces that are nobody else's are given back when they have been sent, and arrive as they were, also where the client is slower", async () => {
  const socket = path.join(temporary(), "s.sock");
  const PIECE = 64 * 1024;
  const COUNT = 256;
  const made: Uint8Array[] = [];
  const sent = new Bun.CryptoHasher("sha256");
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < COUNT; i++) {
      const piece = new Uint8Array(PIECE).fill(i);
      piece[i] = ~i;
      sent.update(piece);
      made.push(piece);
      yield piece;
    }
  }
  using _server = Bun.serve({ unix: socket, fetch: async () => new Response(await contentOf(pieces(), COUNT * PIECE)) } as never);
  const { body } = await fetch("http://relay/", { unix: socket, proxy: false } as never);
  let heldBackAt: number | null = null;
  const came = new Bun.CryptoHasher("sha256");
  for await (const part of body as unknown as AsyncIterable<Uint8Array>) {
    // So that the server has to wait for its client, with a piece that was taken in part.
    if (heldBackAt === null) {
      await Bun.sleep(100);
      heldBackAt = made.length;
    }
    came.update(part);
  }
  expect(heldBackAt).toBeLessThan(COUNT);
  expect(came.digest("hex")).toBe(sent.digest("hex"));
  expect(made.filter((piece) => piece.length > 0).length).toBeLessThanOrEqual(1);
  expect(made.length).toBe(COUNT);
});

test.each([100, 600_000])("a source that gives more than the %d bytes that were said is broken off", async (bytes) => {
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) yield new Uint8Array(bytes / 10);
  }
  const come = (async () => new Response(await contentOf(endless(), bytes)).bytes())();
  await expect(come).rejects.toThrow(`more content than the ${bytes} bytes`);
});
