import * as v from "valibot";
import type { ClusterClient } from "../../api/client.ts";
import { LIMITS } from "../../domain/limits.ts";
import { recordOf } from "../../domain/primitives.ts";
import type { TaskEvent } from "../../domain/task.ts";
import { JSON_BOUNDS, refuseLarge } from "../json-bounds.ts";

/** Events of a timeline by which a job asks for something, and is answered. */
export const INPUT_REQUESTED = "mcp.input_requested";
export const INPUT_ANSWERED = "mcp.input_answered";

/** Tasks of a job that may ask, jobs whose rounds are remembered, entries of a timeline that are read at most. */
const TASKS = 16;
const REMEMBERED = 1_000;
const EVENTS = 100_000;
const PAGE = LIMITS.pageMax;
/** Characters of a key. */
const KEY = 512;
/** What is asked for under another key is not asked for: an answer to it could not come through (the SDK drops members of that name). */
const isKey = (word: string): boolean => word.length <= KEY && word !== "__proto__";

/**
 * What may be asked for: that a person fills in a form (elicitation/create of the protocol). Nothing else of the client is a job's to ask for: its model, its files, a page that is to
 * be opened.
 */
const InputRequest = v.looseObject({
  method: v.literal("elicitation/create"),
  params: v.exactOptional(v.looseObject({ mode: v.exactOptional(v.literal("form")), message: v.exactOptional(v.string()) })),
});
export type InputRequest = v.InferOutput<typeof InputRequest>;
const Requests = v.looseObject({ requests: recordOf(v.string(), v.unknown()) });

/** A request as a person is shown it: with who asks, since the client names nobody but this endpoint. */
export function withOrigin(request: InputRequest, cluster: string, jobId: string): InputRequest {
  const { params = {} } = request;
  const origin = `Asked for by the job ${jobId} on the cluster ${cluster}, in its own words`;
  return { ...request, params: { ...params, message: params.message === undefined ? `${origin}.` : `${origin}: ${params.message}` } };
}

/** Answers of a client by key, as the protocol has them. */
export const InputResponses = recordOf(v.pipe(v.string(), v.maxLength(KEY)), v.looseObject({}));
export type InputResponses = v.InferOutput<typeof InputResponses>;
const Responses = v.looseObject({ responses: InputResponses });

interface Asked {
  readonly request: InputRequest;
  /** The task on whose timeline it was asked for. */
  readonly task: string;
}

interface Timeline {
  readonly cursors: Map<string, number>;
  readonly asked: Map<string, Asked>;
  readonly answered: Set<string>;
  /** Whoever reads it waits for whoever does already. */
  turn: Promise<unknown>;
}

/**
 * What jobs ask for and is not answered yet. It is all on their timelines, which only grow: the first request under a key is the one that counts, and the first answer, so that
 * whoever reads them finds the same.
 */
export class TaskInputs {
  readonly #timelines = new Map<string, Timeline>();

  /** What is asked for now, by key. */
  async outstanding(client: ClusterClient, jobId: string, signal: AbortSignal): Promise<ReadonlyMap<string, Asked>> {
    const timeline = this.#timelineOf(jobId);
    const read = timeline.turn.then(() => this.#read(timeline, client, jobId, signal));
    timeline.turn = read.catch(() => undefined);
    await read;
    return new Map([...timeline.asked].filter(([key]) => !timeline.answered.has(key)));
  }

  /**
   * Answer what is asked for. Keys that nobody asked for, and those that are answered, are passed over.
   *
   * @throws RelayError payload_too_large
   */
  async answer(client: ClusterClient, jobId: string, given: InputResponses, signal: AbortSignal): Promise<void> {
    refuseLarge(given, JSON_BOUNDS.roundBytes, "the answers");
    const outstanding = await this.outstanding(client, jobId, signal);
    const byTask = new Map<string, [string, InputResponses[string]][]>();
    for (const [key, response] of Object.entries(given)) {
      const asked = outstanding.get(key);
      if (asked === undefined) continue;
      byTask.set(asked.task, [...(byTask.get(asked.task) ?? []), [key, response]]);
    }
    for (const [task, answers] of byTask) {
      const keys = answers.map(([key]) => key);
      const event = {
        event_type: INPUT_ANSWERED,
        label: "input",
        summary: `answered: ${keys.join(", ")}`.slice(0, 500),
        status: "succeeded" as const,
        metadata: { responses: Object.fromEntries(answers) as never },
      };
      await client.recordTaskEvent(task, event, signal);
    }
  }

  #timelineOf(jobId: string): Timeline {
    const known = this.#timelines.get(jobId) ?? { cursors: new Map(), asked: new Map(), answered: new Set(), turn: Promise.resolve() };
    this.#timelines.delete(jobId);
    this.#timelines.set(jobId, known);
    if (this.#timelines.size > REMEMBERED) this.#timelines.delete(this.#timelines.keys().next().value!);
    return known;
  }

  async #read(timeline: Timeline, client: ClusterClient, jobId: string, signal: AbortSignal): Promise<void> {
    if (timeline.cursors.size === 0) {
      const { tasks } = await client.tasks(jobId, { limit: TASKS, signal });
      for (const { task_id } of tasks) timeline.cursors.set(task_id, 1);
    }
    for (const [task, from] of timeline.cursors) {
      for (let cursor = from; cursor <= EVENTS; ) {
        const page = await client.taskEvents(task, { cursor, limit: PAGE, signal });
        for (const event of page.events) take(timeline, event);
        cursor = page.next_cursor;
        timeline.cursors.set(task, cursor);
        if (cursor > page.total || page.events.length === 0) break;
      }
    }
  }
}

function take(timeline: Timeline, { event_type, metadata, task_id }: TaskEvent): void {
  if (event_type === INPUT_REQUESTED) {
    const asked = v.safeParse(Requests, metadata);
    if (!asked.success) return;
    for (const [key, request] of Object.entries(asked.output.requests)) {
      if (isKey(key) && !timeline.asked.has(key) && v.is(InputRequest, request)) timeline.asked.set(key, { request, task: task_id });
    }
  } else if (event_type === INPUT_ANSWERED) {
    const answers = v.safeParse(Responses, metadata);
    if (!answers.success) return;
    for (const key of Object.keys(answers.output.responses)) if (timeline.asked.has(key)) timeline.answered.add(key);
  }
}
