import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import * as v from "valibot";
import { inUnicode } from "../lib/text/unicode-json.ts";
import { readAddress } from "./resources/address.ts";
import { watchResource } from "./resources/watch.ts";
import type { McpService } from "./service.ts";
import { declaresTasks, missingTasks } from "./tasks/methods.ts";
import { agreedTasks, TASKS_MAX, watchTasks } from "./tasks/subscription.ts";

/** Meta of whatever is said on a subscription: the id of the request that asked for it. */
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const RESOURCES_MAX = 256;

const Asked = v.looseObject({ _meta: v.optional(v.unknown()), notifications: v.looseObject({}) });
const Wanted = v.looseObject({
  taskIds: v.optional(v.pipe(v.array(v.pipe(v.string(), v.maxLength(256))), v.maxLength(TASKS_MAX))),
  resourceSubscriptions: v.optional(v.pipe(v.array(v.string()), v.maxLength(RESOURCES_MAX))),
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
  /** Addresses in the order of the request, as far as something lies there. */
  readonly resources: readonly string[];
  /** Begin to tell. @param send a notification @param updated an address whose resource is another */
  start(send: (message: Message) => void, updated: (uri: string) => void): void;
  stop(): void;
}

export const isListen = (message: Message): boolean => message.method === "subscriptions/listen" && message.id !== undefined;

const refusal = (id: MessageId, { code, message, data }: Pick<ProtocolError, "code" | "message" | "data">) => ({
  refused: { jsonrpc: "2.0" as const, id, error: { code, message, ...(data === undefined ? {} : { data }) } },
});

/** What a client asks for that it cannot have: it is not agreed to by halves. */
function unfit(issue: v.BaseIssue<unknown>): ProtocolError {
  const member = `notifications.${v.getDotPath(issue) ?? ""}`;
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `Invalid params for subscriptions/listen: ${member}: ${issue.message}`);
}

/**
 * Read what a client wants to hear of. What is no request for that at all is left to the SDK, which refuses it.
 *
 * @returns the refusal where it wants to hear of tasks and does not declare the extension, and of more than it may
 */
export async function listening(
  service: McpService,
  message: Message,
  signal: AbortSignal,
): Promise<Listening | { readonly refused: Message } | null> {
  const asked = v.safeParse(Asked, message.params ?? {});
  const { id } = message;
  if (!asked.success || id === undefined) return null;
  const wanted = v.safeParse(Wanted, asked.output.notifications);
  if (!wanted.success) return refusal(id, unfit(wanted.issues[0]));
  const { taskIds, resourceSubscriptions = [] } = wanted.output;
  if (taskIds !== undefined && !declaresTasks(asked.output._meta)) return refusal(id, missingTasks());
  const resources = new Updates();
  const addresses = [...new Set(resourceSubscriptions)];
  const [agreed, watched] = await Promise.all([
    taskIds === undefined ? null : agreedTasks(service, taskIds, signal),
    Promise.all(addresses.map((uri) => resources.watch(service, uri, signal))),
  ]);
  let stopTasks = (): void => undefined;
  return {
    id,
    taskIds: agreed === null ? null : [...agreed.keys()],
    resources: addresses.filter((_, at) => watched[at]),
    start(send, updated) {
      const tell = (task: object): void =>
        send({ jsonrpc: "2.0", method: "notifications/tasks", params: { ...inUnicode(task), _meta: { [SUBSCRIPTION]: id } } });
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

  /** @returns false where there is nothing to hear of */
  async watch(service: McpService, uri: string, signal: AbortSignal): Promise<boolean> {
    const address = readAddress(uri);
    if (address === null) return false;
    try {
      const stop = await watchResource(service, address, signal, () => this.#tell(uri));
      if (this.#over) stop();
      else this.#stops.push(stop);
      return true;
    } catch {
      return false;
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

/** The acknowledgement of what was agreed on; another message as it is. */
export function acknowledged(message: Message, of: Listening): Message | null {
  if (message.method !== "notifications/subscriptions/acknowledged") return null;
  const { params = {} } = message;
  const meta = params["_meta"] as Readonly<Record<string, unknown>> | undefined;
  if (meta?.[SUBSCRIPTION] !== of.id) return null;
  const told = params["notifications"] as Readonly<Record<string, unknown>>;
  const notifications = {
    ...told,
    ...(of.taskIds === null ? {} : { taskIds: of.taskIds }),
    ...("resourceSubscriptions" in told ? { resourceSubscriptions: of.resources } : {}),
  };
  return { ...message, params: { ...params, notifications } };
}

/** What whoever subscribed to a resource is told. */
export const resourceUpdated = (subscription: MessageId, uri: string): Message => ({
  jsonrpc: "2.0",
  method: "notifications/resources/updated",
  params: { uri, _meta: { [SUBSCRIPTION]: subscription } },
});
