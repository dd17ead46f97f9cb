import type { NewProgress } from "./progress.ts";
import type { NewTaskEvent } from "./task.ts";

/** What one line of a job's event file says, once it is read; `refused` for one that does not fit. */
export type EmitLine =
  | { readonly type: "progress"; readonly progress: NewProgress }
  | { readonly type: "task-event"; readonly event: NewTaskEvent }
  | { readonly type: "refused"; readonly reason: string };
