import type { ServiceStatus } from "../../transport/service/status.ts";

/** The rows of a service's status, for people. */
export const serviceRows = (status: ServiceStatus) =>
  [
    ["cluster", status.cluster],
    ["host", status.hostname],
    ["state", status.state],
    ["launcher", status.launcher],
    ["unit", status.unit === null ? null : `${status.unit.name} (${status.unit.active_state}, ${status.unit.sub_state})`],
    ["persistence", status.persistence],
    ["worker", status.worker === null ? null : `process ${status.worker.process.pid}, version ${status.worker.version}`],
    ["to be done", status.operator_action],
  ] as const;
