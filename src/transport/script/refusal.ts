import { type ErrorCode, RelayError } from "../../domain/errors.ts";
import type { Answer } from "./frame.ts";
import type { Script } from "./remote.ts";

/** What a script may refuse with, and what that is here. `detail` is the script's own. */
const REFUSALS: Readonly<Record<string, readonly [code: ErrorCode, message: (detail: string) => string, hint?: string]>> = {
  unwritable: ["host_unfit", (detail) => `the installation's directory on that host cannot be written: ${detail}`],
  foreign: ["host_unfit", (detail) => `${detail}`, "move it away and run this again"],
  damaged: ["host_unfit", (detail) => `${detail} is damaged`, "clio-relay cluster bootstrap --cluster NAME sends it again"],
  no_digest_program: ["host_unfit", (detail) => `SHA-256 cannot be computed on that host: ${detail}`],
  no_room: ["storage_admission_refused", (detail) => `there is no room on that host for what is sent: ${detail}`],
  incomplete: ["script_failed", (detail) => `not everything arrived on that host: ${detail}`],
  digest_differs: ["script_failed", (detail) => `what arrived on that host is something else, SHA-256 ${detail}`],
  does_not_start: ["artifact_unfit", (detail) => `the executable does not start on that host: ${detail}`],
  python_missing: [
    "host_unfit",
    (found) => `JARVIS-CD needs Python 3.11 or later, and what is found on that host is: ${found}`,
    "a newer one on the PATH there, by --env-setup 'module load python' of cluster add for example",
  ],
  yaml_missing: ["host_unfit", (python) => `JARVIS-CD needs PyYAML, and ${python} on that host has none`, "--pyyaml-wheel FILE brings one"],
  no_jarvis: ["artifact_unfit", (detail) => `that is no JARVIS-CD: ${detail}`],
  jarvis_fails: ["artifact_unfit", (detail) => `that JARVIS-CD does not run on that host: ${detail}`],
  queue_newer: [
    "queue_newer",
    (detail) => `that version cannot read the queue that is there: ${detail}; nothing was switched`,
    "stay with the newer version, or give up what came since it made the queue: end the worker, put queue.db.vN.bak beside the file in its place, and run this again",
  ],
  not_installed: ["relay_not_installed", (detail) => `${detail} is not there, or not executable`],
  nothing_before: ["state_conflict", (place) => `there is no version to go back to: ${place} names none`],
  no_manager: [
    "service_failed",
    (detail) => `no service manager of the user's is in reach on that host: ${detail}`,
    "--launcher setsid or --launcher cron",
  ],
  no_linger: [
    "linger_required",
    (user) => `${user} does not linger on that host: the service would end with the user's last session, and not begin at boot`,
  ],
  not_loaded: ["service_failed", (detail) => `the service manager does not use the unit that was written: ${detail}`],
  manager: ["service_failed", (detail) => `the service manager refused: ${detail}`],
  still_running: [
    "service_failed",
    (pid) => `the supervisor, process ${pid}, was asked to stop and still runs: it waits for its worker`,
    "clio-relay worker stop --kill --cluster NAME ends that, and its jobs go on",
  ],
  no_supervisor: ["service_failed", (detail) => `${detail} is not there`],
  elsewhere: ["wrong_login_node", (host) => `the supervisor runs on ${host}`],
  no_cron: ["host_unfit", () => "there is no crontab on that host", "--launcher setsid"],
  cron: ["service_failed", () => "the user's crontab could not be changed", "--launcher setsid"],
  in_use: ["state_conflict", (detail) => `a worker of another cluster belongs to this installation: ${detail}`],
};

/** The answer of a script that has done its work. @throws RelayError for what it refused, with the script's `reason` in the data, else script_failed */
export function accepted(answer: Answer, script: Script): Answer {
  const reason = answer.last("refused");
  if (answer.status === 0 && reason === null) return answer;
  const detail = (answer.last("detail") ?? "").slice(0, 1_000);
  if (reason === "busy") throw busy(detail);
  const known = reason === null || !Object.hasOwn(REFUSALS, reason) ? undefined : REFUSALS[reason];
  if (known === undefined) {
    throw new RelayError("script_failed", `the program "${script.name}" on the cluster's host ended with ${answer.status}`, {
      script: script.name,
      exit_code: answer.status,
      reason,
    });
  }
  const [code, message, hint] = known;
  // A problem document has words of its own called `reason` and `detail`.
  throw new RelayError(code, message(detail), { reason, detail, refused: reason }, hint);
}

/** The lock's owner, as lock.sh writes it. */
function busy(owner: string): RelayError {
  const [hostname = "", , pid = ""] = owner.split(":");
  return new RelayError(
    "state_conflict",
    `process ${pid} on ${hostname} is changing this installation`,
    { reason: "busy", hostname, pid: Number(pid) },
    "run this again in a moment",
  );
}
