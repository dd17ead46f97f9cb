import type { UploadKey } from "../../domain/input.ts";
import { flushPart } from "../../execution/input-part.ts";
import { partName } from "../../execution/input-place.ts";

/** By so many bytes a part grows before what has come of it is flushed. */
const EVERY_BYTES = 16 * 2 ** 20;

/** Has what came of parts written to the disk while more comes, so that at their end little is left to wait for. One at a time, since each holds one of few threads. */
export class PartFlushes {
  #current: { readonly name: string; readonly done: Promise<void> } | null = null;
  readonly #failed = new Map<string, unknown>();

  constructor(
    private readonly spoolDir: string,
    private readonly flush: typeof flushPart = flushPart,
    private readonly everyBytes = EVERY_BYTES,
  ) {}

  /** A part has grown from one length to another. */
  grown(key: UploadKey, from: number, to: number): void {
    if (this.#current !== null || Math.floor(to / this.everyBytes) === Math.floor(from / this.everyBytes)) return;
    const name = partName(key);
    const done = this.flush(this.spoolDir, key)
      // The system says it once, to whoever flushes first: bytes may be lost (fsync(2), EIO).
      .catch((error: unknown) => void this.#failed.set(name, error))
      .finally(() => {
        this.#current = null;
      });
    this.#current = { name, done };
  }

  /** Whether a flush of a part has failed since it was last asked. @throws what it failed with */
  check(key: UploadKey): void {
    const name = partName(key);
    if (!this.#failed.has(name)) return;
    const failure = this.#failed.get(name);
    this.#failed.delete(name);
    throw failure;
  }

  /** The same, when no flush of it is under way any more. */
  async settled(key: UploadKey): Promise<void> {
    if (this.#current?.name === partName(key)) await this.#current.done;
    this.check(key);
  }

  /** The part is gone. */
  forget(key: UploadKey): void {
    this.#failed.delete(partName(key));
  }
}
