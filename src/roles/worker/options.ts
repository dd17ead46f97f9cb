import type { Capacity, Endpoint } from "../../domain/endpoint.ts";
import type { ShimLauncher } from "../../execution/launcher.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import type { QueueStore } from "../../queue/store.ts";
import type { Scheduling } from "./allocation/scheduling.ts";
import type { Log, WorkerLimits } from "./context.ts";
import type { Programs } from "./engines/engines.ts";
import type { FrpOffer } from "./frp-keeper.ts";
import type { RelayMeeting } from "./relay-joiner.ts";

export interface WorkerOptions extends Programs {
  readonly cluster: string;
  readonly version: string;
  readonly capacity: Capacity;
  readonly limits: WorkerLimits;
  readonly coreDir: string;
  readonly spoolDir: string;
  /** See WorkerContext; that of the cluster when left out. */
  readonly sharedSpoolDir?: string | null;
  /** What a batch script runs; see WorkerContext. */
  readonly command: readonly string[];
  /** No scheduler when left out. */
  readonly scheduling?: Scheduling;
  readonly socketPath: string;
  /** Where sessions with the worker's own identity are answered; nowhere when left out. */
  readonly linkSocketPath?: string;
  /** The relay-host at which it is met; nowhere when left out. */
  readonly relay?: RelayMeeting;
  /** What it offers at a frps; nothing when left out. */
  readonly frp?: FrpOffer;
  /** Where standard error goes when the worker was started in the background; kept within a bound. */
  readonly stderrFile?: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeDir: string;
  readonly executableDir: string | null;
  readonly envSetup: string | null;
  readonly envSetupStrict: boolean;
  /** Take over a queue whose owner's record is of another host. */
  readonly takeOver: boolean;
  readonly confirmHostDead: boolean;
  readonly launcher: (log: Log) => Promise<ShimLauncher> | ShimLauncher;
  readonly clock?: Clock;
  readonly log?: Log;
  /** Stands between the worker and its queue: what it makes of the store is what the worker uses. */
  readonly storeThrough?: (store: QueueStore) => QueueStore;
  /** Milliseconds that each part of it may take to stop. 10 s. */
  readonly stopStepMs?: number;
  /** Called when the socket answers. */
  readonly onReady?: (endpoint: Endpoint) => void;
}
