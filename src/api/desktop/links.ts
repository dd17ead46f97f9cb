import * as v from "valibot";
import { ClusterEntry } from "../../config/cluster-entry.ts";
import { json, type Operation, operation } from "../operation.ts";
import { type OutgoingMessage, sseResponse } from "../sse.ts";
import { HOST_TASK_SUMMARIES, HOST_TASKS, type HostTask, type HostTaskName, hostTaskBody } from "./host-views.ts";
import { AttendedEvent, AttendedRequest, LinkList, LinkStatus, LinksQuery, PromptAnswer, PromptTaken } from "./link-views.ts";
import { PairClusterRequest } from "./pairing-views.ts";
import type { DesktopServices } from "./services.ts";

/** Data of the messages of what is done for somebody who is there. */
const AttendedData = v.union(AttendedEvent.options.map(({ entries }) => entries.data));

/** The links to the clusters, and the people whom they need. */
export const linkOperations = (services: DesktopServices): Operation[] => [
  operation({
    method: "get",
    path: "/links",
    id: "listLinks",
    summary: "The way to each cluster's worker, as it is now",
    query: LinksQuery,
    answer: { kind: "json", schema: LinkList },
    errors: ["configuration_error"],
    handler: async ({ query }) => json({ links: await services.links(query.patience_ms) }),
  }),
  operation({
    method: "post",
    path: "/clusters/:name/connect",
    id: "connectCluster",
    summary: "Bring a cluster's link up; ends with `done` and the link, or with `failed`. Given up when its client goes away",
    body: AttendedRequest,
    answer: { kind: "events", schema: AttendedData },
    errors: ["cluster_not_found", "configuration_error", "state_conflict"],
    handler: async ({ c, param, body }) =>
      attendedResponse(services, c.req.raw.signal, await services.connect(param("name"), body, c.req.raw.signal)),
  }),
  operation({
    method: "post",
    path: "/clusters/:name/pair",
    id: "pairCluster",
    summary: "Have this desktop's key let in by the worker that made a code, and keep the entry by which it is met",
    body: PairClusterRequest,
    answer: { kind: "json", schema: ClusterEntry },
    errors: ["pairing_code_invalid", "pairing_refused", "host_key_changed", "worker_absent", "configuration_error", "state_conflict"],
    handler: async ({ c, param, body }) => json(await services.pair(param("name"), body, c.req.raw.signal)),
  }),
  operation({
    method: "post",
    path: "/clusters/:name/prompts/:prompt",
    id: "answerPrompt",
    summary: "Answer a question that came with `prompt`",
    body: PromptAnswer,
    answer: { kind: "json", schema: PromptTaken },
    errors: ["not_found"],
    handler: ({ param, body }) => {
      services.answerPrompt(param("name"), param("prompt"), body.answer);
      return json({ taken: true });
    },
  }),
  operation({
    method: "post",
    path: "/clusters/:name/disconnect",
    id: "disconnectCluster",
    summary: "End a cluster's link; its worker and jobs go on",
    answer: { kind: "json", schema: LinkStatus },
    errors: ["cluster_not_found", "configuration_error"],
    handler: async ({ param }) => json(await services.disconnect(param("name"))),
  }),
];

/** What is done on the hosts of clusters. Each rides the connection that is there, or asks for one. */
export const hostOperations = (services: DesktopServices): Operation[] =>
  (Object.keys(HOST_TASKS) as HostTaskName[]).map((task) =>
    operation({
      method: "post",
      path: `/clusters/:name/host/${task}`,
      id: `host${task
        .split("-")
        .map((word) => word[0]!.toUpperCase() + word.slice(1))
        .join("")}`,
      summary: HOST_TASK_SUMMARIES[task],
      body: hostTaskBody(task),
      answer: { kind: "events", schema: AttendedData },
      errors: ["cluster_not_found", "configuration_error", "state_conflict"],
      handler: async ({ c, param, body }) =>
        attendedResponse(
          services,
          c.req.raw.signal,
          await services.host(param("name"), { task, options: body.options } as HostTask, body.request, c.req.raw.signal),
        ),
    }),
  );

/** What happens, as an event stream; each message has its data without the name again. */
function attendedResponse(
  { clock }: Pick<DesktopServices, "clock">,
  signal: AbortSignal,
  follow: (signal: AbortSignal) => AsyncGenerator<AttendedEvent>,
): Response {
  async function* messages(ended: AbortSignal): AsyncGenerator<OutgoingMessage> {
    let id = 1;
    for await (const { event, data } of follow(ended)) yield { event, id: id++, data };
  }
  return sseResponse({ messages, signal, clock });
}
