import path from "node:path";
import { DirectoryWatch } from "../../lib/files/directory-watch.ts";
import { Bell } from "../../lib/waiting/bell.ts";

/** Output alone is looked at no more often than this, so that a chatty job costs few commits. */
const OUTPUT_INTERVAL_MS = 50;

/** Files whose appearance is looked at at once. */
const URGENT = new Set(["start.json", "process.json", "exit.json"]);

/** Wakes a run when something in its attempt's directory changes. Missed notifications cost a poll interval, nothing else. */
export class Doorbell {
  readonly #bell = new Bell();
  readonly #files = new DirectoryWatch((name) => this.ring(URGENT.has(name) ? "now" : "output"));
  readonly #reports = new DirectoryWatch(() => this.ring("output"));
  #opened = false;
  #rung: "no" | "output" | "now" = "no";
  #lastLook = 0;

  constructor(private readonly directory: string) {}

  /** Begin to watch; repeated calls change nothing. The directory must exist. */
  open(): void {
    if (this.#opened) return;
    this.#opened = true;
    this.#files.move(this.directory);
    this.#reports.move(path.join(this.directory, "events"));
    this.ring("now");
  }

  ring(urgency: "output" | "now"): void {
    if (this.#rung === "now" || this.#rung === urgency) return;
    this.#rung = urgency;
    this.#bell.ring();
  }

  /** Resolves at the next ring (a ring since the last wait counts), or after `pollMs`; after output alone, no sooner than its interval. */
  async wait(pollMs: number): Promise<void> {
    const poll = performance.now() + pollMs;
    for (;;) {
      const until = this.#rung === "now" ? 0 : this.#rung === "output" ? this.#lastLook + OUTPUT_INTERVAL_MS : poll;
      const left = until - performance.now();
      if (left <= 0) break;
      await this.#bell.wait(left);
    }
    this.#rung = "no";
    this.#lastLook = performance.now();
  }

  close(): void {
    this.#files.close();
    this.#reports.close();
    this.ring("now");
  }
}
