import type { InputServices } from "../../api/input-services.ts";
import type { Artifact } from "../../domain/artifact.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { NewEvent } from "../../domain/event.ts";
import type { ContentKey, NewInputArtifact, UploadKey } from "../../domain/input.ts";
import { inputVariable } from "../../domain/input-name.ts";
import type { Job } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { openArtifact } from "../../execution/artifact-content.ts";
import { inputUri } from "../../execution/artifact-uri.ts";
import { nameContent, removeContent } from "../../execution/input-content.ts";
import { removePart } from "../../execution/input-part.ts";
import { inputPath, lastUse, listInputs } from "../../execution/input-place.ts";
import { versionMetadata } from "../../execution/recorded-version.ts";
import type { WorkerContext } from "./context.ts";
import { InputUploads } from "./input-uploads.ts";
import { jobPlace } from "./job-place.ts";
import { isPassing } from "./patience.ts";
import { writingSpool } from "./writing-spool.ts";

type Around = Pick<WorkerContext, "cluster" | "spoolDir" | "sharedSpoolDir" | "earlierSpools" | "clock" | "store" | "log">;

/** How often it is looked for what nobody needs any more, in milliseconds. */
const SWEEP_MS = 3_600_000;

/** The staged files of a worker. */
export class Inputs implements InputServices {
  readonly #uploads: InputUploads;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** @param admit see InputUploadsOptions */
  constructor(
    private readonly around: Around,
    readonly inlineMaxBytes: number,
    admit: (bytes: number) => void,
  ) {
    this.#uploads = new InputUploads({ spoolDir: around.spoolDir, clock: around.clock, admit });
  }

  stand(keys: readonly UploadKey[]) {
    return writingSpool(() => keys.map((key) => this.#uploads.stand(key)));
  }

  begin(key: UploadKey) {
    return this.#uploads.begin(key);
  }

  piece(key: UploadKey, offset: number, read: () => Promise<Uint8Array>) {
    return this.#uploads.piece(key, offset, read);
  }

  giveUp(key: UploadKey) {
    return this.#uploads.giveUp(key);
  }

  complete(name: string, key: ContentKey) {
    return this.#uploads.complete(name, key);
  }

  async record(request: Omit<NewInputArtifact, "schema_version">, content: Uint8Array | null) {
    const { logical_name, sha256, size_bytes, idempotency_key, owner_session_id, owner_session_generation_id } = request;
    const { spoolDir, cluster, store } = this.around;
    const key = { sha256, size_bytes };
    if (content !== null) await this.#uploads.take(key, content);
    return this.#uploads.exclusive(key, async () => {
      this.#uploads.stand(key);
      const file = await nameContent(spoolDir, key, logical_name);
      if (file === null) throw unavailable(key);
      const recorded = await store.recordInput(
        {
          kind: "input_ingest",
          cluster,
          spec: { logical_name, size_bytes, sha256 },
          idempotency_key,
          owner_session_id,
          owner_session_generation_id,
          used_artifact_refs: [],
          metadata: {},
        },
        { name: logical_name, uri: inputUri(sha256, logical_name), size_bytes, sha256, metadata: versionMetadata(file) },
      );
      return { ...recorded, path: inputPath(spoolDir, sha256, logical_name) };
    });
  }

  /** Look for what nobody needs any more, now and every hour. */
  start(): void {
    const sweep = () => void this.sweep().catch((error: unknown) => this.around.log.error("inputs that nobody needs", error));
    sweep();
    this.#timer = setInterval(sweep, SWEEP_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Remove parts and contents with which nobody had to do for a day, and that no artifact names. Returns how many. */
  async sweep(): Promise<number> {
    const { spoolDir, log } = this.around;
    let removed = 0;
    for (const { name, kind, key } of listInputs(spoolDir)) {
      removed += await this.#uploads.exclusive(key, async () => {
        if (this.#isKept(name) || (kind === "content" && (await this.#isNamed(key.sha256)))) return 0;
        if (kind === "content") removeContent(spoolDir, key.sha256);
        else removePart(spoolDir, key);
        return 1;
      });
    }
    if (removed > 0) log.info(`removed ${removed} uploads that nobody went on with or used`);
    return removed;
  }

  #isKept(name: string): boolean {
    const used = lastUse(this.around.spoolDir, name);
    // A clock that went back keeps it for longer.
    return used === null || this.around.clock.now() - used < LIMITS.inputKeepSeconds * 1_000;
  }

  async #isNamed(sha256: string): Promise<boolean> {
    return (await this.around.store.namedInputs([sha256])).has(sha256);
  }
}

const unavailable = (key: ContentKey): RelayError =>
  new RelayError("input_ingest_unavailable", "the content is not there, or was damaged", { ...key }, "upload it: POST /input-uploads");

/**
 * The variables with the paths of a job's inputs. Each file is held against its record before.
 *
 * @throws RelayError artifact_changed, artifact_unreadable, path_escapes_root, with the input's name
 */
export async function inputVariables(around: Around, job: Job): Promise<Record<string, string>> {
  const variables: Record<string, string> = {};
  for (const [name, artifactId] of inputsOf(job)) {
    const artifact = await around.store.artifact(artifactId);
    const problem = await problemOf(around, artifact);
    if (problem !== null) {
      const words = `the input ${name} is not what was staged: ${problem.message}`;
      const data = { ...problem.data, input: name, artifact_id: artifactId };
      throw new RelayError(problem.code, words, data, "submit the file again", { cause: problem });
    }
    variables[inputVariable(name)] = inputPath(around.spoolDir, artifact.sha256, artifact.name);
  }
  return variables;
}

/** Events about inputs of a job that has run, and that are no longer what it was given: it may have read either. */
export async function changedInputs(around: Around, job: Job, attempt: number): Promise<NewEvent[]> {
  const events: NewEvent[] = [];
  for (const [name, artifact_id] of inputsOf(job)) {
    const problem = await problemOf(around, await around.store.artifact(artifact_id));
    if (problem === null) continue;
    const message = `The input ${name} is no longer what the job was given: ${problem.message}`.slice(0, 2_000);
    events.push({ event_type: "execution.input_changed", level: "warning", message, payload: { attempt, input: name, artifact_id } });
  }
  return events;
}

const inputsOf = ({ spec }: Job): [name: string, artifactId: string][] => ("inputs" in spec ? Object.entries(spec.inputs ?? {}) : []);

/** Why an input's file is not the recorded one; null where it is. */
async function problemOf(around: Around, artifact: Artifact): Promise<RelayError | null> {
  try {
    const file = await openArtifact(artifact, jobPlace(around, artifact.job_id));
    await file.close();
    return null;
  } catch (error) {
    if (!isRelayError(error)) throw error;
    if (isPassing(error.cause)) throw error.cause;
    return error;
  }
}
