import type { QueueStore } from "../../store.ts";
import { endpoints, heartbeat, registerEndpoint, stopEndpoint } from "../endpoints.ts";
import type { Calls } from "./access.ts";

type EndpointCalls = Pick<QueueStore, "registerEndpoint" | "heartbeat" | "stopEndpoint" | "endpoints">;

/** What the store does with the processes that work on its jobs. */
export const endpointCalls = ({ read, write }: Calls, leaseMs: number): EndpointCalls => ({
  registerEndpoint: (endpoint) => write((w) => registerEndpoint(w, endpoint)),
  heartbeat: (endpointId, laneLastError) => write((w) => heartbeat(w, endpointId, laneLastError, leaseMs)),
  stopEndpoint: (endpointId) => write((w) => stopEndpoint(w, endpointId)),
  endpoints: (page) => read((r) => endpoints(r, page)),
});
