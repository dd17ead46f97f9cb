import { expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
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
