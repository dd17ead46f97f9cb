import { variable } from "../../config/environment.ts";
import { PARENT } from "../../domain/parent.ts";
import type { CliIo } from "../io.ts";

/** What a submission from inside a job says of that in its metadata, where it goes to the same cluster. */
export function surroundingJob({ env }: Pick<CliIo, "env">, cluster: string): { readonly [PARENT]?: string } {
  const job = variable(env, "CLIO_RELAY_JOB_ID");
  return job !== undefined && variable(env, "CLIO_RELAY_CLUSTER") === cluster ? { [PARENT]: job } : {};
}
