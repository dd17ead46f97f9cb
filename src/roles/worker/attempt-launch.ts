import type { Job } from "../../domain/job.ts";
import type { LaunchedShim } from "../../execution/launcher.ts";
import type { Fence } from "../../queue/store.ts";
import type { WorkerContext } from "./context.ts";
import { prepare } from "./prepare.ts";

/** How long a launched shim may take to claim its attempt before the worker claims it back. */
const START_DEADLINE_MS = 30_000;

/** The start of an attempt by this worker, up to the moment when a shim claims it. */
export class AttemptLaunch {
  #begun: number | null = null;
  #shim: LaunchedShim | null = null;
  #failure: unknown = null;

  constructor(
    private readonly context: WorkerContext,
    private readonly job: Job,
    private readonly fence: Fence,
    private readonly directory: string,
  ) {}

  get begun(): boolean {
    return this.#begun !== null;
  }

  /** Write down what the shim needs. May be repeated until the launch. */
  async prepare(): Promise<void> {
    prepare(this.context, this.job, this.fence, this.directory, await this.context.store.segments(this.fence.job_id));
  }

  /** Start a shim; once. @throws when there was none to start */
  async launch(onExit: () => void): Promise<void> {
    this.#begun = this.context.clock.monotonic();
    try {
      this.#shim = await this.context.launcher.launch(this.directory);
    } catch (error) {
      this.#failure = error;
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

  /** See to it that the shim claims nothing any more: it is this worker's child, and was told nothing but this attempt. */
  async stop(): Promise<void> {
    if (this.#shim === null) return;
    try {
      process.kill(this.#shim.pid, "SIGKILL");
    } catch {
      // It is gone.
    }
    await this.#shim.exited;
  }
}
