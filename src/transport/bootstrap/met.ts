import * as v from "valibot";
import { mayYetBeMet, type NotMet, notMet } from "../../domain/met.ts";
import { WorkerStatus } from "../../domain/views.ts";
import type { Remote } from "../script/remote.ts";
import { runRelay, type Whereabouts } from "./relay-command.ts";

/** How long a worker may take to be where it is met, and how often it is asked; milliseconds. */
const WITHIN_MS = 15_000;
const ASK_MS = 500;

/** What is looked at; one of another version may say more. */
const Answer = v.object({ workers: v.array(v.object({ met_at: WorkerStatus.entries.met_at, frp: WorkerStatus.entries.frp })) });

/**
 * Wait until the worker of a host is where desktops meet it, for a bounded time.
 *
 * @returns where it is not, and why; null where it is, or meets nobody
 * @throws RelayError as runRelay
 */
export async function whenMet(
  remote: Remote,
  {
    cluster,
    withinMs = WITHIN_MS,
    ...place
  }: Whereabouts & { readonly cluster: string; readonly signal: AbortSignal; readonly withinMs?: number },
): Promise<NotMet | null> {
  for (const deadline = performance.now() + withinMs; ; ) {
    const answer = v.safeParse(Answer, await runRelay(remote, { ...place, args: ["worker", "status", "--cluster", cluster] }));
    const [worker] = answer.success ? answer.output.workers : [];
    const missing = worker === undefined ? null : notMet(worker);
    if (missing === null || !mayYetBeMet(missing) || performance.now() > deadline) return missing;
    await Bun.sleep(ASK_MS);
  }
}
