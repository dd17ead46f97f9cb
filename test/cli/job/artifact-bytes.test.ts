import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import net from "node:net";
import path from "node:path";
import { HttpPeer } from "../../../src/api/client/http-peer.ts";
import { ClusterClient } from "../../../src/api/client.ts";
import { artifactBytes } from "../../../src/cli/follow/artifact-bytes.ts";
import { Reconnect } from "../../../src/cli/follow/reconnect.ts";
import type { Artifact } from "../../../src/domain/artifact.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";

const CONTENT = Buffer.from("0123456789".repeat(1_000));
const FIRST = 4_000;
const ARTIFACT = {
  artifact_id: `artifact_${"0".repeat(32)}`,
  name: "result.bin",
  size_bytes: CONTENT.length,
  sha256: sha256Hex(CONTENT),
} as Artifact;

const directory = temporaryDirectory();
const unix = path.join(directory.path, "s");
/** What the server does with a request for content from an offset, one for each. */
let answers: ((socket: net.Socket, offset: number) => void)[] = [];
let server: net.Server;

beforeAll(async () => {
  server = net.createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (head) => {
      const offset = Number(/^range: bytes=(\d+)-/im.exec(head.toString())?.[1] ?? 0);
      answers.shift()?.(socket, offset);
    });
  });
  await new Promise<void>((resolve) => server.listen(unix, () => resolve()));
});
afterAll(() => {
  server.close();
  directory[Symbol.dispose]();
});

let milliseconds: number;
beforeEach(() => {
  milliseconds = 0;
});

/** The whole answer, or as much of it as was said, and then the end of the connection. */
const answer =
  (bytes = Number.POSITIVE_INFINITY) =>
  (socket: net.Socket, offset: number): void => {
    const rest = CONTENT.subarray(offset);
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${rest.length}\r\nconnection: close\r\n\r\n`);
    socket.end(rest.subarray(0, bytes));
  };

function fetched() {
  const signal = new AbortController().signal;
  const clock = { now: () => milliseconds, monotonic: () => milliseconds };
  const reconnect = new Reconnect({ write: () => Promise.resolve() }, clock, signal);
  return artifactBytes(new ClusterClient("local", new HttpPeer({ kind: "unix", path: unix })), ARTIFACT, reconnect, clock, signal);
}

test("an answer that breaks off goes on behind its last byte", async () => {
  answers = [answer(FIRST), answer()];
  expect(Buffer.concat(await Array.fromAsync(fetched())).equals(CONTENT)).toBe(true);
});

test("nothing for too long, and then the connection breaks: it is the way that failed", async () => {
  answers = [
    (socket, offset) => {
      milliseconds += 61_000;
      answer(0)(socket, offset);
    },
  ];
  await expect(Array.fromAsync(fetched())).rejects.toMatchObject({ code: "link_down" });
});

test("a reader that takes its time is not counted as a way over which nothing comes", async () => {
  answers = [answer(FIRST), answer()];
  const pieces: Uint8Array[] = [];
  for await (const piece of fetched()) {
    pieces.push(piece);
    // As with a pager that nobody scrolls: the connection broke meanwhile.
    milliseconds += 600_000;
  }
  expect(Buffer.concat(pieces).equals(CONTENT)).toBe(true);
});
