import { type ErrorCode, RelayError } from "../../domain/errors.ts";
import type { UploadKey } from "../../domain/input.ts";
import { giveBack } from "../../lib/system/give-back.ts";
import type { OpenInput } from "./input-file.ts";
import { AGAIN, type Sending, sendContent } from "./send-content.ts";

/** From this size on a file is sent while it is read: in bytes. */
export const AHEAD_BYTES = 8 * 1024 * 1024;
const READ_BYTES = 1024 * 1024;

/** What keeps a file from being sent under a provisional name, and from nothing else: among it that the worker knows no such names. */
const HASH_FIRST: ReadonlySet<ErrorCode> = new Set<ErrorCode>([...AGAIN, "request_validation_failed", "route_not_found"]);

export interface SendingAhead extends Omit<Sending, "key" | "hash"> {
  readonly signal: AbortSignal | undefined;
  /** How many bytes have been read. */
  readonly onRead: (length: number) => void;
}

/**
 * Hash a file, and send it meanwhile, under a provisional name until its digest is known. Where that is not to be had it is hashed only: who asks by its digest
 * finds out what the worker has.
 *
 * @returns the SHA-256 of its bytes
 * @throws RelayError input_changed, local_file_unusable, storage_admission_refused; what `persist` throws
 */
export async function hashSending(sending: SendingAhead): Promise<string> {
  const { client, file, persist, signal, onRead } = sending;
  const key: UploadKey = { sha256: file.provisionalName, size_bytes: file.size, provisional: true };
  await using source = await file.open();
  const hash = new RunningHash(source, sending);
  const sent = await unlessHashedFirst(async () => {
    // By itself, since whoever persists may give up on a way over which nothing ever came.
    if ((await persist(() => client.begin(key))).state === "absent") return false;
    await sendContent({ ...sending, key, hash });
    return true;
  });
  if (!sent && hash.length === 0) return file.digest(onRead, signal);
  await hash.readUpTo(file.size);
  const sha256 = hash.value();
  await source.assertEnd();
  if (sent)
    await unlessHashedFirst(() =>
      persist(async () => (await client.complete(key.sha256, { sha256, size_bytes: file.size })).state === "complete"),
    );
  return sha256;
}

async function unlessHashedFirst(work: () => Promise<boolean>): Promise<boolean> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RelayError && HASH_FIRST.has(error.code)) return false;
    throw error;
  }
}

/** The digest of a file, whose bytes come in order, and some of them again. */
class RunningHash {
  readonly #hash = new Bun.CryptoHasher("sha256");
  #length = 0;

  constructor(
    private readonly source: OpenInput,
    private readonly sending: Pick<SendingAhead, "signal" | "onRead">,
  ) {}

  /** Of how many bytes. */
  get length(): number {
    return this.#length;
  }

  /** What was there before is passed over. */
  add(offset: number, bytes: Uint8Array): void {
    if (offset + bytes.length <= this.#length) return;
    this.#hash.update(bytes.subarray(this.#length - offset));
    this.#length = offset + bytes.length;
  }

  /** Read what is missing up to an offset. */
  async readUpTo(end: number): Promise<void> {
    const memory = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, Math.max(0, end - this.#length)));
    while (this.#length < end) {
      this.sending.signal?.throwIfAborted();
      this.add(this.#length, await this.source.read(this.#length, memory.subarray(0, end - this.#length)));
      this.sending.onRead(this.#length);
    }
    giveBack(memory);
  }

  value(): string {
    return this.#hash.digest("hex");
  }
}
