import fs from "node:fs";
import path from "node:path";
import type { Job } from "../../domain/job.ts";
import type { LaunchedShim } from "../../execution/launcher.ts";
import { holdAttempt } from "../../execution/own-place.ts";
import { FILES } from "../../execution/spool-records.ts";
import { isThere } from "../../lib/files/file-system.ts";
import type { HeldDirectory } from "../../lib/files/held-directory.ts";
import { type Identity, identify, isAlive } from "../../lib/system/process-identity.ts";
import type { Fence } from "../../queue/store.ts";
import type { WorkerContext } from "./context.ts";
import type { EngineAttempt } from "./engines/engine.ts";
import type { ShimClaim } from "./lost-shim.ts";
import { isPassing } from "./patience.ts";
import { preparationOf, prepare } from "./prepare.ts";

/** How long a launched shim may take to claim its attempt before the worker claims it back. */
const START_DEADLINE_MS = 30_000;
/** After this, it is said that it has not. */
const SLOW_MS = 2_000;

/** The start of an attempt by this worker, up to the moment when a shim claims it. */
export class AttemptLaunch {
  #begun: number | null = null;
  #shim: LaunchedShim | null = null;
  #failure: unknown = null;
  #identity: Identity | null = null;
  /** The directory as it was made for the shim. */
  #place: HeldDirectory | null = null;

  constructor(
    private readonly context: WorkerContext,
    private readonly job: Job,
    private readonly fence: Fence,
    private readonly directory: string,
    private readonly engine: Pick<EngineAttempt, "plan" | "launch">,
  ) {}

  get begun(): boolean {
    return this.#begun !== null;
  }

  /** Write down what the shim needs. May be repeated until the launch. */
  async prepare(): Promise<void> {
    this.close();
    const preparation = await preparationOf(this.context, this.job, this.fence, this.engine);
    prepare(this.context, this.job, this.fence, this.directory, preparation);
    this.#place = holdAttempt(this.directory);
  }

  /** Start a shim; once, but again where the machine was short of something. @throws when there was none to start */
  async launch(onExit: () => void): Promise<void> {
    this.#begun = this.context.clock.monotonic();
    try {
      this.#shim = await (this.engine.launch?.() ?? this.context.launcher.launch(this.directory));
      this.#identity = identify(this.#shim.pid);
    } catch (error) {
      if (isPassing(error)) this.#begun = null;
      else this.#failure = error;
      throw error;
    }
    void this.#shim.exited.then(() => {
      this.#failure = new Error("the shim ended before it claimed its attempt");
      onExit();
    });
  }

  /** Why no shim will claim the attempt any more; null while one may. */
  get failure(): unknown {
    if (this.#failure !== null) return this.#failure;
    if (this.#begun === null || this.context.clock.monotonic() - this.#begun <= START_DEADLINE_MS) return null;
    return new Error(`the shim did not claim its attempt within ${START_DEADLINE_MS / 1_000} s`);
  }

  /** What there is to say of a shim that takes its time; null while it need not be said. */
  get obstacle(): string | null {
    if (this.#begun === null || this.context.clock.monotonic() - this.#begun < SLOW_MS) return null;
    const { bavail, bsize } = fs.statfsSync(this.context.spoolDir);
    return `its shim has not claimed it yet; the spool has ${bavail * bsize} bytes free`;
  }

  /** Who runs an attempt whose start.json does not say so. */
  get claim(): ShimClaim {
    return { shim: this.#identity, cgroup: null, process: null, startedAt: null, understood: false };
  }

  /** Whether what was made for the shim is no longer there: only a job that has started is at home in it. */
  get displaced(): boolean {
    const place = this.#place;
    return place !== null && (!place.isAt(this.directory) || !isThere(path.join(place.path, FILES.spec)));
  }

  /** Let go of the directory. */
  close(): void {
    this.#place?.[Symbol.dispose]();
    this.#place = null;
  }

  /** Kill a shim that has not claimed the attempt: it is this worker's child, and was told nothing else. Nothing where it is gone. */
  kill(): void {
    if (this.#shim === null || this.#identity === null || !isAlive(this.#identity)) return;
    try {
      process.kill(this.#shim.pid, "SIGKILL");
    } catch {
      // It is gone.
    }
  }

  /** The same, and see to it that it claims nothing any more. */
  async stop(): Promise<void> {
    this.kill();
    await this.#shim?.exited;
  }
}
