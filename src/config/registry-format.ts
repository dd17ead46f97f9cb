/** Bound of clusters.json. */
export const REGISTRY_MAX_BYTES = 4 * 1024 * 1024;

/** Version of clusters.json that is written. Version 1 knew clusters of this machine only; they are written as they were. */
export const REGISTRY_VERSION = 2;
export const REGISTRY_VERSIONS = [1, REGISTRY_VERSION] as const;
