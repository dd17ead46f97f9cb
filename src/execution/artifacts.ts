import fs from "node:fs";
import path from "node:path";
import type { NewArtifact } from "../domain/artifact.ts";
import { isRelayError, RelayError } from "../domain/errors.ts";
import { isErrno } from "../lib/atomic-file.ts";
import { newId } from "../lib/ids.ts";
import { fileUri, spoolUri } from "./artifact-uri.ts";
import { artifactsDirectory } from "./attempt-dir.ts";
import { openBeneath } from "./beneath.ts";
import { hashFile, sameVersion } from "./file-hash.ts";
import type { OutputIssue } from "./output-issue.ts";
import { type FoundOutput, searchOutputs } from "./output-search.ts";
import { flushDirectory, modificationTime, StoredCopy } from "./stored-copy.ts";

export interface CollectOptions {
  /** The job's working directory: no output lies outside. */
  readonly workdir: string;
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
  const root = await realDirectory(options.workdir);
  if (root === null) {
    const detail = `the working directory is not there: ${options.workdir}`;
    return { artifacts: [], issues: options.patterns.map((pattern) => ({ pattern, name: pattern, reason: "missing", detail })) };
  }
  const { found, issues } = await searchOutputs({ root, patterns: options.patterns, maxFiles: options.maxFiles });
  const artifacts: NewArtifact[] = [];
  for (const output of found) {
    options.signal?.throwIfAborted();
    try {
      const { artifact, issue } = await collectTwice(output, root, options);
      artifacts.push(artifact);
      if (issue !== null) issues.push(issue);
    } catch (error) {
      if (!isRelayError(error)) throw error;
      issues.push({ pattern: output.pattern, name: output.name, reason: issueReason(error), detail: error.message });
    }
  }
  if (artifacts.some(({ uri }) => uri.startsWith("spool:"))) flushDirectory(artifactsDirectory(options.jobDir));
  return { artifacts, issues };
}

async function realDirectory(directory: string): Promise<string | null> {
  try {
    const real = await fs.promises.realpath(directory);
    return (await fs.promises.stat(real)).isDirectory() ? real : null;
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR", "EACCES", "ELOOP")) return null;
    throw error;
  }
}

const issueReason = (error: RelayError): OutputIssue["reason"] =>
  error.code === "path_escapes_root" || error.code === "artifact_changed" ? error.code : "artifact_unreadable";

interface CollectedFile {
  readonly artifact: NewArtifact;
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
  const { handle, stat } = await openBeneath(root, output.real);
  const artifactId = newId("artifact");
  try {
    const directory = artifactsDirectory(options.jobDir);
    let issue: OutputIssue | null = null;
    let read: { size: number; sha256: string } | null = null;
    const copy = new StoredCopy(directory, artifactId);
    let stored = stat.size <= BigInt(options.storeMaxBytes);
    try {
      if (stored) {
        if (await hasRoom(options.jobDir, Number(stat.size), options.minFreeBytes)) {
          await copy.open();
          read = await hashFile(handle, (bytes) => copy.write(bytes), options.signal);
          await assertUnchanged(output, location, handle, stat);
          await copy.commit();
        } else issue = notStored(output, "it would leave less free space than is to remain");
      }
    } catch (error) {
      await copy.discard();
      if (!isErrno(error, "ENOSPC", "EDQUOT")) throw error;
      issue = notStored(output, "there was no room for a copy");
      read = null;
    }
    if (read === null) {
      stored = false;
      read = await hashFile(handle, null, options.signal);
      await assertUnchanged(output, location, handle, stat);
    }
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
        mtime_ns: stored ? await modificationTime(path.join(directory, artifactId)) : String(stat.mtimeNs),
        ...(stored ? {} : { root }),
      },
    };
    return { artifact, issue };
  } finally {
    await handle.close();
  }
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
