import { LinkInfo } from "../../domain/link.ts";
import { json, type Operation, operation } from "../operation.ts";
import type { WorkerServices } from "../worker-services.ts";

/** What a desktop asks first on every new link, and then as a sign of life. */
export const linkRoute = (services: WorkerServices): Operation =>
  operation({
    method: "get",
    path: "/link",
    id: "linkInfo",
    summary: "Who answers, and which protocols it speaks",
    answer: { kind: "json", schema: LinkInfo },
    handler: () => json(services.link),
  });
