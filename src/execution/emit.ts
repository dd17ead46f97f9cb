import type { NewProgressInput } from "../domain/progress.ts";
import type { NewTaskEventInput } from "../domain/task.ts";

/** What a process of a job reports. */
export type Emission = ({ readonly type: "progress" } & NewProgressInput) | ({ readonly type: "task-event" } & NewTaskEventInput);

/**
 * Append one line to this session's file in the directory that CLIO_RELAY_EVENTS names.
 *
 * @throws RelayError request_validation_failed, not_found when the directory is not there, storage_admission_refused when there is no room
 */
export declare function emit(eventsDir: string, emission: Emission): void;
