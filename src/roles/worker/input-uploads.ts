import { RelayError } from "../../domain/errors.ts";
import type { ContentKey, Upload, UploadKey } from "../../domain/input.ts";
import { LIMITS } from "../../domain/limits.ts";
import { completeContent, hasContent, touchContent } from "../../execution/input-content.ts";
import { appendPart, beginPart, hashPart, partLength, removePart, touchPart } from "../../execution/input-part.ts";
import { type InputEntry, listInputs, partName } from "../../execution/input-place.ts";
import { giveBack } from "../../lib/system/give-back.ts";
import { Bell } from "../../lib/waiting/bell.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { Notifier } from "../../lib/waiting/notifier.ts";
import { Turns } from "../../lib/waiting/turns.ts";
import { PartFlushes } from "./part-flushes.ts";
import { writingSpool } from "./writing-spool.ts";

/** How long a piece waits for those before it, in milliseconds. */
const PREDECESSORS_MS = 10_000;
/** Parts of which is known how far they have come, with their digest so far; of others that is looked up, and computed, when it is needed. */
const KNOWN_MAX = 64;

export interface InputUploadsOptions {
  readonly spoolDir: string;
  readonly clock: Clock;
  /** @throws RelayError storage_admission_refused where the spool has no room for so many more bytes */
  readonly admit: (bytes: number) => void;
  readonly predecessorsMs?: number;
  readonly flushes?: PartFlushes;
}

/** What the last piece of a part has left. */
interface Known {
  /** Of all of its bytes; null where it was begun before. */
  readonly hash: Bun.CryptoHasher | null;
  readonly length: number;
}

/** Contents that come in pieces. What has come is what lies in the spool; docs/staging.md. */
export class InputUploads {
  readonly #locks = new Map<string, Promise<unknown>>();
  /** By the part's name, the one that grew last at the end. */
  readonly #known = new Map<string, Known>();
  readonly #changes = new Notifier<string>();
  readonly #pieces = new Turns(LIMITS.inputChunks);

  readonly #flushes: PartFlushes;

  constructor(private readonly options: InputUploadsOptions) {
    this.#flushes = options.flushes ?? new PartFlushes(options.spoolDir);
  }

  /** How much of the content is there. It is kept for another day. */
  stand(key: UploadKey): Upload {
    const { spoolDir, clock } = this.options;
    const now = new Date(clock.now());
    if (key.provisional !== true && hasContent(spoolDir, key)) {
      touchContent(spoolDir, key.sha256, now);
      return uploadOf(key, "complete", key.size_bytes);
    }
    const length = partLength(spoolDir, key);
    if (length === null) return uploadOf(key, "absent", 0);
    touchPart(spoolDir, key, now);
    return uploadOf(key, "partial", length);
  }

  /**
   * Begin, or go on. Under a provisional name nothing is begun where a content or a part may be the same.
   *
   * @throws RelayError storage_admission_refused, input_ingest_refused for an empty content with another digest
   */
  begin(key: UploadKey): Promise<{ readonly upload: Upload; readonly begun: boolean }> {
    return this.exclusive(key, async () => {
      const before = this.stand(key);
      if (before.state === "complete") return { upload: before, begun: false };
      const entries = listInputs(this.options.spoolDir);
      if (key.provisional && before.state === "absent" && entries.some((entry) => mayBe(entry.key, key)))
        return { upload: before, begun: false };
      this.#admit(key, before, entries);
      if (before.state === "absent") await beginPart(this.options.spoolDir, key);
      if (before.offset === key.size_bytes && !key.provisional) await this.#complete(key);
      return { upload: this.stand(key), begun: before.state === "absent" };
    });
  }

  /**
   * Take a piece, when those before it are there.
   *
   * @param read gives its bytes, which are nobody else's; called when it is its turn
   * @throws RelayError input_ingest_conflict, input_ingest_refused, input_ingest_unavailable, storage_admission_refused; what `read` throws
   */
  async piece(key: UploadKey, offset: number, read: () => Promise<Uint8Array>): Promise<Upload> {
    await writingSpool(() => this.#predecessors(key, offset));
    return this.#pieces.run(async () => {
      const bytes = await read();
      const upload = await this.exclusive(key, () => this.#append(key, offset, bytes));
      giveBack(bytes);
      return upload;
    });
  }

  /** Take all of a content at once. @throws as `begin` and `piece` do */
  async take(key: ContentKey, bytes: Uint8Array): Promise<void> {
    await this.begin(key);
    await this.exclusive(key, () => this.#append(key, 0, bytes));
  }

  /** Give up what has come of a content that is not complete. */
  giveUp(key: UploadKey): Promise<Upload> {
    return this.exclusive(key, async () => {
      removePart(this.options.spoolDir, key);
      this.#changed(key, null);
      return this.stand(key);
    });
  }

  /**
   * What came under a provisional name is this content, or is not needed since the content is there.
   *
   * @throws RelayError input_ingest_conflict where not all has come, input_ingest_refused where it has another digest, input_ingest_unavailable
   */
  complete(name: string, key: ContentKey): Promise<Upload> {
    const came: UploadKey = { sha256: name, size_bytes: key.size_bytes, provisional: true };
    return this.exclusive(came, () =>
      this.exclusive(key, async () => {
        if (this.stand(key).state === "complete") removePart(this.options.spoolDir, came);
        else {
          const reached = this.#begunUpTo(came);
          if (reached < key.size_bytes) throw outOfOrder(came, reached);
          await this.#complete(key, came);
        }
        this.#changed(came, null);
        return this.stand(key);
      }),
    );
  }

  /** Do something with a content, or with what may become one, that nobody else changes meanwhile. @throws as writingSpool */
  async exclusive<T>({ sha256: name, provisional }: Pick<UploadKey, "sha256" | "provisional">, work: () => Promise<T>): Promise<T> {
    const sha256 = provisional ? `${name} provisional` : name;
    const before = this.#locks.get(sha256) ?? Promise.resolve();
    const mine = before.then(() => writingSpool(work));
    const over = mine.catch(() => undefined);
    this.#locks.set(sha256, over);
    try {
      return await mine;
    } finally {
      if (this.#locks.get(sha256) === over) this.#locks.delete(sha256);
    }
  }

  async #predecessors(key: UploadKey, offset: number): Promise<void> {
    const { clock, predecessorsMs = PREDECESSORS_MS } = this.options;
    const deadline = clock.monotonic() + predecessorsMs;
    const change = new Bell();
    const unsubscribe = this.#changes.subscribe(partName(key), () => change.ring());
    try {
      for (;;) {
        const reached = this.#known.get(partName(key))?.length ?? this.#begunUpTo(key);
        if (offset <= reached) return;
        const left = deadline - clock.monotonic();
        if (left <= 0) throw outOfOrder(key, this.#begunUpTo(key));
        await change.wait(left);
      }
    } finally {
      unsubscribe();
    }
  }

  /** @throws RelayError input_ingest_unavailable */
  #begunUpTo(key: UploadKey): number {
    const { state, offset } = this.stand(key);
    if (state === "absent") throw notBegun(key);
    return offset;
  }

  async #append(key: UploadKey, offset: number, bytes: Uint8Array): Promise<Upload> {
    // Where one ends that has just grown is known; whoever writes there looks at whether it still does.
    const known = this.#known.get(partName(key));
    const { state, offset: reached } = known === undefined ? this.stand(key) : uploadOf(key, "partial", known.length);
    if (state === "complete") return this.stand(key);
    if (state === "absent") throw notBegun(key);
    if (offset > reached) throw outOfOrder(key, reached);
    if (offset + bytes.length > key.size_bytes) throw refused(key, `a piece ends behind the content's ${key.size_bytes} bytes`);
    const fresh = bytes.subarray(reached - offset);
    if (fresh.length > 0) {
      this.options.admit(0);
      await this.#write(key, reached, fresh);
    }
    const length = reached + fresh.length;
    if (length < key.size_bytes || key.provisional) return uploadOf(key, "partial", length);
    await this.#complete(key);
    return this.stand(key);
  }

  /** Hashed while the system writes. */
  async #write(key: UploadKey, at: number, bytes: Uint8Array): Promise<void> {
    const known = this.#known.get(partName(key));
    const hash = at === 0 ? new Bun.CryptoHasher("sha256") : known?.length === at ? known.hash : null;
    const append = () => appendPart(this.options.spoolDir, key, at, bytes, () => void hash?.update(bytes));
    try {
      await this.#orThrownAway(key, async () => this.#flushes.check(key));
      if (!(await append())) throw outOfOrder(key, this.#begunUpTo(key));
    } catch (error) {
      // The hash may be ahead of what is there.
      this.#changed(key, null);
      throw error;
    }
    this.#changed(key, { hash, length: at + bytes.length });
    this.#flushes.grown(key, at, at + bytes.length);
  }

  /** What could not be flushed is nobody's content: the system may have lost any of it. */
  async #orThrownAway(key: UploadKey, flushed: () => Promise<void>): Promise<void> {
    try {
      await flushed();
    } catch (error) {
      removePart(this.options.spoolDir, key);
      this.#changed(key, null);
      throw error;
    }
  }

  /** @param part where its bytes are, all of them */
  async #complete(key: ContentKey, part: UploadKey = key): Promise<void> {
    const { spoolDir } = this.options;
    await this.#orThrownAway(part, () => this.#flushes.settled(part));
    const known = this.#known.get(partName(part));
    const found = known?.length === key.size_bytes && known.hash !== null ? known.hash.digest("hex") : await hashPart(spoolDir, part);
    this.#known.delete(partName(part));
    if (found !== key.sha256) {
      removePart(spoolDir, part);
      this.#changed(part, null);
      throw refused(key, "the bytes that came have another SHA-256; all of them are thrown away", { found_sha256: found });
    }
    await completeContent(spoolDir, key, part);
    if (part !== key) removePart(spoolDir, key);
    this.#changed(key, null);
  }

  /** Room for what is missing of it, and of the others that have begun. */
  #admit(key: UploadKey, { offset, state }: Upload, entries: readonly InputEntry[]): void {
    const { spoolDir, admit } = this.options;
    let others = 0;
    let missing = 0;
    for (const { kind, name, key: other } of entries) {
      if (kind !== "part" || name === partName(key)) continue;
      others++;
      missing += other.size_bytes - (partLength(spoolDir, other) ?? 0);
    }
    if (state === "absent" && others >= LIMITS.inputUploads) {
      throw new RelayError(
        "storage_admission_refused",
        `${others} uploads have begun and are not complete, as many as may`,
        { storage_decision: { allowed: false, reason: "ledger_capacity", uploads: others, uploads_max: LIMITS.inputUploads } },
        "those to which nothing is added are removed after a day",
      );
    }
    admit(key.size_bytes - offset + missing);
  }

  /** @param known what is known of the part now; null: nothing any more */
  #changed(key: UploadKey, known: Known | null): void {
    const name = partName(key);
    this.#known.delete(name);
    if (known === null) this.#flushes.forget(key);
    else {
      this.#known.set(name, known);
      for (const oldest of this.#known.keys()) {
        if (this.#known.size <= KNOWN_MAX) break;
        this.#known.delete(oldest);
      }
    }
    this.#changes.notify(name);
  }
}

const uploadOf = (key: UploadKey, state: Upload["state"], offset: number): Upload => ({
  ...key,
  state,
  offset,
  chunk_max_bytes: LIMITS.inputChunkBytes,
});

/** Whether what is uploaded under a provisional name can turn out to be this. */
const mayBe = (known: UploadKey, { size_bytes }: UploadKey): boolean => !known.provisional && known.size_bytes === size_bytes;

const refused = (key: UploadKey, why: string, data: Record<string, unknown> = {}): RelayError =>
  new RelayError("input_ingest_refused", why, { ...key, ...data });

const notBegun = (key: UploadKey): RelayError =>
  new RelayError("input_ingest_unavailable", "no upload of this content has begun", { ...key }, "POST /input-uploads begins one");

const outOfOrder = (key: UploadKey, reached: number): RelayError =>
  new RelayError("input_ingest_conflict", `the next piece has to begin at byte ${reached}, or before it`, { ...key, offset: reached });
