import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { ContentKey, InputRecord, Upload } from "../../domain/input.ts";
import type { Owner } from "../../domain/job.ts";
import { Turns } from "../../lib/waiting/turns.ts";
import type { InputClient } from "../client/input-client.ts";
import type { InputFile } from "./input-file.ts";
import { AHEAD_BYTES, hashSending } from "./send-ahead.ts";
import { sendContent } from "./send-content.ts";

/** Up to this size a file goes with its record, in one request. */
const INLINE_BYTES = 256 * 1024;
/** Records that are asked for at a time. */
const RECORDS_AT_ONCE = 4;
/** How often a content may turn out not to be there, when it was there a moment ago. */
const TRIES = 3;

/** A file that is to be staged. */
export interface Candidate {
  readonly logicalName: string;
  readonly file: InputFile;
}

/** A file whose bytes have been read. */
export interface Snapshot extends Candidate {
  readonly key: ContentKey;
}

export interface StagingProgress {
  /** Bytes of `total` have been read, or are with the worker. */
  readonly doing: "reading" | "sending";
  readonly bytes: number;
  readonly total: number;
}

export interface StagingOptions {
  /** Repeats what the way fails, for as long as the way may come back. */
  readonly persist: <T>(work: () => Promise<T>) => Promise<T>;
  readonly onProgress: (progress: StagingProgress) => void;
  /** Whose the artifacts are to be: the job's that will use them. */
  readonly owner?: Owner;
  readonly signal?: AbortSignal;
}

/**
 * Read and hash files.
 *
 * @param client where they are to go: large ones are sent while they are read
 * @throws RelayError input_changed, local_file_unusable; with a client also storage_admission_refused, and what `persist` throws
 */
export async function snapshots(
  candidates: readonly Candidate[],
  { onProgress, persist, signal }: StagingOptions,
  client?: InputClient,
): Promise<Snapshot[]> {
  const total = candidates.reduce((sum, { file }) => sum + file.size, 0);
  const taken: Snapshot[] = [];
  let before = 0;
  for (const candidate of candidates) {
    const { file } = candidate;
    const at = (doing: StagingProgress["doing"]) => (length: number) => onProgress({ doing, bytes: before + length, total });
    const sha256 =
      client !== undefined && file.size >= AHEAD_BYTES
        ? await hashSending({ client, file, persist, signal, onOffset: at("sending"), onRead: at("reading") })
        : await file.digest(at("reading"), signal);
    before += file.size;
    taken.push({ ...candidate, key: { sha256, size_bytes: file.size } });
  }
  return taken;
}

/**
 * Bring files to a worker and have each recorded as an artifact. What is there is not sent; what was begun goes on.
 *
 * @param generationOf which artifact of that content and name is meant, from 1: another one when that has been removed, or may have no more consumers
 * @returns the records, in the order of the files
 * @throws RelayError input_changed, input_ingest_refused, storage_admission_refused; what `persist` throws
 */
export async function stage(
  client: InputClient,
  files: readonly Snapshot[],
  generationOf: (file: Snapshot) => number,
  options: StagingOptions,
): Promise<InputRecord[]> {
  if (files.length === 0) return [];
  const distinct = [...new Map(files.map((file) => [file.key.sha256, file])).values()];
  const stand = await options.persist(() =>
    client.query(distinct.map(({ key }) => key)).catch((error: unknown) => {
      throw isRelayError(error, "route_not_found") ? tooOld(client.cluster) : error;
    }),
  );
  const progress = new SendProgress(stand, options.onProgress);
  const absent = new Set<string>();
  for (const [index, file] of distinct.entries()) {
    const { state } = stand[index]!;
    if (state === "absent" && file.key.size_bytes <= INLINE_BYTES) absent.add(file.key.sha256);
    else if (state !== "complete") await send(client, file, options, progress);
  }
  const turns = new Turns(RECORDS_AT_ONCE);
  return Promise.all(
    files.map((file) =>
      turns.run(async () => {
        const withContent = absent.delete(file.key.sha256);
        const record = await recorded(client, file, generationOf(file), withContent, options, progress);
        if (withContent) progress.at(file.key, file.key.size_bytes);
        return record;
      }),
    ),
  );
}

const tooOld = (cluster: string): RelayError =>
  new RelayError(
    "version_mismatch",
    `the worker of ${cluster} is of a version that takes no inputs`,
    { cluster },
    `clio-relay cluster bootstrap ${cluster} brings the one of this side`,
  );

const send = (client: InputClient, { file, key }: Snapshot, { persist }: StagingOptions, progress: SendProgress): Promise<void> =>
  sendContent({ client, file, key, persist, onOffset: (offset) => progress.at(key, offset) });

async function recorded(
  client: InputClient,
  file: Snapshot,
  firstGeneration: number,
  withContent: boolean,
  options: StagingOptions,
  progress: SendProgress,
): Promise<InputRecord> {
  let inline = withContent;
  let tries = TRIES;
  for (let generation = firstGeneration; ; ) {
    const described = {
      logical_name: file.logicalName,
      ...file.key,
      ...options.owner,
      idempotency_key: ["input", generation, ...generationKey(options.owner), file.key.sha256, file.logicalName].join(":"),
    };
    try {
      const content = inline ? await file.file.bytes(file.key.sha256) : null;
      return await options.persist(() => (content === null ? client.record(described) : client.ingest(described, content)));
    } catch (error) {
      if (isRelayError(error, "job_submission_conflict") && error.data["retired"] === true) generation += 1;
      else if (isRelayError(error, "payload_too_large") && inline) {
        inline = false;
        await send(client, file, options, progress);
      } else if (isRelayError(error, "input_ingest_unavailable") && --tries > 0) await send(client, file, options, progress);
      else throw error;
    }
  }
}

/** Keys are a session's, and what it has staged in one of its generations is not to be used in another. */
const generationKey = ({ owner_session_generation_id: generation }: Partial<Owner> = {}): string[] => (generation ? [generation] : []);

/** How far all contents together have come. */
class SendProgress {
  readonly #offsets: Map<string, number>;
  readonly #total: number;

  constructor(
    stand: readonly Upload[],
    private readonly onProgress: StagingOptions["onProgress"],
  ) {
    const missing = stand.filter(({ state }) => state !== "complete");
    this.#offsets = new Map(missing.map(({ sha256, offset }) => [sha256, offset]));
    this.#total = missing.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  }

  at({ sha256 }: ContentKey, offset: number): void {
    if (!this.#offsets.has(sha256)) return;
    this.#offsets.set(sha256, offset);
    this.onProgress({ doing: "sending", bytes: [...this.#offsets.values()].reduce((sum, one) => sum + one, 0), total: this.#total });
  }
}
