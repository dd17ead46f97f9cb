import type { McpReuse } from "../../../../domain/mcp-call.ts";
import type { LaunchedShim, ShimLauncher, ShimProcess } from "../../../../execution/launcher.ts";
import { residentBytesBelow } from "../../../../execution/resident-below.ts";
import type { Timers } from "../../../../lib/waiting/timers.ts";

/** Servers of one worker that wait for a call. */
const IDLE_MAX = 8;

/** A shim that keeps a server. */
interface Warm {
  readonly process: ShimProcess;
  readonly key: string;
  calls: number;
  /** Stops the clock of its idleness. */
  stop: (() => void) | null;
}

/** One attempt on a kept server. */
export interface WarmLaunch extends LaunchedShim {
  /** The attempt has ended: the server waits for another call, where its limits allow it; null: it ends. */
  release(reuse: McpReuse | null): void;
}

/**
 * Shims that keep their MCP server between calls (docs/federation.md, Warm servers), each with at most one call. They end with this worker: the end of
 * their input is theirs.
 */
export class WarmServers {
  /** In the order in which they became idle. */
  readonly #idle: Warm[] = [];

  constructor(
    private readonly launcher: Pick<ShimLauncher, "keep">,
    private readonly spoolDir: string,
    private readonly timers: Timers,
  ) {}

  /**
   * Hand an attempt to a shim that keeps such a server, or to a new one.
   *
   * @param key what servers have to have in common
   * @throws when no process could be started
   */
  async launch(key: string, attemptDir: string): Promise<WarmLaunch> {
    for (let warm = this.#take(key); warm !== null; warm = this.#take(key)) {
      if (await warm.process.say(attemptDir)) return this.#launched(warm);
    }
    const process = await this.launcher.keep(["__mcp-pool", this.spoolDir]);
    const warm: Warm = { process, key, calls: 0, stop: null };
    void process.exited.then(() => this.#forget(warm));
    await process.say(attemptDir);
    return this.#launched(warm);
  }

  #take(key: string): Warm | null {
    const index = this.#idle.findLastIndex((warm) => warm.key === key);
    if (index < 0) return null;
    const [warm] = this.#idle.splice(index, 1);
    warm!.stop?.();
    warm!.stop = null;
    return warm!;
  }

  #launched(warm: Warm): WarmLaunch {
    const { promise, resolve } = Promise.withResolvers<void>();
    warm.calls++;
    void warm.process.exited.then(resolve);
    let isOver = false;
    return {
      pid: warm.process.pid,
      exited: promise,
      release: (reuse) => {
        if (isOver) return;
        isOver = true;
        resolve();
        if (reuse === null) warm.process.dismiss();
        else this.#rest(warm, reuse);
      },
    };
  }

  #rest(warm: Warm, { idle_seconds, max_calls, max_memory_bytes }: McpReuse): void {
    if (warm.calls >= max_calls) {
      warm.process.dismiss();
      return;
    }
    warm.stop = this.timers.after(idle_seconds * 1_000, () => this.#dismiss(warm));
    this.#idle.push(warm);
    if (this.#idle.length > IDLE_MAX) this.#dismiss(this.#idle[0]!);
    // Behind the answers of those who wait for the call, and before the next request is read.
    setImmediate(() => {
      if (this.#idle.includes(warm) && residentBytesBelow(warm.process.pid) > max_memory_bytes) this.#dismiss(warm);
    });
  }

  #dismiss(warm: Warm): void {
    this.#forget(warm);
    warm.process.dismiss();
  }

  #forget(warm: Warm): void {
    warm.stop?.();
    warm.stop = null;
    const index = this.#idle.indexOf(warm);
    if (index >= 0) this.#idle.splice(index, 1);
  }
}
