import path from "node:path";
import { within } from "../lib/waiting/within.ts";
import type { LaunchedShim, ShimLauncher, ShimProcess, ShimSpawner } from "./launcher.ts";
import { FILES } from "./spool-records.ts";

export interface SpareOptions {
  /** The cluster's spool, where a spare writes its claim beforehand. */
  readonly spool: string;
  /** Argument that makes a shim of the relay's command. */
  readonly verb?: string;
  /** Shims that are kept waiting; 0 for none. */
  readonly spares: number;
  /** Milliseconds that a shim waits for an attempt that was expected and does not come. 5 s. */
  readonly expectedMs?: number;
  /** Told when a spare could not be started, or died while it waited. */
  readonly onTrouble?: (message: string, error: unknown) => void;
}

/** A spare that lived shorter than this did not end for lack of work: the next one is not started at once. */
const HEALTHY_MS = 5_000;
const REFILL_DELAY_MS = 5_000;
/** How long a dismissed spare may take to end, before and after it is killed: it may be stopped, or wait for a file system. */
const DISMISSED_MS = 1_000;
const KILLED_MS = 1_000;

/** Launches attempts on shims that wait for one where there are any, and on fresh ones where there are none. */
export class SpareShimLauncher implements ShimLauncher {
  readonly #waiting: ShimProcess[] = [];
  /** A shim that was started for an attempt before there was one. */
  #expected: Promise<ShimProcess | null> | null = null;
  #unexpected: ReturnType<typeof setTimeout> | undefined;
  #closed = false;
  /** Shims that were told nothing and have not ended yet. */
  readonly #ending = new Set<Promise<void>>();
  #refilling: Promise<void> = Promise.resolve();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #verb: string;

  constructor(
    private readonly spawner: ShimSpawner,
    private readonly options: SpareOptions,
  ) {
    this.#verb = options.verb ?? "__shim";
    this.#refillSoon(0);
  }

  /** Shims that wait now. */
  get waiting(): number {
    return this.#waiting.length;
  }

  expect(): void {
    if (this.#closed || this.#waiting.length > 0 || this.#expected !== null) return;
    this.#expected = this.#beforehand();
    this.#unexpected = setTimeout(
      () => void this.#takeExpected().then((shim) => shim && this.#end(shim)),
      this.options.expectedMs ?? 5_000,
    );
    this.#unexpected.unref?.();
  }

  /** Null where none can be started: the launch says why, if there still is a reason then. */
  async #beforehand(): Promise<ShimProcess | null> {
    try {
      return await this.spawner.spawn([this.#verb, "--told", this.options.spool], null);
    } catch {
      return null;
    }
  }

  /** The shim that was started beforehand, which is nobody else's then; null when there is none. */
  async #takeExpected(): Promise<ShimProcess | null> {
    const expected = this.#expected;
    this.#expected = null;
    clearTimeout(this.#unexpected);
    return await expected;
  }

  async launch(attemptDir: string): Promise<LaunchedShim> {
    // A shim that waits is told its directory in one line.
    const ready = attemptDir.includes("\n") ? null : await this.#tellOne(attemptDir);
    // Not at once: starting a spare would take the processor from the job that starts.
    this.#refillSoon(100);
    if (ready !== null) return ready;
    const shim = await this.spawner.spawn([this.#verb, attemptDir], path.join(attemptDir, FILES.shimLog));
    shim.dismiss();
    return shim;
  }

  keep(args: readonly string[]): Promise<ShimProcess> {
    return this.spawner.spawn(args, null);
  }

  /** Give the attempt to a shim that is there already. */
  async #tellOne(attemptDir: string): Promise<ShimProcess | null> {
    for (let spare = this.#waiting.shift(); spare !== undefined; spare = this.#waiting.shift()) {
      if (await spare.tell(attemptDir)) return spare;
    }
    const expected = await this.#takeExpected();
    return expected !== null && (await expected.tell(attemptDir)) ? expected : null;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    const expected = await this.#takeExpected();
    for (const spare of [...this.#waiting.splice(0), ...(expected === null ? [] : [expected])]) void this.#end(spare);
    await this.#refilling;
    await Promise.all(this.#ending);
  }

  /** A shim that was told nothing has no attempt, so that killing it loses nothing. */
  #end(spare: ShimProcess): Promise<void> {
    const ending = this.#seeToEndOf(spare).finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    return ending;
  }

  async #seeToEndOf(spare: ShimProcess): Promise<void> {
    spare.dismiss();
    if (await within(spare.exited, DISMISSED_MS)) return;
    spare.kill();
    if (!(await within(spare.exited, KILLED_MS)))
      this.options.onTrouble?.(`spare shim ${spare.pid} does not end, and is left behind`, null);
  }

  #refillSoon(delayMs: number): void {
    if (this.#closed || this.#timer !== undefined || this.#waiting.length >= this.options.spares) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#refilling = this.#refill();
    }, delayMs);
    this.#timer.unref?.();
  }

  async #refill(): Promise<void> {
    try {
      while (!this.#closed && this.#waiting.length < this.options.spares)
        this.#keep(await this.spawner.spawn([this.#verb, "--spare", this.options.spool], null));
    } catch (error) {
      this.options.onTrouble?.("no spare shim could be started", error);
      this.#refillSoon(REFILL_DELAY_MS);
    }
  }

  #keep(spare: ShimProcess): void {
    if (this.#closed) {
      void this.#end(spare);
      return;
    }
    this.#waiting.push(spare);
    const since = performance.now();
    void spare.exited.then(() => {
      const index = this.#waiting.indexOf(spare);
      if (index === -1) return;
      this.#waiting.splice(index, 1);
      const early = performance.now() - since < HEALTHY_MS;
      this.options.onTrouble?.("a spare shim ended while it waited", null);
      this.#refillSoon(early ? REFILL_DELAY_MS : 0);
    });
  }
}
