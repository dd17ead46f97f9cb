import fs from "node:fs";
import { RelayError } from "../../domain/errors.ts";
import type { JobSubmissionInput } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { CliIo } from "../io.ts";
import { resolveLocal } from "../local-path.ts";

/** What a submission's options say. */
export interface SubmitOptions {
  readonly script: string | undefined;
  readonly stdin: boolean;
  readonly "jarvis-yaml": string | undefined;
  readonly workdir: string | undefined;
  readonly env: readonly (readonly [string, string])[];
  readonly login: boolean;
  readonly timeout: number | undefined;
  readonly output: readonly string[];
  readonly retries: number;
  readonly "used-artifact": readonly (readonly [string, string])[];
}

type Work = Pick<JobSubmissionInput, "kind" | "spec">;

/**
 * The work of a submission, from exactly one of its sources: what follows `--`, a script, standard input, a pipeline file.
 *
 * @param here directory that stands for `.`: the caller's where the worker is on the same machine, null elsewhere
 * @throws RelayError usage when there is no source or more than one, local_file_unusable, payload_too_large
 */
export async function workOf(io: CliIo, options: SubmitOptions, rest: readonly string[], here: string | null): Promise<Work> {
  const sources = [
    rest.length > 0 ? "a command after --" : null,
    options.script === undefined ? null : "--script",
    options.stdin ? "--stdin" : null,
    options["jarvis-yaml"] === undefined ? null : "--jarvis-yaml",
  ].filter((source) => source !== null);
  if (sources.length === 0) {
    throw new RelayError("usage", "what is to be run?", {}, "clio-relay job submit -- COMMAND ARGUMENTS…, or --script FILE, or --stdin");
  }
  if (sources.length > 1) throw new RelayError("usage", `${sources.join(" and ")} exclude each other`);
  const workdir = workdirOf(options.workdir, here);
  const shared = {
    env: variables(options.env),
    ...(workdir === null ? {} : { workdir }),
    ...(options.timeout === undefined ? {} : { timeout_seconds: options.timeout }),
  };
  if (options["jarvis-yaml"] !== undefined) {
    refuseForPipelines(options);
    return { kind: "jarvis", spec: { pipeline_yaml: readText(resolveLocal(io, options["jarvis-yaml"])), ...shared } } as Work;
  }
  const program =
    rest.length > 0
      ? { argv: [...rest] }
      : {
          script:
            options.script === undefined
              ? decode(await io.stdin.read(LIMITS.scriptBytes), "standard input")
              : readText(resolveLocal(io, options.script)),
        };
  const spec = { ...program, ...shared, login: options.login, outputs: [...options.output], retries: options.retries };
  return { kind: "command", spec } as Work;
}

function refuseForPipelines(options: SubmitOptions): void {
  const given = [options.login ? "--login" : null, options.output.length > 0 ? "--output" : null, options.retries > 0 ? "--retries" : null];
  const first = given.find((name) => name !== null);
  if (first !== undefined) throw new RelayError("usage", `${first} does not go with --jarvis-yaml`);
}

function workdirOf(given: string | undefined, here: string | null): string | null {
  if (given?.startsWith("/")) return given;
  if (here !== null) return resolveLocal({ env: { cwd: here } as CliIo["env"] }, given ?? ".");
  if (given !== undefined) throw new RelayError("usage", "--workdir must be an absolute path on the cluster");
  return null;
}

function variables(pairs: readonly (readonly [string, string])[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of pairs) {
    if (Object.hasOwn(env, name)) throw new RelayError("usage", `--env ${name} is given twice`);
    env[name] = value;
  }
  return env;
}

/** A file that becomes part of the submission. Its bound is checked before it is read. */
function readText(file: string): string {
  const { size } = fs.statSync(file);
  if (size > LIMITS.scriptBytes) {
    throw new RelayError("payload_too_large", `${file} holds ${size} bytes, more than ${LIMITS.scriptBytes}`, {
      max_bytes: LIMITS.scriptBytes,
    });
  }
  return decode(fs.readFileSync(file), file);
}

function decode(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new RelayError("local_file_unusable", `${what} is not UTF-8 text`);
  }
}
