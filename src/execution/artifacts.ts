import fs from "node:fs";
import path from "node:path";
import type { NewArtifact } from "../domain/artifact.ts";
import { isRelayError, RelayError } from "../domain/errors.ts";
import { isErrno } from "../lib/files/atomic-file.ts";
import type { FileInTheMaking } from "../lib/files/whole-file.ts";
import { newId } from "../lib/ids.ts";
import { fileUri, spoolUri } from "./artifact-uri.ts";
import { type OpenFile, openBeneath } from "./beneath.ts";
import { goesOnAt, hashFile, sameVersion } from "./file-hash.ts";
import type { OutputIssue } from "./output-issue.ts";
import { type FoundOutput, searchOutputs } from "./output-search.ts";
import { holdArtifacts } from "./own-place.ts";
import { versionMetadata } from "./recorded-version.ts";
import { beginCopy, flushDirectory } from "./stored-copy.ts";
import { identifyWorkdir, isSameWorkdir, type WorkdirIdentity } from "./workdir.ts";

export interface CollectOptions {
  /** The job's working directory: no output lies outside. */
  readonly workdir: string;
  /** What that was when the job started; null when nobody wrote it down. Another directory in its place is not looked into. */
  readonly startedIn: WorkdirIdentity | null;
  /** Declared patterns, as in CommandSpec.outputs. */
  readonly patterns: readonly string[];
  /** The job's directory in the spool; copies go to its `artifacts`. */
  readonly jobDir: string;
  /** Files up to this size are copied; larger ones are referenced in place. */
  readonly storeMaxBytes: number;
  /** Free bytes that must remain on the spool's file system; where they would not, files are referenced in place. */
  readonly minFreeBytes: number;
  /** At most this many files. */
  readonly maxFiles: number;
  readonly attempt: number;
  /** Aborting it ends the collection with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Aborting it ends the collection with what there is by then; the rest become issues. */
  readonly canceled?: AbortSignal;
}

export interface Collected {
  /** kind execution_output, in the order of their names. */
  readonly artifacts: readonly NewArtifact[];
  readonly issues: readonly OutputIssue[];
}

const NAME_MAX = 4_096;
const URI_MAX = 8_192;

/** Make artifacts of the files that a job declared as outputs. Failures of single files are issues; the rest goes on. */
export async function collectOutputs(options: CollectOptions): Promise<Collected> {
  if (options.patterns.length === 0) return { artifacts: [], issues: [] };
  const root = placeToLook(options);
  if (typeof root !== "string") return { artifacts: [], issues: allPatterns(options, "missing", root.problem) };
  const signal = AbortSignal.any([options.signal, options.canceled].filter((one) => one !== undefined));
  const artifacts: NewArtifact[] = [];
  const issues: OutputIssue[] = [];
  try {
    const search = await searchOutputs({ root, patterns: options.patterns, maxFiles: options.maxFiles, signal });
    issues.push(...search.issues);
    for (const output of search.found) {
      const { artifact, issue } = await collected(output, root, { ...options, signal });
      if (artifact !== null) artifacts.push(artifact);
      if (issue !== null) issues.push(issue);
    }
  } catch (error) {
    if (options.canceled?.aborted !== true || options.signal?.aborted === true) throw error;
    issues.push(...allPatterns(options, "canceled", "the job was canceled before all of its outputs were collected"));
  }
  if (artifacts.some(({ uri }) => uri.startsWith("spool:"))) {
    using place = holdArtifacts(options.jobDir);
    flushDirectory(place.path);
  }
  return { artifacts, issues };
}

const allPatterns = ({ patterns }: CollectOptions, reason: OutputIssue["reason"], detail: string): OutputIssue[] =>
  patterns.map((pattern) => ({ pattern, name: pattern, reason, detail }));

/** The directory to look in, without symbolic links; or why there is none. */
function placeToLook({ workdir, startedIn }: CollectOptions): string | { problem: string } {
  let found: WorkdirIdentity;
  try {
    found = identifyWorkdir(workdir);
  } catch (error) {
    if (!isErrno(error, "ENOENT", "ENOTDIR", "EACCES", "ELOOP")) throw error;
    return { problem: `the working directory cannot be reached (${error.code}): ${workdir}` };
  }
  if (startedIn === null || isSameWorkdir(startedIn, found)) return found.path;
  return { problem: `the working directory is no longer the one that the job started in: ${workdir}` };
}

/** A file as an artifact, or why there is none. */
async function collected(output: FoundOutput, root: string, options: CollectOptions): Promise<CollectedFile> {
  options.signal?.throwIfAborted();
  try {
    return await collectTwice(output, root, options);
  } catch (error) {
    if (!isRelayError(error)) throw error;
    return { artifact: null, issue: { pattern: output.pattern, name: output.name, reason: issueReason(error), detail: error.message } };
  }
}

const issueReason = (error: RelayError): OutputIssue["reason"] =>
  error.code === "path_escapes_root" || error.code === "artifact_changed" ? error.code : "artifact_unreadable";

interface CollectedFile {
  readonly artifact: NewArtifact | null;
  readonly issue: OutputIssue | null;
}

async function collectTwice(output: FoundOutput, root: string, options: CollectOptions): Promise<CollectedFile> {
  try {
    return await collectFile(output, root, options);
  } catch (error) {
    if (!isRelayError(error, "artifact_changed")) throw error;
    return collectFile(output, root, options);
  }
}

async function collectFile(output: FoundOutput, root: string, options: CollectOptions): Promise<CollectedFile> {
  const location = path.join(root, output.real);
  const uri = fileUri(location);
  if (output.name.length > NAME_MAX || uri.length > URI_MAX)
    throw new RelayError("artifact_unreadable", "its path is too long to be recorded");
  const source: Source = { output, location, ...(await openBeneath(root, output.real)) };
  const artifactId = newId("artifact");
  try {
    const copy = await storeCopy(source, artifactId, options);
    const stored = "version" in copy;
    const read = stored ? copy : await hashUnchanged(source, options.signal);
    const artifact: NewArtifact = {
      artifact_id: artifactId,
      kind: "execution_output",
      name: output.name,
      uri: stored ? spoolUri(`artifacts/${artifactId}`) : uri,
      size_bytes: read.size,
      sha256: read.sha256,
      metadata: {
        attempt: options.attempt,
        stored,
        // What the file is held against when it is read; see artifact-content.ts.
        ...versionMetadata(stored ? copy.version : source.stat),
        ...(stored ? {} : { root }),
      },
    };
    return { artifact, issue: stored ? null : copy.issue };
  } finally {
    await source.handle.close();
  }
}

interface Source extends OpenFile {
  readonly output: FoundOutput;
  readonly location: string;
}

interface Read {
  readonly size: number;
  readonly sha256: string;
}

/** Copy a file into the spool and hash it on the way; or leave it where it is, with what is to be said of that. */
async function storeCopy(
  source: Source,
  artifactId: string,
  options: CollectOptions,
): Promise<(Read & { readonly version: fs.BigIntStats }) | { readonly issue: OutputIssue | null }> {
  const { output, stat } = source;
  if (stat.size > BigInt(options.storeMaxBytes)) return { issue: null };
  if (!(await hasRoom(options.jobDir, Number(stat.size), options.minFreeBytes)))
    return { issue: notStored(output, "it would leave less free space than is to remain") };
  const noRoom = { issue: notStored(output, "there was no room for a copy") };
  let copy: FileInTheMaking | null = null;
  using place = holdArtifacts(options.jobDir);
  try {
    copy = await beginCopy(place.path, artifactId);
    const { write } = copy;
    const read = await hashUnchanged(source, options.signal, write);
    return { ...read, version: await copy.finish() };
  } catch (error) {
    if (isErrno(error, "ENOSPC", "EDQUOT")) return noRoom;
    throw error;
  } finally {
    await copy?.discard();
  }
}

/** Read a file to the end that it had when it was opened. @throws RelayError artifact_changed when that is not its end, or it is another by then */
async function hashUnchanged(source: Source, signal?: AbortSignal, sink?: (bytes: Uint8Array) => Promise<void>): Promise<Read> {
  const { output, location, handle, stat } = source;
  const size = Number(stat.size);
  const read = await hashFile(handle, { limit: size, signal, ...(sink === undefined ? {} : { sink }) });
  if (read.size !== size || (await goesOnAt(handle, size)))
    throw new RelayError("artifact_changed", "it changed while it was read, or does not tell its true size", { name: output.name });
  await assertUnchanged(output, location, handle, stat);
  return read;
}

/** Whether the file that was read is, to the end, the one that was opened, and still the one under its name. */
async function assertUnchanged(
  output: FoundOutput,
  location: string,
  handle: fs.promises.FileHandle,
  before: fs.BigIntStats,
): Promise<void> {
  const after = await handle.stat({ bigint: true });
  let named: fs.BigIntStats | null = null;
  try {
    named = await fs.promises.lstat(location, { bigint: true });
  } catch (error) {
    if (!isErrno(error, "ENOENT", "ENOTDIR")) throw error;
  }
  if (sameVersion(before, after) && named !== null && named.ino === before.ino && named.dev === before.dev) return;
  throw new RelayError("artifact_changed", "it changed while it was read", { name: output.name });
}

async function hasRoom(jobDir: string, bytes: number, minFreeBytes: number): Promise<boolean> {
  const { bavail, bsize } = await fs.promises.statfs(jobDir);
  return bavail * bsize - bytes >= minFreeBytes;
}

const notStored = (output: FoundOutput, detail: string): OutputIssue => ({
  pattern: output.pattern,
  name: output.name,
  reason: "not_stored",
  detail: `${detail}; it is referenced in place`,
});
