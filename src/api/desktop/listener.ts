import { ListenerRequest } from "../../config/api-listener.ts";
import { RelayError } from "../../domain/errors.ts";
import { json, type Operation, operation } from "../operation.ts";
import { ListenerStatus } from "./listener-views.ts";
import type { DesktopServices } from "./services.ts";

/** The API on TCP (docs/api-listener.md). */
export const listenerOperations = (services: DesktopServices): Operation[] => {
  const answer = { kind: "json", schema: ListenerStatus } as const;
  /** Who comes in through the listener does not decide on it. */
  const ours = (): DesktopServices["listener"] => {
    if (services.access?.foreign !== true) return services.listener;
    throw new RelayError("resource_ownership_refused", "the listener is changed on the daemon's private socket only");
  };
  return [
    operation({
      method: "get",
      path: "/listener",
      id: "listenerStatus",
      summary: "The API on TCP: where it listens, and who is there",
      answer,
      errors: ["resource_ownership_refused"],
      handler: () => json(ours().status()),
    }),
    operation({
      method: "post",
      path: "/listener/start",
      id: "startListener",
      summary: "Serve the API on TCP from now on, and after each start of the daemon",
      body: ListenerRequest,
      bodyOptional: true,
      answer,
      errors: ["resource_ownership_refused", "configuration_error"],
      handler: async ({ body }) => json(await ours().start(body)),
    }),
    operation({
      method: "post",
      path: "/listener/stop",
      id: "stopListener",
      summary: "Serve the API on TCP no longer",
      answer,
      errors: ["resource_ownership_refused"],
      handler: async () => json(await ours().stop()),
    }),
    operation({
      method: "post",
      path: "/listener/rotate-token",
      id: "rotateListenerToken",
      summary: "Replace the token; connections of the old one end",
      answer,
      errors: ["resource_ownership_refused", "configuration_error"],
      handler: async () => json(await ours().rotate()),
    }),
  ];
};
