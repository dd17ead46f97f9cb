import type * as v from "valibot";
import type { NewTransformInput, TransformRef } from "../../domain/transform.ts";
import type { HttpPeer } from "./http-peer.ts";
import { segment } from "./path-segment.ts";

/** Pages of edges: their cursors say nothing, and next_cursor is always there. */
export interface EdgePageOptions {
  readonly cursor?: string;
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

const usedArtifacts = async () => (await import("../answers.ts")).edgePage("used_artifacts");
const usedBy = async () => (await import("../answers.ts")).edgePage("used_by");
const transform = async () => (await import("../answers.ts")).RECORDS.TransformRef;

type Page<S extends () => Promise<v.GenericSchema>> = v.InferOutput<Awaited<ReturnType<S>>>;

/** The lineage of one cluster's jobs and artifacts. */
export class LineageClient {
  constructor(private readonly http: HttpPeer) {}

  usedArtifacts(jobId: string, { signal, ...query }: EdgePageOptions = {}): Promise<Page<typeof usedArtifacts>> {
    return this.http.json(`/jobs/${segment(jobId)}/used-artifacts`, usedArtifacts, { query, signal });
  }

  usedBy(artifactId: string, { signal, ...query }: EdgePageOptions = {}): Promise<Page<typeof usedBy>> {
    return this.http.json(`/artifacts/${segment(artifactId)}/used-by`, usedBy, { query, signal });
  }

  /** Null until it is recorded. */
  transform(jobId: string, signal?: AbortSignal): Promise<TransformRef | null> {
    const recorded = async () => (await import("valibot")).nullable(await transform());
    return this.http.json(`/jobs/${segment(jobId)}/transform`, recorded, { signal });
  }

  /** Once per job; the same again is answered with what is recorded. @throws RelayError transform_conflict, transform_refused */
  recordTransform(jobId: string, made: NewTransformInput): Promise<TransformRef> {
    return this.http.json(`/jobs/${segment(jobId)}/transform`, transform, { method: "POST", body: made, repeatable: true });
  }
}
