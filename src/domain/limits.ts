const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/**
 * Default bounds, in bytes unless the name says otherwise. Those that an operator may raise are settings
 * (config/settings.ts) whose defaults are these; the others bound one message or one record and are fixed.
 */
export const LIMITS = {
  /** Kept bytes of one output stream of one job (setting log_stream_max_bytes). */
  logStreamBytes: 64 * MiB,
  /** Kept bytes of all output streams of one job (setting log_job_max_bytes). */
  logJobBytes: 128 * MiB,
  logReadDefaultBytes: 64 * KiB,
  logReadMaxBytes: 1 * MiB,
  pageDefault: 100,
  pageMax: 500,
  queueScanDefault: 1_000,
  queueScanMax: 10_000,
  /** Jobs in a state that is not terminal (setting active_jobs_max). */
  activeJobs: 10_000,
  /** Attempts in allocations of a scheduler, at a time (setting scheduler_jobs_max). */
  schedulerJobs: 500,
  jobRecordBytes: 1 * MiB,
  /** A job's spec as JSON; what is left of the record's bound is for the relay's own members. */
  specBytes: 768 * KiB,
  eventRecordBytes: 256 * KiB,
  /** One line of a job's own event file; the record made of it is an event record, and takes more room. */
  emitLineBytes: 128 * KiB,
  /** Files a job may open below CLIO_RELAY_EVENTS; one per process. */
  emitFiles: 1_024,
  /** Bytes of all event files of one attempt together; what is beyond is not read. */
  emitBytes: 8 * MiB,
  requestBodyBytes: 2 * MiB,
  /** The largest JSON document that a client takes for an answer, and the largest message of a stream of events. */
  answerBytes: 32 * MiB,
  /** Tries of one step of an attempt that fails for a reason that time alone does not mend; then it goes on without the step. */
  stepTries: 6,
  /** Attempts in a row that could not be started before their job fails (spawn_failed). */
  startTries: 8,
  artifactsPerJob: 10_000,
  /** Artifacts that one job may pin as consumed, one such entry, and all of them together, as JSON. */
  artifactUses: 1_000,
  artifactUseBytes: 8 * KiB,
  artifactUsesBytes: 256 * KiB,
  consumersPerArtifact: 10_000,
  transformBytes: 192 * KiB,
  transformEnvironmentBytes: 16 * KiB,
  outputPatterns: 256,
  /** Outputs up to this size are copied into the spool; larger ones are referenced in place (setting artifact_store_max_bytes). */
  artifactStoreBytes: 64 * MiB,
  /** An artifact's bytes in a JSON document; by themselves they have no bound. */
  artifactInlineBytes: 16 * MiB,
  argvItems: 4_096,
  argvBytes: 512 * KiB,
  scriptBytes: 512 * KiB,
  /** Of a pipeline's text: parsing one of this size keeps the worker busy for a moment. */
  pipelineBytes: 128 * KiB,
  envEntries: 1_024,
  idempotencyKeyLength: 512,
  retriesMax: 100,
  /** A staged input, and all of one submission, unless more is asked for (settings input_file_max_bytes, input_total_max_bytes). */
  inputFileBytes: 1 * MiB,
  inputTotalBytes: 4 * MiB,
  /** Inputs of one submission: as many as go without asking (setting input_file_max_count), and as many as can be. */
  inputFiles: 16,
  inputFilesMax: 1_000,
  /** What an operator may let one request carry as base64. */
  inputInlineMaxBytes: 64 * MiB,
  /** One piece of an upload. */
  inputChunkBytes: 1 * MiB,
  /** Pieces that are in memory at a time. */
  inputChunks: 8,
  /** Requests that wait for their turn to carry an input. */
  inputIngestsWaiting: 64,
  /** Uploads that have begun and are not complete. */
  inputUploads: 1_024,
  /** Parts that do not grow, and contents that no artifact names, are kept for so long. */
  inputKeepSeconds: 86_400,
  /** Inputs that a job's status lists. */
  inputsShown: 100,
  /** Free bytes that must remain on the spool and state file systems (setting min_free_bytes). */
  minFreeBytes: 1 * GiB,
  /** Files (inodes) that must remain possible there; a job takes a dozen and what it keeps of its outputs. */
  minFreeInodes: 256,
  waitDefaultSeconds: 600,
  waitMaxSeconds: 86_400,
  leaseSeconds: 120,
  cancelGraceSeconds: 10,
  /** The largest prompt of an agent, and the largest MCP configuration. */
  agentFileBytes: 1 * MiB,
  /** Connections with the token that the desktop holds on TCP at a time (setting api_connections). */
  apiConnections: 4_096,
  /** What a relay-host takes on (settings relay_host_…); openings are in a minute. */
  relayHostConnections: 8_192,
  relayHostConnectionsPerAddress: 1_024,
  relayHostOpeningsPerAddress: 600,
  relayHostOpeningsPerKey: 120,
  relayHostWorkersPerToken: 4_096,
  relayHostWorkersPerAddress: 256,
  relayHostJoinsPerAddress: 256,
  relayHostJoinsPerToken: 4_096,
  relayHostJoinsPerRoom: 64,
  relayHostJoinsPerKey: 64,
  problemBytes: 8 * KiB,
  problemDetailLength: 2_000,
} as const;
