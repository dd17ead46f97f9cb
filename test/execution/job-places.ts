import { beforeEach } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { Artifact, type NewArtifact } from "../../src/domain/artifact.ts";
import { type OpenArtifact, openArtifact } from "../../src/execution/artifact-content.ts";
import { type CollectOptions, collectOutputs } from "../../src/execution/artifacts.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

/** Where the job works. */
export let workdir = "";
/** Its directory in the spool. */
export let jobDir = "";

/** Makes both anew before each test of the file. */
export function placesOfAJob(): void {
  const temporary = temporaryDirectories();
  beforeEach(() => {
    const base = temporary();
    workdir = path.join(base, "work");
    jobDir = path.join(base, "spool/job_a");
    fs.mkdirSync(workdir);
    fs.mkdirSync(jobDir, { recursive: true });
  });
}

export const collect = (patterns: string[], more: Partial<CollectOptions> = {}) =>
  collectOutputs({
    workdir,
    startedIn: null,
    patterns,
    jobDir,
    storeMaxBytes: 1_000_000,
    minFreeBytes: 0,
    maxFiles: 100,
    attempt: 2,
    ...more,
  });

export const record = (artifact: NewArtifact): Artifact =>
  v.parse(Artifact, { ...artifact, job_id: "job_a", sequence: 1, created_at: "2026-01-02T03:04:05.678Z" });

export const sha256 = (data: string | Uint8Array): string => new Bun.CryptoHasher("sha256").update(data).digest("hex");
export const put = (name: string, data: string | Uint8Array): void => {
  fs.mkdirSync(path.dirname(path.join(workdir, name)), { recursive: true });
  fs.writeFileSync(path.join(workdir, name), data);
};
export const stored = (): string[] => (fs.existsSync(`${jobDir}/artifacts`) ? fs.readdirSync(`${jobDir}/artifacts`) : []);

export async function read(artifact: NewArtifact, range?: { start: number; end: number }): Promise<Buffer> {
  const open = await openArtifact(record(artifact), jobDir);
  return Buffer.from(await new Response(open.stream(range)).arrayBuffer());
}

/** What a stream gives before it fails, and how it fails. */
export async function readUntilFailure(open: OpenArtifact, range?: { start: number; end: number }) {
  let bytes = 0;
  try {
    for await (const piece of open.stream(range)) bytes += piece.length;
  } catch (error) {
    return { bytes, code: (error as { code?: string }).code };
  }
  return { bytes, code: null };
}

export const openFiles = (): number => fs.readdirSync("/proc/self/fd").length;
