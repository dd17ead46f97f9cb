import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { behindSetup } from "../../lib/system/setup-text.ts";
import type { Command, CommandEnd, RunCommand } from "./command.ts";

/** Where a cluster's JARVIS-CD is looked for, and what its commands are given. */
export interface JarvisSite {
  /** Path or name of the program `jarvis`. */
  readonly program: string;
  /** The complete environment of its commands. */
  readonly environment: Readonly<Record<string, string>>;
  /** Shell text that comes before every job of the cluster; null for none. */
  readonly envSetup: string | null;
  readonly run: RunCommand;
}

/** A JARVIS-CD that was found. */
export interface JarvisProgram {
  /** Absolute path. */
  readonly file: string;
  /** The Python that runs it, with its arguments. */
  readonly python: readonly [string, ...string[]];
  /** Directory that holds the package jarvis_cd where the program is part of a source tree; null where its Python knows it. */
  readonly place: string | null;
}

const FIND_MS = 30_000;

/** A command as the cluster's jobs are started: behind the setup text, where there is one. */
export function atSite({ environment, envSetup }: JarvisSite, argv: readonly [string, ...string[]], deadlineMs: number): Command {
  return { ...(envSetup === null ? { argv, environment } : behindSetup(envSetup, argv, environment)), deadlineMs };
}

/** @throws RelayError engine_unavailable, cause jarvis_missing */
export async function findJarvis(site: JarvisSite): Promise<JarvisProgram> {
  const file = await programFile(site);
  let head: string;
  try {
    head = headOf(file);
  } catch {
    throw missing(site);
  }
  const real = fs.realpathSync(file);
  const tree = path.dirname(path.dirname(real));
  return { file, python: pythonOf(head), place: fs.existsSync(path.join(tree, "jarvis_cd", "core", "cli.py")) ? tree : null };
}

async function programFile(site: JarvisSite): Promise<string> {
  const { program, environment, envSetup } = site;
  if (path.isAbsolute(program)) return program;
  const known = Bun.which(program, { PATH: environment["PATH"] ?? "" });
  if (known !== null) return known;
  if (envSetup === null) throw missing(site);
  const end: CommandEnd = await site.run(atSite(site, ["/bin/sh", "-c", 'command -v -- "$1"', "sh", program], FIND_MS));
  const found = end.kind === "ended" && end.code === 0 ? end.stdout.trim().split("\n").at(-1) : undefined;
  if (found === undefined || !path.isAbsolute(found)) throw missing(site);
  return found;
}

const missing = ({ program }: JarvisSite): RelayError =>
  new RelayError(
    "engine_unavailable",
    path.isAbsolute(program) ? `there is no program ${program}` : `there is no program ${program} on the worker's PATH`,
    { kind: "jarvis", cause: "jarvis_missing" },
    "put jarvis on the PATH of the worker, or name it: clio-relay cluster add NAME --jarvis-bin PROGRAM; cluster bootstrap NAME --jarvis-from DIR brings one",
  );

const HEAD_BYTES = 1_024;

function headOf(file: string): string {
  const fd = fs.openSync(file, "r");
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return head.subarray(0, fs.readSync(fd, head, 0, HEAD_BYTES, 0)).toString("utf8");
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * The interpreter of a console script: its `#!` line (execve(2)), or, where the path was too long for one, the `exec` on its second line (as pip writes
 * it). Another kind of program is taken to run the `python3` of the PATH.
 */
function pythonOf(head: string): [string, ...string[]] {
  const [first = "", second = ""] = head.split("\n");
  const line = /^#!\s*(.*)$/.exec(first)?.[1]?.trim() ?? "";
  const words = line.split(/\s+/).filter((word) => word !== "");
  const [interpreter, ...rest] = words;
  if (interpreter !== undefined && /python/.test(words.join(" "))) return [interpreter, ...rest];
  const exec = /exec'?\s+"?([^"\s]*python[^"\s]*)"?/.exec(second)?.[1];
  return [exec ?? "python3"];
}
