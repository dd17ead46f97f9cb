import fs from "node:fs";
import path from "node:path";
import type { ServerArtifact } from "../../../domain/mcp-call.ts";
import { hashOf } from "./hash-of.ts";
import { Mutable } from "./mutable.ts";
import { npmPackage } from "./npm-package.ts";
import { consoleScript, moduleOf, type PythonAround } from "./python-distribution.ts";
import { type Runtime, runtimeOf } from "./runtime.ts";

/** A server as it is going to be started. */
export interface StartedProgram {
  /** Absolute path, as it was found. */
  readonly file: string;
  readonly args: readonly string[];
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
}

const HEAD_BYTES = 4_096;
/** Arguments of interpreters that change nothing about which program runs. */
const PLAIN_FLAGS = /^(?:-[uIBEsSO]+|-W(?:ignore)?|--no-warnings|--enable-source-maps)$/;

/** Variables by which another program, or another module, would take the place of what is found here. */
const DIVERTING: Readonly<Record<"any" | "python" | "node", readonly string[]>> = {
  any: ["LD_PRELOAD", "LD_AUDIT"],
  python: ["PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONSTARTUP"],
  node: ["NODE_OPTIONS", "NODE_PATH", "BUN_OPTIONS"],
};

/** What the program of a server is (docs/federation.md, The artifact of a server). Never throws for what it finds. */
export async function serverArtifact(program: StartedProgram): Promise<ServerArtifact> {
  try {
    return await established(program);
  } catch (error) {
    if (error instanceof Mutable) return error.artifact;
    if (error instanceof Error && "code" in error) return new Mutable("unreadable", error.message, program.file).artifact;
    throw error;
  }
}

async function established(program: StartedProgram): Promise<ServerArtifact> {
  const { file, args } = program;
  refuseDiverted(program, "any");
  const real = fs.realpathSync(file);
  const head = headOf(real);
  if (head.subarray(0, 4).equals(ELF)) {
    const runtime = runtimeOf(file) ?? runtimeOf(real);
    if (runtime === null) return executable(real);
    return interpreted(runtime, file, args, program);
  }
  return script(file, real, head.toString("utf8"), program);
}

const ELF = Buffer.from([0x7f, 0x45, 0x4c, 0x46]);

function executable(real: string): ServerArtifact {
  refuseWritable(real);
  return {
    immutable: true,
    kind: "executable",
    digest: hashOf(real, "sha256", "hex"),
    path: real,
    name: path.basename(real),
    version: null,
    files: 1,
  };
}

async function interpreted(runtime: Runtime, file: string, args: readonly string[], program: StartedProgram): Promise<ServerArtifact> {
  if (runtime === "launcher") throw launches(file);
  const first = args.findIndex((arg) => !PLAIN_FLAGS.test(arg));
  const given = first < 0 ? undefined : args[first];
  if (runtime === "python" || runtime === "node") refuseDiverted(program, runtime);
  if (runtime === "python" && given === "-m" && args[first + 1] !== undefined) return moduleOf(args[first + 1]!, pythonOf(file, program));
  if (given === undefined || given.startsWith("-") || runtime === "other")
    throw new Mutable("interpreter", `what ${path.basename(file)} runs is in its arguments`, file);
  if (!path.isAbsolute(given)) throw new Mutable("interpreter", "the script that it runs has no absolute path", file);
  const real = fs.realpathSync(given);
  if (runtime === "node") return npmPackage(real, cacheOf(program));
  return consoleScript(given, pythonOf(file, program));
}

const launches = (file: string): Mutable => new Mutable("launcher", `${path.basename(file)} runs what it finds, is told or fetches`, file);

async function script(file: string, real: string, head: string, program: StartedProgram): Promise<ServerArtifact> {
  refuseWritable(real);
  if (runtimeOf(file) === "launcher" || runtimeOf(real) === "launcher") throw launches(file);
  const interpreter = interpreterOf(head, program.env["PATH"] ?? "");
  const runtime = interpreter === null ? null : runtimeOf(interpreter);
  if (runtime === "python" || runtime === "node") refuseDiverted(program, runtime);
  if (runtime === "python") return consoleScript(file, pythonOf(interpreter!, program));
  if (runtime === "node") return npmPackage(real, cacheOf(program));
  throw new Mutable("script", "a script that belongs to no package", real);
}

const homeOf = ({ env, workdir }: StartedProgram): string => env["HOME"] ?? workdir;
const cacheOf = (program: StartedProgram): string => program.env["npm_config_cache"] ?? path.join(homeOf(program), ".npm");
const pythonOf = (interpreter: string, program: StartedProgram): PythonAround => ({
  interpreter,
  home: homeOf(program),
  workdir: program.workdir,
});

function refuseDiverted({ env, file }: StartedProgram, what: keyof typeof DIVERTING): void {
  const name = DIVERTING[what].find((one) => (env[one] ?? "") !== "");
  if (name !== undefined) throw new Mutable("interpreter", `${name} is set, by which something else may run in its place`, file);
}

/** The interpreter that runs a script: of its first line, by env(1), or in the form that pip has for paths with blanks. */
function interpreterOf(head: string, searchPath: string): string | null {
  const [, words = ""] = /^#![ \t]*([^\r\n]+)/.exec(head) ?? [];
  const [interpreter = "", argument] = words.trim().split(/[ \t]+/);
  if (path.basename(interpreter) === "env")
    return argument === undefined || argument.startsWith("-") ? null : Bun.which(argument, { PATH: searchPath });
  const long = /^#!\/bin\/sh\r?\n'''exec' "?([^"\r\n]+?)"? "\$0" "\$@"/.exec(head);
  return long?.[1] ?? (interpreter === "" ? null : interpreter);
}

function headOf(file: string): Buffer {
  const fd = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  try {
    if (!fs.fstatSync(fd).isFile()) throw new Mutable("not_found", "no regular file", file);
    const head = Buffer.alloc(HEAD_BYTES);
    return head.subarray(0, fs.readSync(fd, head, 0, HEAD_BYTES, 0));
  } finally {
    fs.closeSync(fd);
  }
}

function refuseWritable(file: string): void {
  const { mode, uid } = fs.statSync(file);
  if ((mode & 0o022) !== 0 || (uid !== 0 && uid !== process.getuid?.())) throw new Mutable("writable", "others can write to it", file);
}
