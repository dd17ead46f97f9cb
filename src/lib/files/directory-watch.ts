import fs from "node:fs";

/** Tells when entries of a directory change (inotify(7)). Where it cannot, only polling notices: it never fails. */
export class DirectoryWatch {
  #watcher: fs.FSWatcher | null = null;
  #directory: string | null = null;

  /** @param changed called with the entry's name; empty where the system does not say which */
  constructor(private readonly changed: (name: string) => void) {}

  /** Watch this directory from now on, in place of the last one. False when it cannot be watched; trying again is cheap. */
  move(directory: string): boolean {
    if (this.#directory === directory && this.#watcher !== null) return true;
    this.close();
    try {
      const watcher = fs.watch(directory, (_event, name) => this.changed(name ?? ""));
      watcher.on("error", () => this.close());
      this.#watcher = watcher;
      this.#directory = directory;
      return true;
    } catch {
      return false;
    }
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = null;
    this.#directory = null;
  }
}
