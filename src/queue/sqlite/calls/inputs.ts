import type { QueueStore } from "../../store.ts";
import { namedInputs, recordInput } from "../record-input.ts";
import { prepareSubmission } from "../submit.ts";
import type { Calls } from "./access.ts";

type InputCalls = Pick<QueueStore, "recordInput" | "namedInputs">;

/** What the store does with staged files. */
export const inputCalls = ({ read, write }: Calls): InputCalls => ({
  async recordInput(submission, file) {
    const prepared = prepareSubmission(submission, "workload");
    return write((w) => recordInput(w, prepared, file));
  },
  namedInputs: (digests) => read((r) => namedInputs(r, digests)),
});
