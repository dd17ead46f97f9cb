import type { Allocation } from "../spool-records.ts";

/** A batch script's surroundings: which allocation it is in, and what the scheduler says about that. */
export interface Surroundings {
  readonly allocation: Allocation;
  /** For the job's environment. */
  readonly variables: Readonly<Record<string, string>>;
}

type Variables = Readonly<Record<string, string | undefined>>;

const PREFIXES = ["SLURM_", "SLURMD_", "SGE_", "PE_"];
const NAMES: ReadonlySet<string> = new Set([
  // devices that the allocation has, by the names that their drivers read
  "CUDA_VISIBLE_DEVICES",
  "NVIDIA_VISIBLE_DEVICES",
  "ROCR_VISIBLE_DEVICES",
  "GPU_DEVICE_ORDINAL",
  "ZE_AFFINITY_MASK",
  // qsub(1), ENVIRONMENT VARIABLES
  "JOB_ID",
  "JOB_NAME",
  "NSLOTS",
  "NHOSTS",
  "NQUEUES",
  "QUEUE",
  "TMPDIR",
  "HOSTNAME",
]);

/** Null where the variables are no batch script's. The names are those of sbatch(1), OUTPUT ENVIRONMENT VARIABLES, and qsub(1), ENVIRONMENT VARIABLES. */
export function surroundings(environment: Variables, node: string): Surroundings | null {
  const allocation = allocationOf(environment, node);
  if (allocation === null) return null;
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && (NAMES.has(name) || PREFIXES.some((prefix) => name.startsWith(prefix)))) variables[name] = value;
  }
  return { allocation, variables };
}

function allocationOf(environment: Variables, node: string): Allocation | null {
  const { SLURM_JOB_ID: slurm, SLURM_CLUSTER_NAME: cluster, JOB_ID: gridEngine, SGE_ROOT: root } = environment;
  if (slurm) return { provider: "slurm", native_id: slurm, cluster: cluster || null, node };
  if (gridEngine && root) return { provider: "gridengine", native_id: gridEngine, cluster: null, node };
  return null;
}

/** What a job in an allocation gets: what it was told wins, but for the place for temporary files, which the allocation has to itself. */
export function withSurroundings(
  env: Readonly<Record<string, string>>,
  variables: Surroundings["variables"],
): Readonly<Record<string, string>> {
  const { TMPDIR } = variables;
  return { ...variables, ...env, ...(TMPDIR === undefined ? {} : { TMPDIR }) };
}
