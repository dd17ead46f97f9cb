import { type ErrorCode, isRelayError } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { deliver, type Place } from "../../../src/transport/bootstrap/install.ts";
import { program, remoteAt } from "./host.ts";

export const PLACE: Place = { home: null, signal: new AbortController().signal };
/** An installation of this executable in the usual place of a home, as bootstrap makes one. */
export const put = (home: string, artifact = program("1.0.0"), host = {}) => deliver(remoteAt(home, host), artifact, PLACE, systemClock);

/** The error of this code that the work ends with. */
export async function failure(work: Promise<unknown>, code: ErrorCode) {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  if (!isRelayError(error, code)) throw new Error(`expected ${code}`, { cause: error });
  return error;
}
