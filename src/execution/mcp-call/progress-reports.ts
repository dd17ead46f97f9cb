import { isRelayError } from "../../domain/errors.ts";
import { emit } from "../emit.ts";
import type { ReportedProgress } from "./dialogue.ts";

const EVERY_MS = 250;
const MESSAGE_LENGTH = 1_000;

/** Progress of a call as that of its job: at most four reports a second, and always the last one. */
export class ProgressReports {
  #waiting: ReportedProgress | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #broken = false;

  constructor(
    private readonly eventsDir: string,
    private readonly label: string,
  ) {}

  take(report: ReportedProgress): void {
    this.#waiting = report;
    if (this.#timer !== null) return;
    this.#write();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#waiting !== null) this.take(this.#waiting);
    }, EVERY_MS);
  }

  /** Nothing comes any more. */
  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#write();
  }

  #write(): void {
    const report = this.#waiting;
    this.#waiting = null;
    if (report === null || this.#broken) return;
    const { progress, total, message } = report;
    try {
      emit(this.eventsDir, {
        type: "progress",
        label: this.label,
        current: progress,
        total,
        message: message?.slice(0, MESSAGE_LENGTH).toWellFormed() ?? null,
      });
    } catch (error) {
      if (!isRelayError(error)) throw error;
      // A full disk, or somebody removed the directory: the call goes on without.
      this.#broken = true;
    }
  }
}
