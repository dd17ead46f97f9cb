/** What a failure means at each door. `exit` is the CLI's exit code, `mcp` the JSON-RPC error code. */
export interface ErrorRule {
  readonly http: number;
  readonly exit: number;
  readonly mcp: number;
  readonly retryable: boolean;
  readonly title: string;
  readonly hint?: string;
}

/** CLI exit codes. Every other code is a bug, except where a verb passes on the code of what it ran. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  authorization: 4,
  linkDown: 5,
  notFinished: 6,
  conflict: 7,
  remoteFailed: 10,
  interrupted: 130,
} as const;

/** When each exit code is used, for people. */
export const EXIT_MEANINGS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: "done",
  failed: "failed in another way than the ones below",
  usage: "the command line or the request is not understood or not allowed, or a file of this machine that it names is not there",
  notFound: "there is no such cluster, job, task, artifact or route",
  authorization: "somebody has to authorize it first",
  linkDown: "the worker, the daemon or the link does not answer",
  notFinished: "the observation ran out of time; what it observed goes on",
  conflict: "it contradicts what is there: another body under the same key, another owner, another state",
  remoteFailed: "the job, or the command on the cluster, failed; only of verbs that wait for it",
  interrupted: "interrupted from the keyboard or by a signal",
};

const INVALID_PARAMS = -32602;
const INTERNAL = -32603;

const rule = (
  http: number,
  title: string,
  options: { exit?: number; mcp?: number; retryable?: boolean; hint?: string } = {},
): ErrorRule => ({
  http,
  title,
  exit: options.exit ?? exitFor(http),
  mcp: options.mcp ?? (http < 500 ? INVALID_PARAMS : INTERNAL),
  retryable: options.retryable ?? false,
  ...(options.hint === undefined ? {} : { hint: options.hint }),
});

function exitFor(http: number): number {
  if (http === 401 || http === 403) return EXIT.authorization;
  if (http === 404) return EXIT.notFound;
  if (http === 409) return EXIT.conflict;
  if (http === 400 || http === 422) return EXIT.usage;
  return EXIT.failed;
}

/**
 * Every reason that a failure of clio-relay can carry. Nothing else is decided from a failure than what this
 * table says of its reason; message texts are for people only.
 */
export const ERRORS = {
  // requests
  request_validation_failed: rule(422, "The request does not fit its schema"),
  http_request_malformed: rule(400, "The request is not well-formed"),
  wait_parameters_invalid: rule(422, "The wait parameters are out of range"),
  poll_interval_invalid: rule(400, "The poll interval is out of range"),
  queue_query_refused: rule(422, "The queue query is out of range"),
  observation_pattern_invalid: rule(400, "The pattern is no regular expression"),
  observation_pattern_unsafe: rule(400, "The pattern could take any time to be looked for", {
    hint: "without references back, looking ahead or behind, and large counts",
  }),
  log_stream_invalid: rule(400, "There is no such log stream"),
  range_not_satisfiable: rule(416, "The range lies outside the content", { exit: EXIT.usage }),
  payload_too_large: rule(413, "The body is larger than this route takes", { exit: EXIT.usage, mcp: -32055 }),
  request_timeout: rule(408, "The request was not sent to its end in time", { exit: EXIT.failed, retryable: true }),
  upgrade_required: rule(426, "The route is for WebSockets", {
    exit: EXIT.usage,
    hint: "the same route with /sse in place of /ws is an event stream",
  }),
  request_head_too_large: rule(431, "The head of the request is too large", { exit: EXIT.usage }),
  listener_busy: rule(429, "The listener is at one of its limits", { retryable: true }),
  method_not_allowed: rule(405, "The route does not take this method"),
  usage: rule(400, "The command line is not understood"),
  configuration_error: rule(400, "The configuration is not usable"),
  precondition_failed: rule(412, "The content is not the one that was asked for", { exit: EXIT.conflict }),

  // authorization
  authentication_required: rule(401, "A valid token is required"),
  resource_ownership_refused: rule(403, "This is owned by somebody else"),
  confirmation_required: rule(403, "It takes something away, and nobody has said yes to that"),
  confirmation_declined: rule(403, "The question was not answered with yes", { exit: EXIT.failed }),
  agent_commands_refused: rule(403, "Agents may not submit commands to this cluster", {
    hint: "its operator can allow it: clio-relay cluster add --name NAME --agent-commands",
  }),
  host_refused: rule(403, "The Host header names another server"),
  origin_refused: rule(403, "Pages of that origin may not use this"),

  // not found
  not_found: rule(404, "There is no such thing"),
  route_not_found: rule(404, "There is no such route", { hint: "GET /openapi.json lists the routes" }),
  job_not_found: rule(404, "There is no such job"),
  task_not_found: rule(404, "There is no such task"),
  artifact_not_found: rule(404, "There is no such artifact"),
  cluster_not_found: rule(404, "There is no such cluster", { hint: "clio-relay cluster list" }),
  tool_not_found: rule(404, "There is no such tool"),
  resource_not_found: rule(404, "There is no such resource"),
  log_not_found: rule(404, "The job has no such log yet", { retryable: true }),

  // conflicts
  job_submission_conflict: rule(409, "The idempotency key belongs to another submission"),
  job_route_refused: rule(422, "The cluster's route is another than the one that was meant", { exit: EXIT.conflict }),
  job_cluster_mismatch: rule(409, "The worker serves another cluster"),
  mcp_discovery_failed: rule(502, "The MCP server did not say which tools it has", { exit: EXIT.failed }),
  mcp_catalog_changed: rule(409, "The tools of servers on clusters are others than those that were listed", {
    hint: "list the tools again, as most clients do by themselves once they are told, and then call: names, arguments and what a tool does may be others",
  }),
  state_conflict: rule(409, "The record has changed meanwhile", { retryable: true }),
  transform_conflict: rule(409, "The job has another transform on record"),
  attempt_fenced: rule(409, "Another attempt has taken over"),
  queue_owned: rule(409, "Another worker owns this queue"),
  already_running: rule(409, "It is running already"),
  not_within_job: rule(409, "A job cannot start daemons or workers", { hint: "start it outside of jobs: clio-relay desktop start" }),

  // refusals
  engine_unavailable: rule(422, "This worker has no engine for that kind of job", { exit: EXIT.failed }),
  scheduler_unavailable: rule(422, "This worker has no such scheduler", {
    exit: EXIT.failed,
    hint: "clio-relay cluster add --name NAME --scheduler-provider auto has its worker look for one, from its next start on",
  }),
  scheduler_failed: rule(502, "The scheduler did not do what was asked", { exit: EXIT.failed, retryable: true }),
  job_submission_refused: rule(422, "The submission is refused"),
  jarvis_submission_refused: rule(422, "The pipeline is refused"),
  agent_submission_refused: rule(422, "The run of the agent is refused"),
  mcp_admission_refused: rule(422, "The call of the MCP server is refused"),
  transform_refused: rule(422, "The transform does not say what the job consumes"),
  active_job_capacity_reached: rule(429, "The queue holds as many active jobs as it may", { retryable: true }),
  storage_admission_refused: rule(507, "There is not enough room to take this on", { mcp: -32007, retryable: true }),

  input_ingest_refused: rule(422, "The input is not what it is said to be", { exit: EXIT.failed }),
  input_ingest_conflict: rule(409, "Another part of the input is wanted first", { exit: EXIT.failed, retryable: true }),
  input_ingest_unavailable: rule(404, "The content of the input is not there", { exit: EXIT.failed }),
  input_changed: rule(409, "The file changed while it was read", {
    exit: EXIT.failed,
    hint: "wait until it is written, then submit again",
  }),

  // content
  artifact_changed: rule(409, "The file is no longer the one that was recorded", { exit: EXIT.failed }),
  artifact_unreadable: rule(410, "The recorded file cannot be read", { exit: EXIT.failed }),
  path_escapes_root: rule(422, "The path leaves its root", { exit: EXIT.failed }),

  // queue file
  queue_foreign: rule(500, "The queue file was not made by clio-relay"),
  queue_newer: rule(500, "The queue file was made by a newer clio-relay", {
    hint: "run the newer version, or restore the backup beside it",
  }),
  queue_corrupt: rule(500, "The queue file is damaged", {
    hint: "clio-relay queue repair mends what can be derived, clio-relay queue audit lists what is left",
  }),
  queue_incomplete: rule(500, "A file of the queue is gone or damaged", {
    hint: "put the file back as it was; clio-relay queue repair goes on without it",
  }),
  queue_unavailable: rule(503, "The queue file cannot be used", { retryable: true }),

  // reachability
  link_down: rule(503, "The cluster's link is down", { exit: EXIT.linkDown, retryable: true }),
  cluster_busy: rule(503, "As many requests to the cluster wait as may", { exit: EXIT.linkDown, retryable: true }),
  link_bringup_failed: rule(502, "The link could not be brought up", { exit: EXIT.linkDown }),
  channel_refused: rule(502, "The other side of the link refused a channel", { exit: EXIT.linkDown, retryable: true }),
  answer_malformed: rule(502, "What came over the link is no well-formed answer", { exit: EXIT.failed }),
  algorithms_refused: rule(502, "The two sides have no algorithms in common", { exit: EXIT.failed }),
  worker_not_running: rule(503, "No worker is running for this cluster", {
    exit: EXIT.linkDown,
    retryable: true,
    hint: "clio-relay worker start --cluster NAME",
  }),
  authorization_required: rule(503, "The link needs a person to authorize it", { exit: EXIT.authorization }),
  desktop_unavailable: rule(503, "The desktop daemon does not answer", {
    exit: EXIT.linkDown,
    retryable: true,
    hint: "clio-relay desktop logs",
  }),
  request_interrupted: rule(503, "Interrupted before the answer came, so that it is not known whether it was done", {
    exit: EXIT.interrupted,
    hint: "look at what is there before it is done again",
  }),
  shutting_down: rule(503, "The process is shutting down", { exit: EXIT.linkDown, retryable: true }),
  observation_timeout: rule(504, "The observation ran out of time; what it observed goes on", {
    exit: EXIT.notFinished,
    mcp: -32052,
    retryable: true,
  }),
  version_mismatch: rule(409, "The two sides speak versions that do not fit", { exit: EXIT.failed }),

  // ssh
  ssh_config_unsupported: rule(422, "The ssh configuration demands something that is not supported", { exit: EXIT.failed }),
  host_key_refused: rule(403, "The host's key is not one that is trusted"),
  authentication_failed: rule(403, "The other side did not let the user in"),
  host_key_changed: rule(403, "The server's key is not the one that is known"),
  key_expired: rule(403, "The key was let in for a time that is over"),
  pairing_code_invalid: rule(422, "This is no pairing code", { hint: "clio-relay worker pair, on the cluster, prints one" }),
  pairing_refused: rule(403, "The pairing code is not, or no longer, one that lets a key in", {
    hint: "clio-relay worker pair, on the cluster, prints a new one",
  }),
  passphrase_wrong: rule(403, "The passphrase does not open the key"),
  prompt_cancelled: rule(403, "A question was not answered"),
  wrong_login_node: rule(409, "The host that answered is not the one that it has to be", { exit: EXIT.failed }),
  wrong_site: rule(409, "The site that answered is not the one that it has to be", { exit: EXIT.failed }),
  host_unreachable: rule(503, "The host cannot be reached", { exit: EXIT.linkDown, retryable: true }),

  // the meeting at a relay-host
  relay_token_refused: rule(403, "The relay-host does not know the token", {
    hint: "CLIO_RELAY_HOST_TOKEN, or the file that holds it, must be one of the relay-host's",
  }),
  relay_host_unproven: rule(502, "Who answered does not know the relay-host's token", { exit: EXIT.authorization }),
  relay_host_busy: rule(429, "The relay-host is at one of its limits", { exit: EXIT.linkDown, retryable: true }),
  worker_absent: rule(503, "The worker is not at the relay-host", { exit: EXIT.linkDown, retryable: true }),
  join_refused: rule(403, "The worker does not let this desktop in", {
    hint: "clio-relay worker keys list, on the cluster, shows whom it lets in",
  }),
  meeting_key_refused: rule(403, "The relay-host refused the proof of a key"),
  meeting_superseded: rule(409, "Another worker with the same key has registered at the relay-host", { retryable: true }),
  meeting_flooded: rule(502, "More came than the meeting protocol allows", { exit: EXIT.failed, retryable: true }),
  meeting_malformed: rule(502, "What came does not follow the meeting protocol", { exit: EXIT.failed, retryable: true }),

  // the way out
  proxy_failed: rule(502, "The proxy did not open the connection", { exit: EXIT.linkDown, retryable: true }),
  tls_failed: rule(502, "TLS was not agreed on", { exit: EXIT.linkDown, retryable: true }),
  certificate_refused: rule(502, "The server's certificate is not one that is trusted", { exit: EXIT.authorization }),
  upgrade_refused: rule(502, "The server does not open a WebSocket", { exit: EXIT.linkDown, retryable: true }),

  // frp
  frp_not_installed: rule(503, "There is no frpc for this", { exit: EXIT.failed, hint: "clio-relay install-frp" }),
  frp_unreachable: rule(502, "The cluster cannot be reached over frp", { exit: EXIT.linkDown, retryable: true }),
  digest_mismatch: rule(422, "What was fetched has not the SHA-256 that it has to have", { exit: EXIT.failed }),
  download_failed: rule(502, "Something could not be fetched", { exit: EXIT.failed, retryable: true }),

  // the cluster's host
  script_failed: rule(502, "A program on the cluster's host did not come to its end", { exit: EXIT.failed, retryable: true }),
  host_unfit: rule(422, "The cluster's host cannot hold or run clio-relay", { exit: EXIT.failed }),
  artifact_unfit: rule(422, "The executable does not fit the cluster's host", { exit: EXIT.failed }),
  relay_not_installed: rule(503, "clio-relay is not installed on the cluster's host, or does not start there", {
    exit: EXIT.failed,
    hint: "clio-relay cluster bootstrap --cluster NAME",
  }),
  linger_required: rule(403, "The service would end with the user's last session on that host", {
    hint: "loginctl enable-linger, once on the cluster; --allow-login-scoped goes without",
  }),
  service_failed: rule(502, "The service manager of the cluster's host did not do what was asked", { exit: EXIT.failed }),

  // ours
  platform_unsupported: rule(501, "This part of clio-relay does not run on this system", {
    hint: "workers run on Linux; from here, reach one: clio-relay cluster add --name NAME --ssh-host HOST",
  }),
  system_limit: rule(503, "A limit of the system keeps clio-relay from running", { exit: EXIT.failed }),
  local_file_missing: rule(400, "A file that was named is not on this machine"),
  local_file_unusable: rule(500, "A file on this machine cannot be used"),
  internal_error: rule(500, "Something went wrong inside clio-relay"),
} as const satisfies Record<string, ErrorRule>;

export type ErrorCode = keyof typeof ERRORS;

/** The rule of a code received from elsewhere; unknown codes count as internal errors. */
export function errorRule(code: string): ErrorRule {
  return Object.hasOwn(ERRORS, code) ? (ERRORS as Record<string, ErrorRule>)[code]! : ERRORS.internal_error;
}

/** Whether a string is one of the table's codes. */
export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(ERRORS, code);

/** Extension members of a failure: JSON data that a program may use, free of secrets. */
export type ErrorData = Readonly<Record<string, unknown>>;

/**
 * The one failure type. `message` is written for the person who meets it and is safe to show; `code` is what
 * programs decide on; `data` become extension members of the problem document.
 */
export class RelayError extends Error {
  override readonly name = "RelayError";

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly data: ErrorData = {},
    readonly hint: string | undefined = undefined,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  get rule(): ErrorRule {
    return ERRORS[this.code];
  }
}

/** What to do about a failure: its own hint, else that of the table with the cluster's name in it; undefined where neither says anything. */
export function hintOf({ code, hint, data }: Pick<RelayError, "code" | "hint" | "data">): string | undefined {
  const { cluster } = data;
  const general: string | undefined = errorRule(code).hint;
  return hint ?? (typeof cluster === "string" ? general?.replace(/\bNAME\b/g, () => cluster) : general);
}

/** Narrow an unknown thrown value to a RelayError, optionally of one code. */
export const isRelayError = (error: unknown, code?: ErrorCode): error is RelayError =>
  error instanceof RelayError && (code === undefined || error.code === code);
