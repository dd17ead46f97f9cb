import * as v from "valibot";
import type { ClusterClient } from "../../api/client.ts";
import { LIMITS } from "../../domain/limits.ts";
import { recordOf } from "../../domain/primitives.ts";
import type { TaskEvent } from "../../domain/task.ts";
import { INPUT_REQUESTED } from "./inputs.ts";

/** Under this key a further message for an agent is asked for, and answered. */
const KEY = "agent_message";

const REQUEST = {
  method: "elicitation/create",
  params: {
    mode: "form",
    message: "a further message for the agent",
    requestedSchema: {
      type: "object",
      properties: { message: { type: "string", title: "Message", minLength: 1 } },
      required: ["message"],
    },
  },
};

const Asks = v.looseObject({ requests: recordOf(v.string(), v.unknown()) });

const asks = ({ event_type, metadata }: TaskEvent): boolean =>
  event_type === INPUT_REQUESTED && v.is(Asks, metadata) && Object.hasOwn(metadata["requests"] as object, KEY);

/**
 * Have a job ask for a further message to its agent, on the timeline of its first task. Once more changes nothing, and an end that comes first takes the question with it.
 *
 * @throws RelayError as the worker does
 */
export async function askForMessage(client: ClusterClient, jobId: string, signal: AbortSignal): Promise<void> {
  const { tasks } = await client.tasks(jobId, { limit: 1, signal });
  const task = tasks[0]?.task_id;
  if (task === undefined) return;
  // It is among the first entries of a timeline.
  const { events } = await client.taskEvents(task, { cursor: 1, limit: LIMITS.pageMax, signal });
  if (events.some(asks)) return;
  const event = { event_type: INPUT_REQUESTED, label: "input", summary: `asked for: ${KEY}`, metadata: { requests: { [KEY]: REQUEST } } };
  await client.recordTaskEvent(task, event, signal);
}
