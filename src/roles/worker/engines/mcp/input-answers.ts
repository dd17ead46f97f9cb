import path from "node:path";
import { LIMITS } from "../../../../domain/limits.ts";
import type { JsonObject } from "../../../../domain/primitives.ts";
import type { TaskEvent } from "../../../../domain/task.ts";
import { isObject } from "../../../../execution/mcp-call/message.ts";
import { CALL_FILES } from "../../../../execution/mcp-call/request-file.ts";
import { inAttempt } from "../../../../execution/own-place.ts";
import { writeFileAtomic } from "../../../../lib/files/atomic-file.ts";
import type { EngineAround } from "../engine.ts";

const ANSWERED = "mcp.input_answered";
/** Tasks of a job whose timelines may have answers. */
const TASKS = 16;

/** Hands answers on the job's timeline to its call, which cannot read that (docs/mcp.md, Input). The first answer under a key is the one that counts. */
export class InputAnswers {
  readonly #cursors = new Map<string, number>();
  readonly #responses: Record<string, JsonObject> = {};

  constructor(private readonly around: Pick<EngineAround<"mcp_call">, "context" | "job" | "directory">) {}

  /** What is new since it was asked last. */
  async hand(): Promise<void> {
    const { context, job } = this.around;
    if (this.#cursors.size === 0) {
      const { items } = await context.store.tasks(job.job_id, { cursor: 1, limit: TASKS });
      for (const { task_id } of items) this.#cursors.set(task_id, 1);
    }
    let isNew = false;
    for (const [task, from] of this.#cursors) {
      const { items, next_cursor } = await context.store.taskEvents(task, { cursor: from, limit: LIMITS.pageMax });
      for (const event of items) isNew = this.#take(event) || isNew;
      this.#cursors.set(task, next_cursor);
    }
    if (isNew) this.#write();
  }

  #take({ event_type, metadata }: TaskEvent): boolean {
    const given = event_type === ANSWERED ? metadata["responses"] : null;
    if (!isObject(given)) return false;
    const fresh = Object.entries(given).filter(([key, response]) => isObject(response) && !Object.hasOwn(this.#responses, key));
    for (const [key, response] of fresh) this.#responses[key] = response as JsonObject;
    return fresh.length > 0;
  }

  #write(): void {
    const text = JSON.stringify({ responses: this.#responses });
    inAttempt(this.around.directory, (place) => writeFileAtomic(path.join(place, CALL_FILES.answers), text, { durable: false }), undefined);
  }
}
