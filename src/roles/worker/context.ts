import type { Capacity } from "../../domain/endpoint.ts";
import type { ShimLauncher } from "../../execution/launcher.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import type { QueueStore } from "../../queue/store.ts";
import type { Schedulers } from "./allocation/schedulers.ts";
import type { Engines } from "./engines/engine.ts";

/** Where a worker writes about itself. `data` must be free of secrets. */
export interface Log {
  info(message: string, data?: unknown): void;
  warn(message: string, data?: unknown): void;
  error(message: string, data?: unknown): void;
}

/** Bounds that the operator sets; docs in config/settings.ts. */
export interface WorkerLimits {
  readonly logStreamBytes: number;
  readonly logJobBytes: number;
  readonly artifactStoreBytes: number;
  /** What a request may carry of an input. */
  readonly inputInlineMaxBytes: number;
  readonly minFreeBytes: number;
  readonly activeJobsMax: number;
  readonly cancelGraceSeconds: number;
}

/** What the parts of a worker share. */
export interface WorkerContext {
  readonly cluster: string;
  readonly endpointId: string;
  readonly version: string;
  readonly capacity: Capacity;
  readonly limits: WorkerLimits;
  readonly coreDir: string;
  /** The cluster's spool. */
  readonly spoolDir: string;
  /** The spool of jobs in allocations, which compute nodes see; null where that is the same. */
  readonly sharedSpoolDir: string | null;
  /** Directories that were that before; what earlier jobs have is still there. */
  readonly earlierSpools: readonly string[];
  /** The environment that jobs' allow-list is taken from. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeDir: string;
  /** Directory of the relay's executable, where jobs find `clio-relay emit`; null when it runs from source. */
  readonly executableDir: string | null;
  /** Shell text that the cluster's configuration puts before every job; null for none. */
  readonly envSetup: string | null;
  /** Whether that text ends an attempt when it fails. */
  readonly envSetupStrict: boolean;
  readonly store: QueueStore;
  readonly engines: Engines;
  readonly launcher: ShimLauncher;
  /** The relay's executable with leading arguments, absolute: what a batch script runs. */
  readonly command: readonly string[];
  readonly schedulers: Schedulers;
  readonly clock: Clock;
  readonly log: Log;
  /** Remember a failure that a lane survived, for worker status. */
  laneFailed(where: string, error: unknown): void;
}
