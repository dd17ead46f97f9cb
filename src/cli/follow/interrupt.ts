import { isRelayError } from "../../domain/errors.ts";
import { Interrupted } from "../failure.ts";
import type { CliIo } from "../io.ts";
import { oneLine } from "../print/safe-text.ts";

/**
 * Do something that Ctrl-C and TERM end in order: the signal is aborted, and when the work has let go, `farewell` is said. A
 * second Ctrl-C ends the process at once.
 *
 * @throws Interrupted when it was interrupted; RelayError request_interrupted
 */
export async function interruptible<T>(io: CliIo, farewell: () => string | null, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const off: (() => void)[] = [];
  const stop = () => {
    controller.abort(new Interrupted());
    for (const remove of off.splice(0)) remove();
  };
  off.push(io.onSignal("SIGINT", stop), io.onSignal("SIGTERM", stop));
  try {
    return await work(controller.signal);
  } catch (error) {
    // What is known of one request says more than the farewell.
    if (!controller.signal.aborted || isRelayError(error, "request_interrupted")) throw error;
    const words = farewell();
    if (words !== null) await io.stderr.write(`${io.stderr.isTerminal ? "\n" : ""}${oneLine(words)}\n`);
    throw new Interrupted();
  } finally {
    for (const remove of off) remove();
  }
}
