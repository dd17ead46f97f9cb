import { SCHEDULER_ID_PATTERN } from "../../domain/id.ts";
import { oneOf, type Reader } from "../values.ts";
import { option } from "../verb.ts";

export const schedulerId: Reader<string> = {
  label: "ID",
  whenMissing: "clio-relay job status last shows the one of the job that was submitted last from here",
  form: "what the scheduler calls a job, such as 12345 or 12345_7",
  read: (given) => (SCHEDULER_ID_PATTERN.test(given) ? given : undefined),
};

export const PROVIDER = option(oneOf("slurm", "gridengine"), "Which scheduler; the cluster's own unless it is said");
