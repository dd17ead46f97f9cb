import * as v from "valibot";
import { readAddress } from "./resources/address.ts";
import { watchResource } from "./resources/watch.ts";
import type { McpService } from "./service.ts";
import { declaresTasks, missingTasks } from "./tasks/methods.ts";
import { agreedTasks, TASKS_MAX, watchTasks } from "./tasks/subscription.ts";

/** Meta of whatever is said on a subscription: the id of the request that asked for it. */
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const RESOURCES_MAX = 256;

const Asked = v.looseObject({
  _meta: v.optional(v.unknown()),
  notifications: v.looseObject({
    taskIds: v.optional(v.pipe(v.array(v.pipe(v.string(), v.maxLength(256))), v.maxLength(TASKS_MAX))),
    resourceSubscriptions: v.optional(v.pipe(v.array(v.string()), v.maxLength(RESOURCES_MAX))),
  }),
});

export type MessageId = string | number;
export interface Message {
  readonly jsonrpc: "2.0";
  readonly id?: MessageId;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly error?: unknown;
}

/** What a subscriptions/listen of 2026-07-28 asks for beyond what the SDK knows. It is looked after from the beginning, and told of when it was acknowledged. */
export interface Listening {
  readonly id: MessageId;
  /** Ids of tasks in the order of the request, as far as they are some. */
  readonly taskIds: readonly string[] | null;
  /** Begin to tell. @param send a notification @param updated an address whose resource is another */
  start(send: (message: Message) => void, updated: (uri: string) => void): void;
  stop(): void;
}

export const isListen = (message: Message): boolean => message.method === "subscriptions/listen" && message.id !== undefined;

/**
 * Read what a client wants to hear of. What does not fit is left to the SDK, which refuses it.
 *
 * @returns the refusal where it wants to hear of tasks and does not declare the extension
 */
export async function listening(
  service: McpService,
  message: Message,
  signal: AbortSignal,
): Promise<Listening | { readonly refused: Message } | null> {
  const asked = v.safeParse(Asked, message.params ?? {});
  const { id } = message;
  if (!asked.success || id === undefined) return null;
  const { taskIds, resourceSubscriptions = [] } = asked.output.notifications;
  if (taskIds !== undefined && !declaresTasks(asked.output._meta)) {
    const { code, message: text, data } = missingTasks();
    return { refused: { jsonrpc: "2.0", id, error: { code, message: text, data } } };
  }
  const resources = new Updates();
  const [agreed] = await Promise.all([
    taskIds === undefined ? null : agreedTasks(service, taskIds, signal),
    ...new Set(resourceSubscriptions).values().map((uri) => resources.watch(service, uri, signal)),
  ]);
  let stopTasks = (): void => undefined;
  return {
    id,
    taskIds: agreed === null ? null : [...agreed.keys()],
    start(send, updated) {
      const tell = (task: object): void =>
        send({ jsonrpc: "2.0", method: "notifications/tasks", params: { ...task, _meta: { [SUBSCRIPTION]: id } } });
      if (agreed !== null) stopTasks = watchTasks(service, agreed, tell);
      resources.tell(updated);
    },
    stop() {
      stopTasks();
      resources.stop();
    },
  };
}

/** Resources that one client wants to hear of. What changes before it can be told is kept. */
class Updates {
  readonly #stops: (() => void)[] = [];
  readonly #early = new Set<string>();
  #tell: (uri: string) => void = (uri) => void this.#early.add(uri);
  #over = false;

  /** What is no resource of a cluster that is there is passed over. */
  async watch(service: McpService, uri: string, signal: AbortSignal): Promise<void> {
    const address = readAddress(uri);
    if (address === null) return;
    try {
      const stop = await watchResource(service, address, signal, () => this.#tell(uri));
      if (this.#over) stop();
      else this.#stops.push(stop);
    } catch {
      // There is nothing to hear of.
    }
  }

  tell(updated: (uri: string) => void): void {
    this.#tell = updated;
    for (const uri of this.#early) updated(uri);
    this.#early.clear();
  }

  stop(): void {
    this.#over = true;
    for (const stop of this.#stops.splice(0)) stop();
  }
}

/** The acknowledgement with the tasks that were agreed on; another message as it is. */
export function acknowledged(message: Message, of: Listening): Message | null {
  if (message.method !== "notifications/subscriptions/acknowledged") return null;
  const { params = {} } = message;
  const meta = params["_meta"] as Readonly<Record<string, unknown>> | undefined;
  if (meta?.[SUBSCRIPTION] !== of.id) return null;
  if (of.taskIds === null) return message;
  const notifications = { ...(params["notifications"] as object), taskIds: of.taskIds };
  return { ...message, params: { ...params, notifications } };
}

/** What whoever subscribed to a resource is told. */
export const resourceUpdated = (subscription: MessageId, uri: string): Message => ({
  jsonrpc: "2.0",
  method: "notifications/resources/updated",
  params: { uri, _meta: { [SUBSCRIPTION]: subscription } },
});
