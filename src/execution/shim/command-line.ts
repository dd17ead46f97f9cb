import fs from "node:fs";
import path from "node:path";
import { isErrno } from "../../lib/files/atomic-file.ts";
import { type AttemptSpec, FILES } from "../spool-records.ts";

/** What is handed to the kernel. */
export interface CommandLine {
  /** Absolute path of the executable. */
  readonly file: string;
  /** What the program sees as its own name. */
  readonly argv0: string;
  readonly args: readonly string[];
}

/** A program that cannot be run. `shellCode` is what a shell would exit with: 127 not found, 126 found and not executable (sh(1p)). */
export class NotRunnable extends Error {
  constructor(
    message: string,
    readonly shellCode: 126 | 127,
  ) {
    super(message);
  }
}

/**
 * The command line that runs a spec's program: itself, or wrapped in the login shell and in a shell that sources the setup text first.
 *
 * @param envSetupFile file that holds env_setup; null when the spec has none
 * @throws NotRunnable
 */
export function commandLine(spec: AttemptSpec, envSetupFile: string | null): CommandLine {
  const setup = envSetupFile === null ? spec.argv : ["/bin/sh", "-c", withSetup(spec), "sh", envSetupFile, spec.workdir, ...spec.argv];
  if (!spec.login) return resolve(setup, spec);
  const shell = spec.env.SHELL ?? "/bin/sh";
  const kind = path.basename(shell);
  // These two have no "$@": they run /bin/sh, which goes back to the working directory.
  if (kind === "fish") return resolve([shell, "-l", "-c", "exec $argv", "--", "/bin/sh", "-c", RUN, "sh", spec.workdir, ...setup], spec);
  if (kind === "csh" || kind === "tcsh") {
    // -l is for interactive shells only, but a name that begins with `-` makes a login shell, too. $argv:q loses empty words.
    const words = [spec.workdir, ...setup].map((word) => `+${word}`);
    const line = resolve([shell, "-c", "exec $argv:q", "/bin/sh", "-c", `${TAKE_PLUS}; ${RUN}`, "sh", ...words], spec);
    return { ...line, argv0: `-${kind}` };
  }
  if (envSetupFile === null) return resolve([shell, "-l", "-c", RUN, "sh", spec.workdir, ...spec.argv], spec);
  // Sourced by the login shell itself, whose functions (`module`) the setup text may need.
  return resolve([shell, "-l", "-c", withSetup(spec), "sh", envSetupFile, spec.workdir, ...spec.argv], spec);
}

/** $1 is the working directory, which profiles sometimes leave; the rest is the program. */
const RUN = 'cd "$1" && shift && exec "$@"';

/**
 * $1 is the setup file. Sourced within a function, so that it cannot change the arguments that follow. Where it is strict, a command of it that
 * fails (set -e), or its exit, ends the shell, which then leaves its code in a file beside: the program's own exit cannot be taken for it.
 */
const withSetup = ({ env_setup_strict = false }: AttemptSpec): string => {
  const source = 'relay_setup "$1"';
  const strict = `relay_failed="$1${SETUP_FAILED}"; trap 'echo $? > "$relay_failed"' EXIT; set -e; ${source}; set +e; trap - EXIT; unset relay_failed`;
  return `relay_setup() { . "$1"; }; ${env_setup_strict ? strict : source}; shift; unset -f relay_setup; ${RUN}`;
};

const SETUP_FAILED = FILES.envSetupFailed.slice(FILES.envSetup.length);

/** Takes the first character off every argument. */
const TAKE_PLUS = `for word do set -- "$@" "\${word#+}"; shift; done`;

function resolve(argv: readonly string[], spec: AttemptSpec): CommandLine {
  const [name, ...args] = argv as [string, ...string[]];
  return { file: findProgram(name, spec.workdir, spec.env.PATH), argv0: name, args };
}

/**
 * Find a program as a shell would: by a search path, relative names from the working directory.
 *
 * @returns its absolute path
 * @throws NotRunnable
 */
export function findProgram(name: string, workdir: string, searchPath = "/usr/bin:/bin"): string {
  const candidates = name.includes("/")
    ? [path.resolve(workdir, name)]
    : searchPath.split(":").map((directory) => path.resolve(workdir, directory, name));
  let refusal: string | null = null;
  for (const file of candidates) {
    const problem = whyNot(file);
    if (problem === null) return file;
    if (problem !== MISSING) refusal ??= problem;
  }
  throw refusal === null ? new NotRunnable(`program not found: ${name}${forShell(name)}`, 127) : new NotRunnable(refusal, 126);
}

/** Words that mean something to a shell only, and are no programs, or none that could do what is meant. */
const SHELL_WORDS = new Set(
  ". alias bg cd declare eval exec exit export fg for function hash if jobs let local module return set shift shopt source trap type typeset ulimit umask unset until while".split(
    " ",
  ),
);

/** What to do where the name of a program is one that a shell would have read otherwise. */
const forShell = (name: string): string =>
  /[\s|&;<>()$`*?=]/.test(name) || SHELL_WORDS.has(name) ? "; no shell reads a command, sh -c '…' runs one" : "";

const MISSING = "missing";

/** Why a file cannot be executed; null when it can. No error is made of a missing one: most of a search path has no such file. */
function whyNot(file: string): string | null {
  try {
    const stat = fs.statSync(file, { throwIfNoEntry: false });
    if (stat === undefined) return MISSING;
    if (!stat.isFile()) return `not a program: ${file}`;
    fs.accessSync(file, fs.constants.X_OK);
    return null;
  } catch (error) {
    return isErrno(error, "ENOENT", "ENOTDIR") ? MISSING : `program cannot be executed: ${file}`;
  }
}
