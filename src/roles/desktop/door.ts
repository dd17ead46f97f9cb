import type { Address, Door } from "../../api/client/http-peer.ts";
import { registryHeader } from "../../api/desktop/installation-check.ts";
import { Unproven } from "../../api/listener/unproven.ts";
import type { Environment } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { checkRunDirectory } from "../../config/run-directory.ts";
import { RelayError } from "../../domain/errors.ts";
import { nobodyListens } from "../probe.ts";

/** When a request that got no answer yet makes one ask whether the daemon lives. */
const SILENT_MS = 5_000;

export interface DoorOptions {
  readonly paths: Paths;
  readonly env: Environment;
  readonly listen: "unix" | "tcp";
  /** Start the daemon and return when it answers. */
  readonly start: () => Promise<void>;
  readonly ending?: Door["ending"];
}

/**
 * The way in to the desktop daemon, which is started when nobody answers. Cheap as long as somebody does: the modules that
 * start a daemon load only then.
 */
export function desktopDoor({ paths, env, listen, start, ending }: DoorOptions): Door {
  const onUnix: Address = { kind: "unix", path: paths.desktopSocket };
  let found: Address | null = null;
  return {
    headers: registryHeader(paths.clustersFile),
    ...(ending === undefined ? {} : { ending }),
    liveness: {
      everyMs: SILENT_MS,
      probe: async () => (await import("./start.ts")).answers(paths, env),
    },
    async address() {
      if (found !== null) return found;
      checkRunDirectory(paths, env);
      found = listen === "unix" ? onUnix : await recorded(paths, env);
      if (found === null) throw new NotRunning("no daemon has said where it listens");
      return found;
    },
    async reopen(failure, repeatable) {
      // A connection that was refused carried nothing, nor did one to a stranger; one that broke may have.
      const refused = nobodyListens(failure) || failure instanceof NotRunning || failure instanceof Unproven;
      if (failure instanceof RelayError || (!refused && !repeatable)) return false;
      await start();
      // One that somebody else started may listen in the other way.
      found = (await recorded(paths, env)) ?? onUnix;
      return true;
    },
  };
}

class NotRunning extends Error {}

async function recorded(paths: Paths, env: Environment): Promise<Address | null> {
  const { addressOf, readDaemonRecord } = await import("./address-file.ts");
  const record = readDaemonRecord(paths, env);
  return record === null ? null : addressOf(paths, record);
}
