import type { UsedArtifactRef } from "../domain/lineage.ts";
import type { NewTransformInput, TransformRef } from "../domain/transform.ts";
import { segment } from "./path-segment.ts";

/** Pages of edges: their cursors say nothing, and next_cursor is always there. */
export interface EdgePageOptions {
  readonly cursor?: string;
  readonly limit?: number;
  readonly signal?: AbortSignal;
}

interface EdgePage {
  readonly cursor: string;
  readonly limit: number;
  readonly next_cursor: string;
  readonly total: number;
}

interface Peer {
  json<T>(
    path: string,
    options?: {
      method?: string;
      query?: Readonly<Record<string, string | number | undefined>>;
      body?: unknown;
      repeatable?: boolean;
      signal?: AbortSignal | undefined;
    },
  ): Promise<T>;
}

/** The lineage of one cluster's jobs and artifacts. */
export class LineageClient {
  constructor(private readonly http: Peer) {}

  usedArtifacts(
    jobId: string,
    { signal, ...query }: EdgePageOptions = {},
  ): Promise<EdgePage & { readonly used_artifacts: readonly UsedArtifactRef[] }> {
    return this.http.json(`/jobs/${segment(jobId)}/used-artifacts`, { query, signal });
  }

  usedBy(
    artifactId: string,
    { signal, ...query }: EdgePageOptions = {},
  ): Promise<EdgePage & { readonly used_by: readonly UsedArtifactRef[] }> {
    return this.http.json(`/artifacts/${segment(artifactId)}/used-by`, { query, signal });
  }

  /** Null until it is recorded. */
  transform(jobId: string, signal?: AbortSignal): Promise<TransformRef | null> {
    return this.http.json(`/jobs/${segment(jobId)}/transform`, { signal });
  }

  /** Once per job; the same again is answered with what is recorded. @throws RelayError transform_conflict, transform_refused */
  recordTransform(jobId: string, transform: NewTransformInput): Promise<TransformRef> {
    return this.http.json(`/jobs/${segment(jobId)}/transform`, { method: "POST", body: transform, repeatable: true });
  }
}
