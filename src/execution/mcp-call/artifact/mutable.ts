import type { MUTABLE_CAUSES, ServerArtifact } from "../../../domain/mcp-call.ts";

export type MutableCause = (typeof MUTABLE_CAUSES)[number];

/** Why a program may be another one tomorrow. */
export class Mutable extends Error {
  constructor(
    readonly why: MutableCause,
    detail: string,
    readonly place: string | null = null,
  ) {
    super(detail);
  }

  get artifact(): ServerArtifact {
    return { immutable: false, cause: this.why, detail: this.message.slice(0, 1_000), path: this.place?.slice(0, 4_096) ?? null };
  }
}

/** What is held against a manifest at most. */
export const ARTIFACT_BOUNDS = { files: 20_000, bytes: 1024 * 1024 * 1024, manifestBytes: 32 * 1024 * 1024 } as const;

/** Counts what is read of an artifact. */
export class ReadSoFar {
  files = 0;
  #bytes = 0;

  /** @throws Mutable too_large */
  add(bytes: number, place: string): void {
    this.files++;
    this.#bytes += bytes;
    if (this.files > ARTIFACT_BOUNDS.files || this.#bytes > ARTIFACT_BOUNDS.bytes)
      throw new Mutable("too_large", `more than ${ARTIFACT_BOUNDS.files} files, or ${ARTIFACT_BOUNDS.bytes} bytes, belong to it`, place);
  }
}
