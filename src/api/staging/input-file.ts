import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { namedFileFailure } from "../../config/named-file.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import { isBeneath, type OpenFile, openBeneath } from "../../execution/beneath.ts";
import { goesOnAt, hashFile, sameVersion } from "../../execution/file-hash.ts";
import { sha256Hex } from "../../lib/digest.ts";
import { isErrno } from "../../lib/files/atomic-file.ts";

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;

export interface InputFileOptions {
  /** As the person wrote it, for what is said of it. */
  readonly where: string;
  /** Absolute. */
  readonly path: string;
  /** Nothing outside of it is read. */
  readonly root: string;
  readonly platform: NodeJS.Platform;
}

/** A file below a root, as it was when it was first looked at. It is opened anew for each reading, and has to be that version each time. */
export class InputFile {
  private constructor(
    private readonly options: InputFileOptions,
    private readonly root: string,
    /** Below the root, without links. */
    private readonly relative: string,
    private readonly version: fs.BigIntStats,
  ) {}

  /** @throws RelayError path_escapes_root, local_file_missing, local_file_unusable */
  static async at(options: InputFileOptions): Promise<InputFile> {
    const { where } = options;
    const root = await realPath(options.root, `the root of inputs, ${options.root}`);
    const real = await realPath(options.path, where);
    if (real === root) throw new RelayError("local_file_unusable", `${where}: it is no regular file`, { path: real });
    if (!isBeneath(root, real)) {
      throw new RelayError(
        "path_escapes_root",
        `${where}: it lies outside of ${root}`,
        { path: real, root },
        "go there, or name a directory above both: CLIO_RELAY_INPUT_WORKSPACE_ROOT=DIR",
      );
    }
    const relative = path.relative(root, real);
    const { handle, stat } = await opened(root, relative, options);
    await handle.close();
    return new InputFile(options, root, relative, stat);
  }

  get size(): number {
    return Number(this.version.size);
  }

  /** SHA-256 of its bytes. `onRead` is told how many have been read. @throws RelayError input_changed, local_file_unusable */
  async digest(onRead: (length: number) => void, signal?: AbortSignal): Promise<string> {
    await using file = await this.open();
    let length = 0;
    const sink = async (bytes: Uint8Array): Promise<void> => {
      length += bytes.length;
      onRead(length);
    };
    const { size, sha256 } = await this.#reading(() => hashFile(file.handle, { limit: this.size, sink, signal }));
    if (size !== this.size) throw this.#changed();
    await file.assertEnd();
    return sha256;
  }

  /** Tells it, and this version of it, from others, also of other machines. */
  get provisionalName(): string {
    const { dev, ino, size, mtimeNs, ctimeNs } = this.version;
    return sha256Hex(
      ["clio-relay.provisional", os.hostname(), path.join(this.root, this.relative), dev, ino, size, mtimeNs, ctimeNs].join("\n"),
    );
  }

  /** All of its bytes, which have this SHA-256. @throws RelayError input_changed, local_file_unusable */
  async bytes(sha256: string): Promise<Uint8Array> {
    await using file = await this.open();
    const bytes = await file.read(0, Buffer.allocUnsafeSlow(this.size));
    await file.assertUnchanged();
    if (sha256Hex(bytes) !== sha256) throw this.#changed();
    return bytes;
  }

  /** @throws RelayError input_changed, local_file_unusable, path_escapes_root */
  async open(): Promise<OpenInput> {
    const { handle, stat } = await opened(this.root, this.relative, this.options).catch((error: unknown) => {
      // It was there.
      throw isRelayError(error, "local_file_missing") || isRelayError(error, "local_file_unusable") ? this.#changed(error) : error;
    });
    if (!sameVersion(stat, this.version)) {
      await handle.close();
      throw this.#changed();
    }
    return {
      handle,
      read: async (offset, bytes) => {
        for (let at = 0; at < bytes.length; ) {
          const { bytesRead } = await this.#reading(() => handle.read(bytes, at, bytes.length - at, offset + at));
          if (bytesRead === 0) throw this.#changed();
          at += bytesRead;
        }
        return bytes;
      },
      assertUnchanged: () => this.#assertUnchanged(handle),
      assertEnd: async () => {
        const goesOn = await this.#reading(() => goesOnAt(handle, this.size));
        await this.#assertUnchanged(handle);
        // A file of the kernel's, as in /proc.
        if (goesOn) {
          const why = `${this.options.where}: it has more bytes than the system says`;
          throw new RelayError("local_file_unusable", why, {}, "copy it, and give the copy");
        }
      },
      [Symbol.asyncDispose]: () => handle.close(),
    };
  }

  async #assertUnchanged(handle: fs.promises.FileHandle): Promise<void> {
    if (!sameVersion(await handle.stat({ bigint: true }), this.version)) throw this.#changed();
  }

  async #reading<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw error instanceof RelayError || isErrno(error, "EIO", "ESTALE") ? unusable(this.options.where, error) : error;
    }
  }

  #changed(cause?: unknown): RelayError {
    return new RelayError("input_changed", `${this.options.where}: it changed while it was read`, {}, undefined, { cause });
  }
}

/** An input that is being read. */
export interface OpenInput extends AsyncDisposable {
  readonly handle: fs.promises.FileHandle;
  /** Fills `bytes`. @throws RelayError input_changed where it ends before */
  read(offset: number, bytes: Uint8Array): Promise<Uint8Array>;
  /** @throws RelayError input_changed */
  assertUnchanged(): Promise<void>;
  /** The same once all of it was read. @throws RelayError input_changed, local_file_unusable where there is more of it */
  assertEnd(): Promise<void>;
}

async function realPath(file: string, where: string): Promise<string> {
  try {
    return await fs.promises.realpath(file);
  } catch (error) {
    throw unusable(where, error);
  }
}

async function opened(root: string, relative: string, { where, platform }: InputFileOptions): Promise<OpenFile> {
  try {
    return platform === "linux" ? await openBeneath(root, relative) : await openAndCompare(root, relative);
  } catch (error) {
    if (isRelayError(error, "path_escapes_root"))
      throw new RelayError("path_escapes_root", `${where}: it leads out of ${root}`, error.data);
    throw unusable(where, error);
  }
}

/** Where directories cannot be held: the file that was opened has to be the one that its name leads to, without links, below the root. */
export async function openAndCompare(root: string, relative: string): Promise<OpenFile> {
  const file = path.join(root, relative);
  // Windows has neither flag.
  const handle = await fs.promises.open(file, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0));
  try {
    const stat = await handle.stat({ bigint: true });
    const real = await fs.promises.realpath(file);
    const named = await fs.promises.lstat(real, { bigint: true });
    if (!isBeneath(root, real) || named.ino !== stat.ino || named.dev !== stat.dev)
      throw new RelayError("path_escapes_root", "another file has its name by now", { path: relative });
    if (!stat.isFile()) throw new RelayError("local_file_unusable", "that is no regular file");
    return { handle, stat };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** What the system says of a file, with the words that a person knows it by. */
function unusable(where: string, error: unknown): unknown {
  if (!isRelayError(error)) return namedFileFailure(where, error) ?? error;
  const failure = namedFileFailure(where, error, String(error.data["system_code"]));
  return failure ?? new RelayError("local_file_unusable", `${where}: ${notRegular(error)}`, {}, undefined, { cause: error });
}

const notRegular = ({ code, message }: RelayError): string =>
  code === "artifact_unreadable" ? "that is no regular file, or it cannot be read" : message;
