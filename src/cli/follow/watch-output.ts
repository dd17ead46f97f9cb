import type { ClusterClient } from "../../api/client.ts";
import type { Event, EventType } from "../../domain/event.ts";
import type { LogStream } from "../../domain/log.ts";
import { type Delta, Lines, LogText } from "./log-lines.ts";
import type { Reconnect } from "./reconnect.ts";
import type { WatchView } from "./watch-views.ts";

const STREAM_OF: Partial<Record<EventType, LogStream>> = { "stdout.delta": "stdout", "stderr.delta": "stderr" };

/** After these an attempt writes nothing more: a line that it left open is over. */
const ATTEMPT_ENDS: ReadonlySet<EventType> = new Set(["job.succeeded", "job.failed", "job.canceled", "job.requeued"]);

interface Stream {
  readonly name: LogStream;
  readonly text: LogText;
  readonly lines: Lines;
  /** Number of the event whose bytes are not all shown, because the last of them begin a character; null where all are. */
  heldSince: number | null;
}

/** Both output streams of a job, brought to the view in the order of their events. */
export class WatchOutput {
  readonly #streams: Readonly<Record<LogStream, Stream>>;

  constructor(
    cluster: ClusterClient,
    jobId: string,
    reconnect: Reconnect,
    private readonly view: Pick<WatchView, "output">,
    returns: ConstructorParameters<typeof Lines>[0],
  ) {
    const stream = (name: LogStream): Stream => ({
      name,
      text: new LogText(cluster, jobId, name, reconnect),
      lines: new Lines(returns),
      heldSince: null,
    });
    this.#streams = { stdout: stream("stdout"), stderr: stream("stderr") };
  }

  /** Whether the event was about output, which is then shown. What an attempt left open is shown before the event of its end. */
  async take(event: Event): Promise<boolean> {
    if (ATTEMPT_ENDS.has(event.event_type)) await this.#endAttempt(event.event_type !== "job.requeued");
    const name = STREAM_OF[event.event_type];
    if (name === undefined) return false;
    const stream = this.#streams[name];
    const delta = event.payload as unknown as Delta;
    for await (const piece of stream.text.upTo(delta)) await this.#show(stream, piece);
    const { offset } = stream.text;
    if (offset >= delta.next_offset) stream.heldSince = null;
    else if (offset >= delta.offset || stream.heldSince === null) stream.heldSince = event.seq;
    return true;
  }

  /** Show the lines that have begun as they are. What follows them begins a line of its own. */
  async showOpen(): Promise<void> {
    for (const { name, lines } of Object.values(this.#streams)) {
      const open = lines.end();
      if (open !== null) await this.view.output(name, [open], "");
    }
  }

  /** Number of the first event that is not wholly shown once the open lines are. @param next the one behind the last that came */
  resumeAt(next: number): number {
    return Math.min(...Object.values(this.#streams).map(({ heldSince }) => heldSince ?? next), next);
  }

  /** @param last whether no other attempt follows: all that the log has is shown, where more than its events told of too */
  async #endAttempt(last: boolean): Promise<void> {
    for (const stream of last ? Object.values(this.#streams) : []) {
      for await (const piece of stream.text.rest()) await this.#show(stream, piece);
      stream.heldSince = null;
    }
    await this.showOpen();
  }

  #show({ name, lines }: Stream, piece: string): Promise<void> {
    return this.view.output(name, lines.push(piece), lines.open);
  }
}
