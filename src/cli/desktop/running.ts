import fs from "node:fs";
import { DesktopClient } from "../../api/client/desktop-client.ts";
import { checkRunDirectory } from "../../config/run-directory.ts";
import type { ProcessIdentity } from "../../domain/attempt.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { addressOf, readDaemonRecord } from "../../roles/desktop/address-file.ts";
import type { Installation } from "../installation.ts";
import type { CliIo } from "../io.ts";

/** How long a daemon may take to say what it is. */
const ANSWER_MS = 5_000;

export interface RunningDesktop {
  readonly desktop: DesktopClient;
  readonly process: ProcessIdentity;
}

/**
 * The daemon if there is one: as its record says or, where that is gone, as whoever answers on the socket says. Nothing is started.
 *
 * @throws RelayError desktop_unavailable when somebody listens on the socket and does not answer
 */
export async function runningDesktop(io: CliIo, relay: Installation): Promise<RunningDesktop | null> {
  checkRunDirectory(relay.paths, io.env);
  const record = readDaemonRecord(relay.paths, io.env);
  const desktop = new DesktopClient(addressOf(relay.paths, record));
  if (record !== null) return { desktop, process: record.process };
  if (!fs.existsSync(relay.paths.desktopSocket)) return null;
  try {
    const { process } = await answerOf(null, (limit) => desktop.status(limit));
    return { desktop, process };
  } catch (error) {
    if (isRelayError(error, "desktop_unavailable") && !(error instanceof Silent)) return null;
    throw error;
  }
}

/** What the daemon answers, within a bounded time. @throws RelayError desktop_unavailable, naming the process */
export async function answerOf<T>(process: ProcessIdentity | null, ask: (limit: AbortSignal) => Promise<T>): Promise<T> {
  const limit = AbortSignal.timeout(ANSWER_MS);
  try {
    return await ask(limit);
  } catch (error) {
    if (limit.aborted) throw new Silent(process?.pid);
    throw error;
  }
}

/** Somebody takes the connection and says nothing. */
export class Silent extends RelayError {
  constructor(pid: number | undefined) {
    super(
      "desktop_unavailable",
      pid === undefined ? "the desktop daemon does not answer" : `the desktop daemon, process ${pid}, does not answer`,
      pid === undefined ? {} : { pid },
    );
  }
}
