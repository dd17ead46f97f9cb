import type { NewProgress } from "./progress.ts";
import type { NewTaskEvent } from "./task.ts";

/** What one line of a job's event file says, once it is read; `refused` for one that does not fit. */
export type EmitLine =
  | { readonly type: "progress"; readonly progress: NewProgress }
  | {
      readonly type: "task-event";
      readonly event: NewTaskEvent;
      /** Name of the job's task that it belongs to, which is made where there is none; left out: the job's first. Not for a job's own files to say. */
      readonly task?: string;
    }
  | { readonly type: "refused"; readonly reason: string };
