import type { Event } from "../../domain/event.ts";
import type { Job, JobState } from "../../domain/job.ts";
import type { LogStream } from "../../domain/log.ts";
import type { Progress } from "../../domain/progress.ts";
import type { JobStatus } from "../../domain/views.ts";
import { safeText } from "../../lib/text/safe-text.ts";
import type { CliIo, Output } from "../io.ts";
import { endLine } from "../print/outcome-text.ts";
import { progressLine, progressText } from "../print/progress-text.ts";
import { durationText } from "../print/quantities.ts";
import { oneLine } from "../print/safe-text.ts";
import { type Style, styleFor } from "../print/style.ts";
import { cut } from "../print/table.ts";
import type { Way } from "./reconnect.ts";

/** Somewhere to show what happens to a job. */
export interface WatchView {
  event(event: Event): Promise<void>;
  /** Complete lines of output, and the one that has begun. */
  output(stream: LogStream, lines: readonly string[], open: string): Promise<void>;
  end(job: Job): Promise<void>;
  /** What is known of the way to the job has changed. */
  readonly way: (way: Way) => void;
  /** Standard error for whatever is said meanwhile. */
  readonly notices: Pick<Output, "write">;
  /** Leave the screen as it is to stay. */
  close(): Promise<void>;
}

const STATES: Readonly<Record<string, string>> = {
  "job.queued": "queued",
  "job.requeued": "queued",
  "job.leased": "starting",
  "job.running": "running",
  "job.cancel_requested": "canceling",
  "scheduler.job_detected": "submitted",
  "scheduler.job_pending": "pending",
  "scheduler.job_allocated": "allocated",
};

const STATE_WORDS: Readonly<Record<JobState, string>> = {
  queued: "queued",
  leased: "starting",
  running: "running",
  succeeded: "succeeded",
  failed: "failed",
  canceled: "canceled",
};

const LOST: Readonly<Record<Exclude<Way, "up">, string>> = { down: "no connection", silent: "no answer" };

/** Time of day in UTC, as records have it, and marked so. */
const clockTime = (instant: string): string => `${instant.slice(11, 19)}Z`;

const eventLine = (style: Style, event: Event): string => {
  const text = `${clockTime(event.created_at)} ${event.event_type}  ${oneLine(event.message)}`;
  return event.level === "error" ? style.red(text) : event.level === "warning" ? style.yellow(text) : style.dim(text);
};

const outputLine = (style: Style, stream: LogStream, line: string): string =>
  `${stream === "stderr" ? style.yellow(`${stream} |`) : style.dim(`${stream} |`)} ${safeText(line).replaceAll("\r", "")}`;

const jarvisWord = (state: unknown): string => (typeof state === "string" ? `JARVIS ${oneLine(state)}  ` : "");

const progressOf = (event: Event): Progress =>
  ({ current: null, total: null, unit: null, message: null, ...event.payload }) as unknown as Progress;

/** One line for each thing that happens. */
export function plainView(io: CliIo): WatchView {
  const style = styleFor(io.stdout, io.env);
  return {
    event: (event) =>
      io.stdout.write(
        event.event_type === "progress.updated"
          ? `progress | ${oneLine(progressText(progressOf(event)))}\n`
          : `${eventLine(style, event)}\n`,
      ),
    output: (stream, lines) => io.stdout.write(lines.map((line) => `${outputLine(style, stream, line)}\n`).join("")),
    end: (job) => io.stdout.write(`${endLine(style, job)}\n`),
    way: () => undefined,
    notices: io.stderr,
    close: () => Promise.resolve(),
  };
}

/**
 * Output scrolls; below it one line with state, time and progress is kept current.
 *
 * @param status where the job stands at the beginning: events before the first one that is shown have made it so
 */
export function liveView(io: CliIo, status: Pick<JobStatus, "job" | "attempt" | "progress" | "scheduler" | "jarvis">): WatchView {
  const { job, attempt, progress } = status;
  const style = styleFor(io.stdout, io.env);
  const there = status.scheduler?.at(-1) ?? null;
  let state = job.cancellation_request !== null && job.outcome === null ? "canceling" : STATE_WORDS[job.state];
  // Until it has started, the scheduler knows better where it stands.
  if (state === "starting" && there?.native_id != null) state = there.status?.phase ?? "submitted";
  let startedAt = Date.parse((job.state === "running" ? attempt?.started_at : null) ?? job.created_at);
  /** What JARVIS says of a pipeline, beside the state of the job. */
  let jarvis = jarvisWord(status.jarvis?.said?.state);
  let report: Progress | null = progress.toSorted((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at)).at(-1) ?? null;
  let open = "";
  let ended = false;
  /** Since when nothing is known; null while the way carries. */
  let lost: { readonly way: Exclude<Way, "up">; readonly at: number } | null = null;

  const since = (instant: number): string => durationText(Math.max(0, (io.clock.now() - instant) / 1_000));
  const statusLine = (): string => {
    const cells = io.stdout.columns;
    // Whether it still runs, and for how long, nobody knows meanwhile.
    if (lost !== null) return cut(`${LOST[lost.way]} for ${since(lost.at)}; last seen ${state}`, cells - 1);
    const time = since(startedAt);
    const what = report === null ? open : progressLine(report, cells < 60 ? 10 : 20);
    return cut(`${state} ${time} ${jarvis}${oneLine(what)}`.trimEnd(), cells - 1);
  };
  const show = async (lines: readonly string[]): Promise<void> => {
    await io.stdout.write(`\r\x1b[K${lines.map((line) => `${line}\n`).join("")}${ended ? "" : style.bold(statusLine())}`);
  };
  const tick = setInterval(() => void show([]).catch(() => undefined), 1_000);
  return {
    async event(event) {
      state = STATES[event.event_type] ?? state;
      if (job.kind === "jarvis" && event.event_type === "runtime.metadata_ingested") jarvis = jarvisWord(event.payload["state"]) || jarvis;
      if (event.event_type === "job.running") startedAt = Date.parse(event.created_at);
      if (event.event_type === "progress.updated") {
        report = progressOf(event);
        await show([]);
      } else await show([eventLine(style, event)]);
    },
    async output(stream, lines, begun) {
      open = begun;
      await show(lines.map((line) => outputLine(style, stream, line)));
    },
    way(way) {
      lost = way === "up" ? null : { way, at: io.clock.now() };
    },
    async end(job) {
      ended = true;
      await show([endLine(style, job)]);
    },
    notices: {
      async write(data) {
        const onScreen = io.stderr.isTerminal && !ended;
        if (onScreen) await io.stdout.write("\r\x1b[K");
        await io.stderr.write(data);
        if (onScreen) await show([]);
      },
    },
    async close() {
      clearInterval(tick);
      if (!ended) await io.stdout.write("\r\x1b[K");
    },
  };
}
