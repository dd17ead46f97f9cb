import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { ProcessIdentity } from "../domain/attempt.ts";
import { RelayError } from "../domain/errors.ts";
import { Id, Timestamp } from "../domain/primitives.ts";
import { fsyncDirectory, makePrivateDirectory, writeFileAtomic } from "../lib/files/atomic-file.ts";
import { tryLock } from "../lib/files/file-lock.ts";
import { readSmallFile } from "../lib/files/regular-file.ts";
import { type Identity, isAlive } from "../lib/system/process-identity.ts";
import { type Clock, timestamp } from "../lib/waiting/clock.ts";
import { fileSystemFailure } from "./file-failure.ts";
import { refuseOtherKind } from "./queue-files.ts";

/** owner.json: the process that owns the queue in this directory, or the last one that did not let go of it. */
const Owner = v.strictObject({
  ...ProcessIdentity.entries,
  endpoint_id: Id,
  since: Timestamp,
  /** Whether it has the database open, or has taken over from one that had and not opened it yet. */
  database_open: v.optional(v.boolean(), false),
});
export type Owner = v.InferOutput<typeof Owner>;

const OWNER_MAX_BYTES = 16 * 1024;

export interface OwnershipOptions {
  /** This process. */
  readonly identity: Identity;
  readonly endpointId: string;
  /** Take the queue from a host whose process cannot be looked at; needs `confirmHostDead` too. */
  readonly takeOver: boolean;
  readonly confirmHostDead: boolean;
  readonly clock: Clock;
}

export interface Ownership {
  /** The owner before, when it did not let go: it was killed, or its host was. */
  readonly before: Owner | null;
  /** Put on record that the database was opened, or is about to be closed. */
  setDatabaseOpen(open: boolean): void;
  /** Lets go of the queue. Calling it twice is harmless. */
  release(): void;
  /** The same, with nothing of the queue touched: the owner before stays on record. */
  giveBack(): void;
}

/**
 * Become the one owner of the queue in a directory, for as long as this process lives or until it lets go. The lock on `queue.lock` decides among
 * processes of one kernel; `owner.json` names the owner, and holds against other hosts, whose locks a network file system may not carry.
 *
 * @throws RelayError queue_owned with hostname, pid, since and endpoint_id of the owner, where they are known; queue_unavailable and
 * storage_admission_refused when the directory cannot be used
 */
export const acquireOwnership = (directory: string, options: OwnershipOptions): Ownership =>
  typed(recordOf(directory), () => acquire(directory, options));

const recordOf = (directory: string): string => path.join(directory, "owner.json");

/** What the file system refuses becomes a RelayError. */
function typed<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw fileSystemFailure(error, file) ?? error;
  }
}

function acquire(directory: string, options: OwnershipOptions): Ownership {
  makePrivateDirectory(directory);
  const record = recordOf(directory);
  const lockFile = path.join(directory, "queue.lock");
  refuseOtherKind(lockFile);
  const lock = typed(lockFile, () => tryLock(lockFile));
  if (lock === null) throw held(directory, readOwner(record));
  let before: Owner | null = null;
  let mine: Owner;
  const write = (owner: Owner): void => writeFileAtomic(record, `${JSON.stringify(owner)}\n`);
  try {
    const owner = readOwner(record);
    if (owner !== null) refuseWhileOwned(directory, owner, options);
    before = owner === "unreadable" ? null : owner;
    const { pid, start_time, boot_id, hostname } = options.identity;
    mine = {
      hostname,
      boot_id,
      pid,
      start_time,
      endpoint_id: options.endpointId,
      since: timestamp(options.clock),
      database_open: before?.database_open ?? false,
    };
    write(mine);
  } catch (error) {
    lock.release();
    throw error;
  }
  let owned = true;
  const letGo = (leave: () => void): void => {
    if (!owned) return;
    owned = false;
    try {
      leave();
    } finally {
      lock.release();
    }
  };
  const remove = (): void => {
    fs.rmSync(record, { force: true });
    fsyncDirectory(directory);
  };
  return {
    before,
    setDatabaseOpen: (open) => typed(record, () => write({ ...mine, database_open: open })),
    release: () => letGo(remove),
    giveBack: () => letGo(before === null ? remove : () => write(before)),
  };
}

type OwnerRecord = Owner | "unreadable";

function readOwner(file: string): OwnerRecord | null {
  try {
    const text = readSmallFile(file, OWNER_MAX_BYTES);
    if (text === null) return null;
    const parsed = v.safeParse(Owner, JSON.parse(text));
    return parsed.success ? parsed.output : "unreadable";
  } catch {
    return "unreadable";
  }
}

/** The lock is ours. What the record says of an owner that may live all the same decides. */
function refuseWhileOwned(directory: string, owner: OwnerRecord, { identity, takeOver, confirmHostDead }: OwnershipOptions): void {
  const insisted = takeOver && confirmHostDead;
  if (owner === "unreadable") {
    if (insisted) return;
    throw new RelayError(
      "queue_owned",
      `${recordOf(directory)} cannot be read, so it is not known who owns this queue`,
      {},
      TAKE_OVER_HINT,
    );
  }
  // Of one boot is of one kernel, by whatever name, and that kernel has given us the lock.
  const sameHost = owner.hostname === identity.hostname || (owner.boot_id !== "" && owner.boot_id === identity.boot_id);
  if (sameHost) {
    if (isAlive(owner)) throw held(directory, owner);
    return;
  }
  if (insisted) return;
  throw new RelayError(
    "queue_owned",
    `${describe(owner)} owns the queue in ${directory}; that is another host, so it cannot be seen from here whether it still runs`,
    dataOf(owner),
    TAKE_OVER_HINT,
  );
}

const TAKE_OVER_HINT = "make sure that no worker runs on that host, then start with --take-over --confirm-host-dead";

function held(directory: string, owner: OwnerRecord | null): RelayError {
  const named = owner !== null && owner !== "unreadable";
  return new RelayError(
    "queue_owned",
    `${named ? describe(owner) : "another process, which has not said its name yet,"} owns the queue in ${directory}`,
    named ? dataOf(owner) : {},
  );
}

const describe = ({ hostname, pid, since }: Owner): string => `process ${pid} on ${hostname}, since ${since},`;

const dataOf = ({ hostname, pid, since, endpoint_id }: Owner) => ({ hostname, pid, since, endpoint_id });
