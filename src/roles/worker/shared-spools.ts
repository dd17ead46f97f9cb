import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import type { SchedulerJob } from "../../domain/scheduler.ts";
import { jobDirectory } from "../../execution/attempt-dir.ts";
import { writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { readSmallFile } from "../../lib/files/regular-file.ts";
import type { QueueStore } from "../../queue/store.ts";

/** Beside the queue: shared spools that jobs of it may lie in, one a line, the newest first; before each what marks it, where it was marked. */
const FILE = "shared-spools";
const MAX_BYTES = 64 * 1024;
const KEPT = 16;
/** In each of them, with a word that no other has: a mount point whose file system is not there has none, or another one. */
const MARK = ".clio-relay-spool";
const WORD = /^[0-9a-f]{32}$/;

interface Known {
  readonly place: string;
  /** Null for one that was never marked. */
  readonly word: string | null;
}

/**
 * Remember the shared spool that new jobs get, which exists, and say which ones earlier jobs may lie in.
 *
 * @throws RelayError configuration_error where one of all these is not there, while something may still go on at a scheduler: what lies in there says whether it
 *   runs
 */
export async function earlierSpools(
  coreDir: string,
  current: string | null,
  store: Pick<QueueStore, "openSchedulerJobs">,
): Promise<readonly string[]> {
  const file = path.join(coreDir, FILE);
  const text = readSmallFile(file, MAX_BYTES) ?? "";
  const known = text.split("\n").flatMap(knownIn);
  const doubtful = known.filter((one) => !isMarked(one));
  if (doubtful.length > 0) refuseWithout(doubtful, await store.openSchedulerJobs());
  const earlier = known
    .filter(({ place }) => place !== current)
    .map((one) => (one.word === null && hasAny(one.place) ? { ...one, word: marked(one.place) } : one));
  const all = [...(current === null ? [] : [{ place: current, word: marked(current) }]), ...earlier].slice(0, KEPT);
  const next = all.map(({ place, word }) => `${word === null ? "" : `${word} `}${place}\n`).join("");
  if (next !== text) writeFileAtomic(file, next);
  return earlier.map(({ place }) => place);
}

/**
 * Why nothing can be told from an attempt's directory now; null where it can. Nothing is to be written there meanwhile, either: compute nodes do not see it, and it is
 * hidden when the file system comes back.
 *
 * @param directory of an attempt in an allocation
 * @param spoolDir the cluster's own spool
 */
export function spoolAway(directory: string, spoolDir: string): string | null {
  const jobDir = path.dirname(directory);
  const spool = path.dirname(jobDir);
  if (spool === spoolDir || fs.existsSync(jobDir) || wordIn(spool) !== null) return null;
  return `${spool} is not there, or its file system is not mounted (it lacks ${MARK}): what became of the job cannot be told without it`;
}

function knownIn(line: string): Known[] {
  const [, word = null, place = ""] = /^(?:([0-9a-f]{32}) )?(\/.*)$/.exec(line) ?? [];
  return path.isAbsolute(place) ? [{ place, word }] : [];
}

const wordIn = (place: string): string | null => {
  const word = readSmallFile(path.join(place, MARK), MAX_BYTES)?.trim() ?? "";
  return WORD.test(word) ? word : null;
};

const isMarked = ({ place, word }: Known): boolean => word !== null && wordIn(place) === word;

/** Mark a spool, unless it is. */
function marked(place: string): string {
  const known = wordIn(place);
  if (known !== null) return known;
  const word = crypto.randomUUID().replaceAll("-", "");
  writeFileAtomic(path.join(place, MARK), `${word}\n`);
  return word;
}

function refuseWithout(doubtful: readonly Known[], open: readonly SchedulerJob[]): void {
  if (open.length === 0) return;
  const missing = doubtful.find(({ place, word }) => !(word === null ? hasAny(place) : hasJob(place, open)));
  if (missing === undefined) return;
  const { place, word } = missing;
  const isThere = fs.existsSync(place);
  throw new RelayError(
    "configuration_error",
    `${place}, where jobs of the scheduler write, is not there${isThere ? ": its file system is not mounted" : ""}; whether they run cannot be told without it`,
    { path: place, job_ids: open.slice(0, 10).map(({ job_id }) => job_id) },
    isThere
      ? `mount it${word === null ? "" : `; where it was emptied on purpose, write ${word} into ${path.join(place, MARK)}`}`
      : "CLIO_RELAY_SHARED_SPOOL_DIR may name another directory once that one is there, too",
  );
}

/** What was never marked and holds something is no empty mount point. */
const hasAny = (place: string): boolean => fs.existsSync(place) && fs.readdirSync(place).length > 0;

const hasJob = (place: string, open: readonly SchedulerJob[]): boolean =>
  open.some(({ job_id }) => fs.existsSync(jobDirectory(place, job_id)));
