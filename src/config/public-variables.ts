/** Where an installation lies, what of it a desktop has to know, and which job a program is in. None of them can be a secret. */
const PUBLIC: ReadonlySet<string> = new Set([
  "CLIO_RELAY_HOME",
  "CLIO_RELAY_CORE_DIR",
  "CLIO_RELAY_SPOOL_DIR",
  "CLIO_RELAY_CLUSTER_REGISTRY",
  "CLIO_RELAY_REMOTE_MCP_CACHE",
  "CLIO_RELAY_SSH_CONFIG",
  "CLIO_RELAY_CA_FILE",
  "CLIO_RELAY_CLUSTER",
  "CLIO_RELAY_FRPC_BIN",
  "CLIO_RELAY_LOCAL_LISTEN",
  "CLIO_RELAY_INPUT_WORKSPACE_ROOT",
  "CLIO_RELAY_INPUT_FILE_MAX_BYTES",
  "CLIO_RELAY_INPUT_FILE_MAX_COUNT",
  "CLIO_RELAY_INPUT_TOTAL_MAX_BYTES",
  "CLIO_RELAY_JOB_ID",
  "CLIO_RELAY_ATTEMPT",
  "CLIO_RELAY_EVENTS",
]);

/** May hold a name and a password. */
const PROXY = "CLIO_RELAY_OUTBOUND_PROXY";

/** Whether a variable of the relay's own may stand where others than its user can read it: in a file that is handed on, or among the arguments of a program. */
export const isPublicVariable = (name: string, value: string): boolean =>
  PUBLIC.has(name) || (name === PROXY && URL.canParse(value) && !value.includes("@"));
