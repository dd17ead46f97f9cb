import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import type { JobSubmissionInput } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { CliIo } from "../io.ts";
import { decodeText, readLocalText } from "../local-file.ts";
import { oneLine } from "../print/safe-text.ts";
import { isUndecodable } from "../undecodable.ts";
import { requestOf, SCHEDULER, type SchedulerFlags } from "./scheduler-options.ts";

/** What a submission's options say. */
export interface SubmitOptions extends SchedulerFlags {
  readonly name: string | undefined;
  readonly script: string | undefined;
  readonly stdin: boolean;
  readonly "jarvis-yaml": string | undefined;
  readonly workdir: string | undefined;
  readonly env: readonly (readonly [string, string])[];
  readonly login: boolean;
  readonly timeout: number | undefined;
  readonly output: readonly string[];
  readonly input: readonly unknown[];
  readonly retries: number;
  readonly exclusive: boolean;
}

type Work = Pick<JobSubmissionInput, "kind" | "spec" | "metadata">;

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
    options.sbatch === undefined ? null : "--sbatch",
    options.qsub === undefined ? null : "--qsub",
    options["jarvis-yaml"] === undefined ? null : "--jarvis-yaml",
  ].filter((source) => source !== null);
  if (sources.length === 0) {
    throw new RelayError("usage", "what is to be run?", {}, "clio-relay job submit -- COMMAND ARGUMENTS…, or --script FILE, or --stdin");
  }
  if (sources.length > 1) {
    const forScript = rest.length > 0 && sources.length === 2 && (scriptFileOf(options) !== undefined || options.stdin);
    const hint = forScript ? "a script gets no arguments; --env NAME=VALUE hands it values" : undefined;
    throw new RelayError("usage", `${sources.join(" and ")} exclude each other`, {}, hint);
  }
  const workdir = workdirOf(options.workdir, here);
  const shared = {
    env: variables(options.env),
    ...(workdir === null ? {} : { workdir }),
    ...(options.timeout === undefined ? {} : { timeout_seconds: options.timeout }),
  };
  if (options["jarvis-yaml"] !== undefined) {
    refuseForPipelines(options);
    // Where the caller is does not make it another pipeline.
    const { workdir: _here, ...rest } = shared as typeof shared & { workdir?: string };
    const place = options.workdir === undefined || workdir === null ? {} : { workdir };
    const pipeline_yaml = fileText(io, "--jarvis-yaml", options["jarvis-yaml"], LIMITS.pipelineBytes);
    const spec = { pipeline_yaml, ...rest, ...place, ...(options.exclusive ? { exclusive: true } : {}) };
    return { kind: "jarvis", spec, metadata: titled(options) } as Work;
  }
  const patterns = outputs(options.output);
  const scheduler = requestOf(options);
  const spec = {
    ...(await programOf(io, options, rest)),
    ...shared,
    login: options.login,
    outputs: patterns,
    retries: options.retries,
    ...(scheduler === undefined ? {} : { scheduler }),
  };
  const file = scriptFileOf(options)?.file;
  if ("script" in spec) await noteScript(io, options, spec.script);
  const scriptName = file === undefined ? {} : { script_name: path.basename(file) };
  return { kind: "command", spec, metadata: { ...scriptName, ...titled(options) } } as Work;
}

const titled = ({ name }: SubmitOptions): { title?: string } => (name === undefined ? {} : { title: name });

/** What is worth knowing of a script before it runs: a name that says another language than the one that is going to read it, lines for a scheduler that none reads. */
async function noteScript(io: CliIo, options: SubmitOptions, script: string): Promise<void> {
  const { file } = scriptFileOf(options) ?? {};
  const name = file === undefined ? "the script" : oneLine(file);
  if (file !== undefined && !script.startsWith("#!") && !["", ".sh"].includes(path.extname(file)))
    await io.stderr.write(`notice: ${name} has no #! line, so that /bin/sh runs it\n`);
  if (options.sbatch !== undefined || options.qsub !== undefined) return;
  for (const [lines, mark, option] of DIRECTIVES)
    if (lines.test(script)) await io.stderr.write(`notice: ${name} has ${mark} lines, which only ${option} reads\n`);
}

/** Lines of a script that only a scheduler's own command reads, or the option in its place. */
const DIRECTIVES = [
  [/^#SBATCH\s/m, "#SBATCH", "--sbatch FILE"],
  [/^#\$ *-/m, "#$", "--qsub FILE"],
] as const;

/** The option that names a script's file, and the file; undefined where none does. */
function scriptFileOf(options: SubmitOptions): { readonly option: string; readonly file: string } | undefined {
  for (const option of ["script", "sbatch", "qsub"] as const) {
    const file = options[option];
    if (file !== undefined) return { option: `--${option}`, file };
  }
  return undefined;
}

async function programOf(io: CliIo, options: SubmitOptions, rest: readonly string[]): Promise<{ argv: string[] } | { script: string }> {
  if (rest[0] === "") throw new RelayError("usage", "the first word after -- is empty, but must be a program");
  if (rest.length > 0) return { argv: [...rest] };
  const named = scriptFileOf(options);
  if (named !== undefined) return { script: fileText(io, named.option, named.file, LIMITS.scriptBytes) };
  if (io.stdin.isTerminal) await io.stderr.write("notice: the script is read from this terminal until Ctrl-D\n");
  const text = decodeText(await io.stdin.read(LIMITS.scriptBytes), "standard input");
  return { script: notEmpty(text, "the script on standard input") };
}

function fileText(io: CliIo, option: string, given: string, maxBytes: number): string {
  const where = `${option} ${given}`;
  return notEmpty(readLocalText(io, where, given, maxBytes), where);
}

function refuseForPipelines(options: SubmitOptions): void {
  const asked = (Object.keys(SCHEDULER) as (keyof typeof SCHEDULER)[]).find((name) => {
    const value = options[name];
    return Array.isArray(value) ? value.length > 0 : value !== undefined;
  });
  const given = [
    options.login ? "--login" : null,
    options.output.length > 0 ? "--output" : null,
    options.retries > 0 ? "--retries" : null,
    asked === undefined ? null : `--${asked}`,
  ];
  const first = given.find((name) => name !== null);
  if (first !== undefined) throw new RelayError("usage", `${first} does not go with --jarvis-yaml`);
}

function workdirOf(given: string | undefined, here: string | null): string | null {
  if (given?.startsWith("/")) return given;
  if (here !== null) {
    const directory = path.resolve(here, given ?? ".");
    if (!isUndecodable(directory, fs.existsSync)) return directory;
    throw new RelayError(
      "usage",
      "the name of the current directory is not UTF-8 text, which is all that a job's record holds",
      {},
      "--workdir names another",
    );
  }
  if (given !== undefined) {
    throw new RelayError(
      "usage",
      `--workdir ${JSON.stringify(given.slice(0, 200))} must be an absolute path on the cluster, whose home directory is not known here`,
      {},
      "without it the job begins in that home directory: -- sh -c 'cd DIR && exec COMMAND'",
    );
  }
  return null;
}

function variables(pairs: readonly (readonly [string, string])[]): Record<string, string> {
  const env: Record<string, string> = Object.create(null);
  for (const [name, value] of pairs) {
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,254}$/.test(name)) {
      throw new RelayError(
        "usage",
        `--env ${JSON.stringify(name.slice(0, 200))} must be an environment variable name: letters, digits and _, no digit first`,
      );
    }
    if (Object.hasOwn(env, name)) throw new RelayError("usage", `--env ${name} is given twice`);
    env[name] = value;
  }
  return env;
}

/** A script or a pipeline that says something. */
function notEmpty(text: string, what: string): string {
  if (text === "") throw new RelayError("usage", `${what} is empty: there is nothing to run`);
  return text;
}

/** Patterns that lie below the job's directory, as the worker takes them. */
function outputs(patterns: readonly string[]): string[] {
  for (const pattern of patterns) {
    const why =
      pattern === "" ? "is empty" : pattern.startsWith("/") ? "is absolute" : pattern.split("/").includes("..") ? "leads upwards" : null;
    if (why === null) continue;
    throw new RelayError("usage", `--output ${JSON.stringify(pattern)} ${why}, but must lie below the directory in which the job runs`);
  }
  return [...patterns];
}
