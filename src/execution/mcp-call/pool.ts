import fs from "node:fs";
import path from "node:path";
import { fsyncDirectory } from "../../lib/files/atomic-file.ts";
import { startFileThreads } from "../../lib/files/file-threads.ts";
import { becomeSubreaper } from "../../lib/system/libc.ts";
import { linesOf } from "../../lib/text/bounded-lines.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { runAttempt } from "../shim/attempt.ts";
import { heldAttempt } from "../shim/held-attempt.ts";
import { JobProcesses } from "../shim/job-processes.ts";
import { abandon, type Provision, provide } from "../shim/provision.ts";
import { ShimLog } from "../shim/shim-log.ts";
import { listenForTerm, type TermSignal } from "../shim/term-signal.ts";
import { FILES } from "../spool-records.ts";
import { HeldServer } from "./held-server.ts";
import { endEverything, runKept } from "./kept-attempt.ts";
import { CALL_FILES } from "./request-file.ts";

/** What the program needs of the process around it. */
export interface McpPoolIo {
  readonly version: string;
  readonly clock: Clock;
  readonly stdin: AsyncIterable<Uint8Array>;
}

const PATH_MAX_BYTES = 4_096;
const THREADS_MS = 5_000;
const PATIENCE_MS = 10_000;
const GRACE_SECONDS = 2;

/**
 * `__mcp-pool SPOOL`: a shim that keeps an MCP server between attempts (docs/federation.md, Warm servers). Each line of standard input is the directory of one,
 * claimed and recorded as any, but for the flushes (docs/spool.md, Kept servers); the end of the input is that of the server, when the attempt that is under way has ended.
 *
 * @returns the exit code: 0; 1 where the system has no threads for it; 2 for arguments that are none of these
 */
export async function runMcpPool(argv: readonly string[], io: McpPoolIo): Promise<number> {
  const [spool] = argv;
  if (argv.length !== 1 || spool === undefined || spool === "") return 2;
  const term = listenForTerm();
  becomeSubreaper();
  if (!(await startFileThreads(THREADS_MS))) return 1;
  const server = new HeldServer();
  const pool = new Pool(server, spool, term, io);
  const lines = linesOf(io.stdin, PATH_MAX_BYTES)[Symbol.asyncIterator]();
  for (;;) {
    const next = await Promise.race([lines.next(), term.promise.then(() => null)]);
    if (next === null || next.done === true) break;
    if (!("bytes" in next.value)) continue;
    await pool.run(Buffer.from(next.value.bytes).toString("utf8"));
    // What has failed is not kept.
    if (server.pid === null || term.received) break;
    // What the server has left behind, and has ended, is this process's to wait for.
    new JobProcesses(server.pid).running();
  }
  pool.close();
  // A worker that is gone has made nothing of it yet, and may not for a long time.
  pool.flushLast();
  await server.end();
  await endEverything({ cancel_grace_seconds: GRACE_SECONDS }, io.clock);
  return 0;
}

/** One attempt after the other. */
class Pool {
  #provision: Provision | null;
  /** Directory of the attempt that it has run last. */
  #last: string | null = null;

  constructor(
    private readonly server: HeldServer,
    private readonly spool: string,
    private readonly term: TermSignal,
    private readonly io: McpPoolIo,
  ) {
    this.#provision = this.#provide();
  }

  async run(directory: string): Promise<void> {
    const { clock, version } = this.io;
    using place = heldAttempt(directory);
    if (place === null) return;
    const log = new ShimLog(place.path, clock);
    const clientInfo = { name: "clio-relay", version };
    const provision = this.#provision ?? undefined;
    this.#provision = null;
    try {
      await runAttempt({
        directory,
        place,
        version,
        clock,
        log,
        term: this.term,
        provision,
        patienceMs: PATIENCE_MS,
        flushes: false,
        runs: (options, made) => runKept(options, made, { server: this.server, clientInfo }),
      });
    } catch (error) {
      log.note(`not claimed: ${String(error)}`);
    }
    this.#last = directory;
    this.#provision = this.#provide();
  }

  /** Flush what is left of the last attempt, and the way to it. */
  flushLast(): void {
    if (this.#last === null) return;
    using place = heldAttempt(this.#last);
    if (place === null) return;
    try {
      for (const name of [FILES.start, FILES.exit, ...Object.values(CALL_FILES)]) flushed(path.join(place.path, name));
      for (const directory of [place.path, path.dirname(this.#last), this.spool]) fsyncDirectory(directory);
    } catch (error) {
      new ShimLog(place.path, this.io.clock).note(`not flushed: ${String(error)}`);
    }
  }

  close(): void {
    if (this.#provision !== null) abandon(this.#provision);
    this.#provision = null;
  }

  /** What the next attempt has to have; where it cannot be made now, it is when there is one. */
  #provide(): Provision | null {
    try {
      return provide(this.spool, this.io.version, false);
    } catch {
      return null;
    }
  }
}

function flushed(file: string): void {
  let fd: number;
  try {
    fd = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
  } catch {
    // It was not made, or is not the shim's any more.
    return;
  }
  try {
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}
