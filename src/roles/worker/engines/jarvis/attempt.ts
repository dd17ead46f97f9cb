import fs from "node:fs";
import path from "node:path";
import type { NewEvent } from "../../../../domain/event.ts";
import { inputPath } from "../../../../execution/input-place.ts";
import type { ExecutionArtifacts, Handle, Read } from "../../../../execution/jarvis/documents.ts";
import { executionIdOf } from "../../../../execution/jarvis/execution-id.ts";
import { PIPELINE_MAX_BYTES, PipelineText } from "../../../../execution/jarvis/pipeline-text.ts";
import type { ExecutionName, Question } from "../../../../execution/jarvis/questions.ts";
import { QUESTIONS } from "../../../../execution/jarvis/questions.ts";
import { directVerdict, MUTE_PACKAGES } from "../../../../execution/jarvis/verdict.ts";
import { ofAttemptFile } from "../../../../execution/own-place.ts";
import type { ExitRecord } from "../../../../execution/spool-records.ts";
import { sha256Hex } from "../../../../lib/digest.ts";
import { readRegular } from "../../../../lib/regular-file.ts";
import type { EngineAround, EngineAttempt, EngineDocument, EngineEnd, EnginePlan } from "../engine.ts";
import { recordedEnd } from "../engine.ts";
import { readHandle } from "./handle.ts";
import type { JarvisInstallation } from "./installation.ts";
import { jarvisPlan, PIPELINE_FILE } from "./plan.ts";
import { type Answers, ExecutionWatch } from "./watch.ts";

/** One run of a pipeline (docs/jarvis.md). */
export class JarvisAttempt implements EngineAttempt {
  readonly #executionId: string;
  #watch: ExecutionWatch | null = null;
  #attached = false;

  constructor(
    private readonly around: EngineAround<"jarvis">,
    private readonly jarvis: JarvisInstallation,
  ) {
    this.#executionId = executionIdOf(around.job);
  }

  async plan(): Promise<EnginePlan> {
    const { context, job, fence } = this.around;
    const paths = new Map<string, string>();
    for (const [name, id] of Object.entries(job.spec.inputs ?? {})) {
      const { sha256, name: fileName } = await context.store.artifact(id);
      paths.set(name, inputPath(context.spoolDir, sha256, fileName));
    }
    const { plan, text } = await jarvisPlan(this.around, this.jarvis, paths);
    const sha256 = sha256Hex(text);
    const event: NewEvent = {
      event_type: "runtime.metadata_ingested",
      message: `The pipeline to be run takes ${Buffer.byteLength(text)} bytes.`,
      payload: { execution_id: this.#executionId, sha256, size_bytes: Buffer.byteLength(text) },
    };
    await context.store.ingest(fence, { deltas: [], truncations: [], emits: [], notices: [{ about: `pipeline ${sha256}`, event }] });
    return plan;
  }

  async look(): Promise<void> {
    await this.#attach();
    (await this.#execution())?.look();
  }

  async end(exit: ExitRecord): Promise<EngineEnd | null> {
    if (exit.started_at === null) return recordedEnd(exit);
    const watch = await this.#execution();
    if (watch === null) return { ...recordedEnd(exit), documents: this.#pipelineDocuments() };
    const answers = await watch.final();
    const handle = readHandle(this.around.directory, this.#executionId);
    const { outcome, events } = directVerdict({
      executionId: this.#executionId,
      exit: exit.outcome,
      startedAt: exit.started_at,
      record: answers.get,
      handle: handle.read,
      lastLine: handle.line,
      mute: this.#mutePackages(),
    });
    const { artifacts } = answers;
    const listed = artifacts.kind === "read" && "document" in artifacts.read ? artifacts.read.document : null;
    const documents = [...this.#pipelineDocuments(), ...handleDocuments(handle.read), ...answerDocuments(answers)];
    return { outcome, outputs: await this.#outputs(listed), documents, events };
  }

  #mutePackages(): string[] {
    const packages = this.#pipeline()?.packages ?? [];
    return packages.filter(({ type }) => MUTE_PACKAGES.has(type.includes(".") ? type : `builtin.${type}`)).map(({ id }) => id);
  }

  async close(): Promise<void> {
    // What is asked has a deadline, and its answer changes nothing any more.
  }

  /** A worker that came later asks about the same execution. */
  async #attach(): Promise<void> {
    const { context, fence, recovered } = this.around;
    if (!recovered || this.#attached) return;
    this.#attached = true;
    const event: NewEvent = {
      event_type: "jarvis.execution_recovery_attached",
      message: `A new worker asks JARVIS about ${this.#executionId}, which is not run again.`,
      payload: { execution_id: this.#executionId },
    };
    await context.store.appendEvents(fence.job_id, [event]);
  }

  /** What looks after the execution; null where nothing is known of the pipeline, so that it could not be asked for. */
  async #execution(): Promise<ExecutionWatch | null> {
    if (this.#watch !== null) return this.#watch;
    const name = this.#name();
    if (name === null) return null;
    this.#watch = new ExecutionWatch(this.around, this.jarvis, name, await this.#root());
    return this.#watch;
  }

  /** Directory of the execution; null where JARVIS does not say now where it keeps such. */
  async #root(): Promise<string | null> {
    const name = this.#name();
    const inspection = await this.jarvis.inspect([]).catch(() => null);
    return name === null || inspection === null ? null : path.join(inspection.shared_dir, name.pipelineId, "executions", name.executionId);
  }

  #name(): ExecutionName | null {
    const pipeline = this.#pipeline();
    return pipeline === null ? null : { executionId: this.#executionId, pipelineId: pipeline.name };
  }

  #pipeline(): PipelineText | null {
    const text = this.#text();
    if (text === null) return null;
    try {
      return new PipelineText(text);
    } catch {
      // The job can write there.
      return null;
    }
  }

  /** The pipeline that ran, as it was written down before. */
  #text(): string | null {
    const read = ofAttemptFile(
      path.join(this.around.directory, PIPELINE_FILE),
      (file) => readRegular(file, PIPELINE_MAX_BYTES),
      "absent" as const,
    );
    return typeof read === "string" ? null : read.text;
  }

  #pipelineDocuments(): EngineDocument[] {
    const text = this.#text();
    if (text === null) return [];
    const kind = this.around.job.spec.pipeline_name === undefined ? "jarvis_pipeline" : "jarvis_pipeline_reference";
    return [{ kind, name: PIPELINE_FILE, text }];
  }

  /** Files of the execution's own directory that JARVIS calls finished. */
  async #outputs(artifacts: ExecutionArtifacts | null) {
    const root = await this.#root();
    const listed = (artifacts?.artifacts ?? []).flatMap(({ state, location }) =>
      state === "finalized" && location?.kind === "execution_path" ? [location.value] : [],
    );
    const patterns = [...new Set(listed)].filter((file) => !file.startsWith("/") && !file.split("/").includes("..")).map(literal);
    const there = root !== null && fs.existsSync(root);
    return { directory: there ? root : null, patterns: there ? patterns : [], required: false };
  }
}

const kept = (name: string, text: string): EngineDocument => ({ kind: "runtime_metadata", name, text: `${text}\n` });

const handleDocuments = (read: Read<Handle> | null): EngineDocument[] =>
  read !== null && "document" in read ? [kept("jarvis-handle.json", read.text)] : [];

/** What JARVIS said, as it came, also where it is not understood. */
function answerDocuments(answers: Answers): EngineDocument[] {
  const questions = Object.keys(QUESTIONS) as Question[];
  return questions.flatMap((question) => {
    const answer = answers[question];
    return answer.kind === "read" ? [kept(`jarvis-${question === "get" ? "record" : question}.json`, answer.read.text)] : [];
  });
}

/** A path as a pattern that matches nothing else. */
const literal = (file: string): string => file.replace(/[*?[\]{},\\!^-]/g, "\\$&");
