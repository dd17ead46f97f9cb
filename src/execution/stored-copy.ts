import fs from "node:fs";
import path from "node:path";
import { fsyncDirectory } from "../lib/atomic-file.ts";

/** A copy in the making. Under its final name it appears whole, or not at all. */
export class StoredCopy {
  readonly #temporary: string;
  #handle: fs.promises.FileHandle | null = null;

  constructor(
    private readonly directory: string,
    private readonly name: string,
  ) {
    this.#temporary = path.join(directory, `.${name}.tmp`);
  }

  async open(): Promise<void> {
    fs.mkdirSync(this.directory, { recursive: true, mode: 0o700 });
    this.#handle = await fs.promises.open(this.#temporary, "wx", 0o600);
  }

  async write(bytes: Uint8Array): Promise<void> {
    const handle = this.#handle!;
    for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at, bytes.length - at)).bytesWritten;
  }

  /** Flush and name the copy. The directory itself is flushed by flushDirectory, once for many. */
  async commit(): Promise<void> {
    await this.#handle!.sync();
    await this.#close();
    await fs.promises.rename(this.#temporary, path.join(this.directory, this.name));
  }

  /** Remove what there is of it. */
  async discard(): Promise<void> {
    await this.#close();
    await fs.promises.rm(this.#temporary, { force: true });
  }

  async #close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = null;
    await handle?.close();
  }
}

/** Make the names of committed copies durable. */
export const flushDirectory = (directory: string): void => fsyncDirectory(directory);

/** When a file was last written, in nanoseconds since the epoch, as records carry it. */
export const modificationTime = async (file: string): Promise<string> => String((await fs.promises.stat(file, { bigint: true })).mtimeNs);

/** Write a small document as a whole. */
export async function storeDocument(directory: string, name: string, text: string): Promise<void> {
  const copy = new StoredCopy(directory, name);
  try {
    await copy.open();
    await copy.write(Buffer.from(text));
    await copy.commit();
  } catch (error) {
    await copy.discard();
    throw error;
  }
}
