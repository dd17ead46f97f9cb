import { afterAll, beforeAll, expect, test } from "bun:test";
import { initialized, type SourceRelay } from "../cli/source-relay.ts";
import { Agent } from "./agent.ts";

/** As docs/mcp.md says, and what stands around the text. */
const MOST = 64 * 1024 + 4 * 1024;
const SIZE = 50_000;

let relay: SourceRelay;
let agent: Agent;
let job: string;

interface Piece {
  readonly text: string;
  readonly data: string;
  readonly encoding: string;
  readonly offset: number;
  readonly next_offset: number;
  readonly eof: boolean;
}

beforeAll(async () => {
  relay = await initialized();
  await relay.ok("worker", "start", "--cluster", "local");
  agent = await Agent.of(relay);
  const script = `head -c ${SIZE} /dev/zero | tr '\\0' '\\001'; head -c ${SIZE} /dev/zero | tr '\\0' '\\377' >&2; head -c ${SIZE} /dev/zero | tr '\\0' '\\033' > escapes.txt; printf 'a\\303\\251\\342\\202\\254b' > few.txt`;
  job = await relay.submit("--output", "*.txt", "--workdir", relay.directory, "--", "sh", "-c", script);
  await agent.ok("relay_wait", { job_id: job });
});
afterAll(async () => {
  await agent?.[Symbol.asyncDispose]();
  await relay?.[Symbol.asyncDispose]();
});

const size = (answer: unknown): number => Buffer.byteLength(JSON.stringify(answer));

/** All of it, in as many pieces as it takes. */
async function pieces(tool: string, args: Record<string, unknown>): Promise<Piece[]> {
  const read: Piece[] = [];
  for (let offset = 0; ; offset = read.at(-1)!.next_offset) {
    const piece = await agent.ok<Piece>(tool, { ...args, offset });
    expect([piece.offset, piece.eof || piece.next_offset > offset]).toEqual([offset, true]);
    read.push(piece);
    if (piece.eof) return read;
  }
}

async function artifact(name: string): Promise<string> {
  const { artifacts } = await agent.ok<{ artifacts: { artifact_id: string; name: string }[] }>("relay_list_artifacts", { job_id: job });
  return artifacts.find((one) => one.name === name)!.artifact_id;
}

test("what a job wrote fits its answer, whatever characters it is of, and all of it is had by going on", async () => {
  for (const [stream, character] of [
    ["stdout", "\u0001"],
    ["stderr", "\ufffd"],
  ] as const) {
    const end = await agent.ok<Piece>("relay_read_job_log", { job_id: job, stream });
    expect([end.eof, end.next_offset, size(end) < MOST, end.text.length > 5_000]).toEqual([true, SIZE, true, true]);
    const read = await pieces("relay_read_job_log", { job_id: job, stream });
    expect(read.map(size).filter((bytes) => bytes > MOST)).toEqual([]);
    expect(read.map(({ text }) => text).join("") === character.repeat(SIZE)).toBe(true);
  }
  const waited = await agent.ok("relay_wait", { job_id: job, include_logs: true });
  expect(size(waited)).toBeLessThan(MOST);
});

test("so does an artifact, of which a character that is longer than a piece stops nobody", async () => {
  const read = await pieces("relay_read_artifact", { artifact_id: await artifact("escapes.txt") });
  expect(read.map(size).filter((bytes) => bytes > MOST)).toEqual([]);
  expect(read.map(({ data }) => data).join("") === "\u001b".repeat(SIZE)).toBe(true);
  const few = await artifact("few.txt");
  for (const limit of [1, 2, 3, 4, 32]) {
    const bytes = (await pieces("relay_read_artifact", { artifact_id: few, limit })).map(({ data, encoding }) =>
      Buffer.from(data, encoding as "base64" | "utf-8"),
    );
    expect([limit, Buffer.concat(bytes).toString()]).toEqual([limit, "aé€b"]);
  }
});
