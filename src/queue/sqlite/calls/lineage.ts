import type { QueueStore } from "../../store.ts";
import { consumersOf, usedArtifacts, usedBy } from "../lineage.ts";
import { recordTransform, transform } from "../transforms.ts";
import type { Calls } from "./access.ts";

type LineageCalls = Pick<QueueStore, "usedArtifacts" | "usedBy" | "consumersOf" | "recordTransform" | "transform">;

/** What the store does with edges between jobs and artifacts, and with transforms. */
export const lineageCalls = ({ read, write }: Calls): LineageCalls => ({
  usedArtifacts: (jobId, page) => read((r) => usedArtifacts(r, jobId, page)),
  usedBy: (artifactId, page) => read((r) => usedBy(r, artifactId, page)),
  consumersOf: (jobId, limit) => read((r) => consumersOf(r, jobId, limit)),
  recordTransform: (jobId, given) => write((w) => recordTransform(w, jobId, given)),
  transform: (jobId) => read((r) => transform(r, jobId)),
});
