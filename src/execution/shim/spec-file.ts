import path from "node:path";
import { readSmallFile } from "../../lib/files/regular-file.ts";
import { type AttemptSpec, FILES, RECORD_MAX_BYTES } from "../spool-records.ts";

const isText = (value: unknown): value is string => typeof value === "string" && !value.includes("\0");
const isCount = (value: unknown): value is number => typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
const isObject = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === "object" && !Array.isArray(value);

/**
 * Read spec.json. Checked by hand, because a schema library would be a third of the shim.
 *
 * @throws Error that says what does not fit
 */
export function readSpecFile(attemptDir: string): AttemptSpec {
  const text = readSmallFile(path.join(attemptDir, FILES.spec), RECORD_MAX_BYTES);
  if (text === null) throw new Error("spec.json is missing");
  const spec: unknown = JSON.parse(text);
  const complaint = misfit(spec);
  if (complaint !== null) throw new Error(`spec.json: ${complaint}`);
  return spec as AttemptSpec;
}

function misfit(spec: unknown): string | null {
  if (!isObject(spec)) return "not an object";
  const { argv, workdir, env, env_setup, env_setup_strict, timeout_seconds, quota, cancel_grace_seconds, first_alone_seconds = 0 } = spec;
  if (!Array.isArray(argv) || argv.length === 0 || !argv.every(isText) || argv[0] === "") return "argv";
  if (!isText(workdir) || !workdir.startsWith("/")) return "workdir";
  if (!isObject(env) || !Object.values(env).every(isText)) return "env";
  if (typeof spec.login !== "boolean") return "login";
  if (env_setup !== null && typeof env_setup !== "string") return "env_setup";
  if (env_setup_strict !== undefined && typeof env_setup_strict !== "boolean") return "env_setup_strict";
  if (timeout_seconds !== null && !(typeof timeout_seconds === "number" && timeout_seconds > 0)) return "timeout_seconds";
  if (typeof cancel_grace_seconds !== "number" || !(cancel_grace_seconds >= 0)) return "cancel_grace_seconds";
  if (typeof first_alone_seconds !== "number" || !(first_alone_seconds >= 0)) return "first_alone_seconds";
  if (!isObject(quota) || !isCount(quota.stream_bytes) || !isCount(quota.job_bytes)) return "quota";
  if (!isObject(quota.used) || !isCount(quota.used.stdout) || !isCount(quota.used.stderr)) return "quota.used";
  return null;
}
