import fs from "node:fs";
import path from "node:path";

/** Output alone is looked at no more often than this, so that a chatty job costs few commits. */
const OUTPUT_INTERVAL_MS = 50;

/** Files whose appearance is looked at at once. */
const URGENT = new Set(["start.json", "process.json", "exit.json"]);

/** Wakes a run when something in its attempt's directory changes. Missed notifications cost a poll interval, nothing else. */
export class Doorbell {
  #watchers: fs.FSWatcher[] = [];
  #rung: "no" | "output" | "now" = "no";
  #wake: (() => void) | null = null;
  #lastLook = 0;

  constructor(private readonly directory: string) {}

  /** Begin to watch; repeated calls change nothing. The directory must exist. */
  open(): void {
    if (this.#watchers.length > 0) return;
    this.#watch(this.directory, (name) => (URGENT.has(name) ? "now" : "output"));
    this.#watch(path.join(this.directory, "events"), () => "output");
    this.ring("now");
  }

  ring(urgency: "output" | "now"): void {
    if (this.#rung !== "now") this.#rung = urgency;
    this.#wake?.();
  }

  /** Resolves at the next ring (a ring since the last wait counts), or after `pollMs`. */
  async wait(pollMs: number): Promise<void> {
    const since = performance.now() - this.#lastLook;
    if (this.#rung !== "now") {
      const hold = this.#rung === "output" ? OUTPUT_INTERVAL_MS - since : pollMs;
      if (hold > 0) await this.#sleep(hold);
      if (this.#rung === "output") {
        const rest = OUTPUT_INTERVAL_MS - (performance.now() - this.#lastLook);
        if (rest > 0) await this.#sleep(rest, true);
      }
    }
    this.#rung = "no";
    this.#lastLook = performance.now();
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = [];
    this.ring("now");
  }

  async #sleep(ms: number, onlyForNow = false): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
      this.#wake = () => {
        if (!onlyForNow || this.#rung === "now") resolve();
      };
    });
    clearTimeout(timer);
    this.#wake = null;
  }

  #watch(directory: string, urgencyOf: (name: string) => "output" | "now"): void {
    try {
      const watcher = fs.watch(directory, (_event, name) => this.ring(urgencyOf(name ?? "")));
      watcher.on("error", () => undefined);
      this.#watchers.push(watcher);
    } catch {
      // No inotify watch left, or a directory that is not there yet: polling goes on.
    }
  }
}
