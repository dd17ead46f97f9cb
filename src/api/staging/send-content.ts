import { type ErrorCode, RelayError } from "../../domain/errors.ts";
import type { Upload, UploadKey } from "../../domain/input.ts";
import { giveBack } from "../../lib/system/give-back.ts";
import type { InputClient } from "../client/input-client.ts";
import type { InputFile, OpenInput } from "./input-file.ts";

/** Pieces under way at a time; more of them where they are as large as they may be, and together no more than this: then the path is fast, and may be long. */
const UNDER_WAY = 4;
const FAST_BYTES = 8 * 1024 * 1024;
const LEAST_BYTES = 64 * 1024;
const FIRST_BYTES = 256 * 1024;
/** A piece that comes through faster may be larger, a slower one has to be smaller, so that a small request is not held up behind it; milliseconds. */
const FAST_MS = 100;
const SLOW_MS = 400;
/** How often an upload may have to begin again without having come any further. */
const TRIES = 5;

/** What is worth another try. */
export const AGAIN: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "input_ingest_conflict",
  "input_ingest_unavailable",
  "input_ingest_refused",
  "channel_refused",
  "request_timeout",
]);

export interface Sending {
  readonly client: InputClient;
  readonly file: InputFile;
  readonly key: UploadKey;
  /** Repeats what the way fails, for as long as the way may come back. */
  readonly persist: <T>(work: () => Promise<T>) => Promise<T>;
  /** How many bytes of the content are there. */
  readonly onOffset: (offset: number) => void;
  /** Told of all bytes: reads those that are there for itself, and sees the others while they are on their way. */
  readonly hash?: { readUpTo(offset: number): Promise<void>; add(offset: number, bytes: Uint8Array): void };
}

/**
 * Send a content from where it stands to its end. Under a provisional name nothing is sent where the worker begins none.
 *
 * @throws RelayError input_changed, input_ingest_refused, storage_admission_refused; what `persist` throws
 */
export async function sendContent(sending: Sending): Promise<void> {
  const { client, file, key, persist, onOffset } = sending;
  let best = -1;
  for (let left = TRIES; ; ) {
    try {
      const complete = await persist(async () => {
        const upload = await client.begin(key);
        onOffset(upload.offset);
        if (upload.offset > best) left = TRIES;
        best = Math.max(best, upload.offset);
        if (!isMissing(upload)) return true;
        await sending.hash?.readUpTo(upload.offset);
        await using source = await file.open();
        await new Pieces(sending, source, upload).send();
        await source.assertUnchanged();
        return false;
      });
      if (complete) return;
    } catch (error) {
      if (!(error instanceof RelayError) || !AGAIN.has(error.code)) throw error;
      if (error.code === "input_ingest_refused") {
        // What somebody else had sent of it may have been wrong; what this one sent is what the file still holds.
        best = -1;
        await (await file.open())[Symbol.asyncDispose]();
      }
      left -= 1;
      if (left <= 0) throw error;
    }
  }
}

const isMissing = ({ state, offset, size_bytes, provisional }: Upload): boolean =>
  provisional ? state === "partial" && offset < size_bytes : state !== "complete";

/** One go at the rest of a content. */
class Pieces {
  readonly #stop = new AbortController();
  readonly #underWay: Promise<Upload>[] = [];
  /** Memory that no piece is in any more: new memory costs as much as what is done with it. */
  readonly #free: Uint8Array[] = [];
  #next: number;
  #bytes = FIRST_BYTES;

  constructor(
    private readonly sending: Sending,
    private readonly source: OpenInput,
    private readonly upload: Upload,
  ) {
    this.#next = upload.offset;
  }

  async send(): Promise<void> {
    try {
      for (;;) {
        while (this.#underWay.length < this.#most && this.#next < this.upload.size_bytes) await this.#put();
        const first = this.#underWay.shift();
        if (first === undefined) return;
        this.sending.onOffset((await first).offset);
      }
    } catch (error) {
      this.#stop.abort(error);
      await Promise.allSettled(this.#underWay);
      throw error;
    } finally {
      for (const memory of this.#free) giveBack(memory);
    }
  }

  get #most(): number {
    return this.#bytes < this.upload.chunk_max_bytes ? UNDER_WAY : Math.max(UNDER_WAY, Math.floor(FAST_BYTES / this.#bytes));
  }

  async #put(): Promise<void> {
    const offset = this.#next;
    const { size_bytes, chunk_max_bytes } = this.upload;
    const length = Math.min(this.#bytes, chunk_max_bytes, size_bytes - offset);
    const memory = this.#memory(length);
    const bytes = await this.source.read(offset, memory.subarray(0, length));
    this.#next += length;
    const began = performance.now();
    const piece = this.sending.client.put(this.sending.key, offset, bytes, this.#stop.signal).then((upload) => {
      this.#learn(performance.now() - began);
      // Nobody reads it any more. Where it failed somebody may.
      this.#free.push(memory);
      return upload;
    });
    // It fails where it is awaited.
    piece.catch(() => undefined);
    this.#underWay.push(piece);
    this.sending.hash?.add(offset, bytes);
  }

  #memory(length: number): Uint8Array {
    for (let memory = this.#free.pop(); memory !== undefined; memory = this.#free.pop()) {
      if (memory.length >= length) return memory;
      giveBack(memory);
    }
    return Buffer.allocUnsafeSlow(length);
  }

  #learn(ms: number): void {
    if (ms < FAST_MS) this.#bytes = Math.min(this.#bytes * 2, this.upload.chunk_max_bytes);
    else if (ms > SLOW_MS) this.#bytes = Math.max(this.#bytes / 2, LEAST_BYTES);
  }
}
