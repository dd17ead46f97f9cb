import { RelayError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import layout from "../script/layout.sh" with { type: "text" };
import lock from "../script/lock.sh" with { type: "text" };
import { accepted } from "../script/refusal.ts";
import type { Remote, Script } from "../script/remote.ts";
import activateText from "./activate.sh" with { type: "text" };
import manager from "./manager.sh" with { type: "text" };
import { type ServicePlace, type ServiceStatus, serviceStatus } from "./status.ts";
import { unitName } from "./unit.ts";

const SCRIPT: Script = { name: "activate the service", text: layout + lock + manager + activateText };
/** More than TimeoutStartSec of the unit and one pause between restarts. */
const OBSERVE_MS = 330_000;
const LOOK_EVERY_MS = 500;

export interface Activation {
  /** `in-progress`: the observation ran out of time; the manager goes on. */
  readonly outcome: "ready" | "in-progress";
  /** Whether this call asked for it, found it under way, or found it done. */
  readonly asked: "enqueued" | "adopted" | "nothing";
  readonly before: string | null;
  readonly status: ServiceStatus;
}

export interface ActivateOptions extends ObserveOptions {
  readonly action: "start" | "restart";
}

/**
 * Have a unit started or restarted, and look until its worker serves. A restart counts as done only when InvocationID has changed. At most one job is put into the
 * manager's queue, whoever else asks for the same at once.
 *
 * @throws RelayError service_failed when the manager gives up; state_conflict, and as Remote.run
 */
export async function activateService(remote: Remote, options: ActivateOptions): Promise<Activation> {
  const { cluster, home, signal, action } = options;
  const values = { a_home: home ?? "", a_unit: unitName(cluster), a_action: action };
  const answer = accepted(await remote.run(SCRIPT, { values, signal }), SCRIPT);
  const before = answer.last("before") || null;
  const asked = answer.last("adopted") !== null ? "adopted" : answer.one("enqueued") === "yes" ? "enqueued" : "nothing";
  const changed = (status: ServiceStatus): boolean => action === "start" || asked === "adopted" || status.unit?.invocation_id !== before;
  return { asked, before, ...(await observe(remote, options, (status) => status.state === "ready" && changed(status))) };
}

export interface ObserveOptions extends ServicePlace {
  readonly clock: Clock;
  /** Called with each look at it. */
  readonly onLook?: (status: ServiceStatus) => void;
  readonly observeMs?: number;
}

/**
 * Look at a service until it is as wanted, or the time is over.
 *
 * @throws RelayError service_failed when the manager gives up, or there is none any more; as serviceStatus
 */
export async function observe(
  remote: Remote,
  options: ObserveOptions,
  wanted: (status: ServiceStatus) => boolean,
): Promise<{ readonly outcome: "ready" | "in-progress"; readonly status: ServiceStatus }> {
  const { cluster, clock, signal } = options;
  const deadline = clock.monotonic() + (options.observeMs ?? OBSERVE_MS);
  for (;;) {
    const status = await serviceStatus(remote, options);
    options.onLook?.(status);
    if (wanted(status)) return { outcome: "ready", status };
    if (status.state === "failed" || status.state === "not-installed") {
      throw new RelayError("service_failed", `the service of ${cluster} is ${status.state}: ${status.unit?.result ?? "it is not there"}`, {
        unit: unitName(cluster),
        result: status.unit?.result ?? null,
      });
    }
    if (clock.monotonic() >= deadline) return { outcome: "in-progress", status };
    await pause(LOOK_EVERY_MS, signal);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener("abort", stop, { once: true });
  });
}
