import { SCHEDULER_CHOICES } from "../../domain/scheduler.ts";
import { oneOf } from "../values.ts";

/** Which scheduler a cluster has. Help names the words in its text, where they have room. */
export const schedulerChoice = { ...oneOf(...SCHEDULER_CHOICES), label: "SCHEDULER" };
