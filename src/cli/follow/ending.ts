import type { Door } from "../../api/client/http-peer.ts";
import { RelayError } from "../../domain/errors.ts";
import type { CliIo } from "../io.ts";

/**
 * How a request is ended that changes something, while its answer is outstanding: Ctrl-C and TERM give it up, with request_interrupted as its failure. A second
 * one ends the process at once.
 */
export const endedBySignals =
  ({ onSignal }: Pick<CliIo, "onSignal">): NonNullable<Door["ending"]> =>
  (repeatable) => {
    const controller = new AbortController();
    const off: (() => void)[] = [];
    const done = (): void => {
      for (const remove of off.splice(0)) remove();
    };
    const stop = (): void => {
      controller.abort(interrupted(repeatable));
      done();
    };
    off.push(onSignal("SIGINT", stop), onSignal("SIGTERM", stop));
    return { signal: controller.signal, done };
  };

const interrupted = (repeatable: boolean): RelayError =>
  new RelayError(
    "request_interrupted",
    "interrupted before the answer came; whether the request was taken on is not known",
    {},
    repeatable ? "the same command again does nothing twice" : undefined,
  );
