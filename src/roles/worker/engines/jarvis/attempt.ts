import fs from "node:fs";
import path from "node:path";
import type { NewEvent } from "../../../../domain/event.ts";
import { LIMITS } from "../../../../domain/limits.ts";
import type { LogStream } from "../../../../domain/log.ts";
import type { JarvisExecution } from "../../../../domain/views.ts";
import { readSpec } from "../../../../execution/attempt-dir.ts";
import { inputPath } from "../../../../execution/input-place.ts";
import type { ExecutionArtifacts, ExecutionRecord, Handle, Read } from "../../../../execution/jarvis/documents.ts";
import { executionIdOf } from "../../../../execution/jarvis/execution-id.ts";
import { packageLines } from "../../../../execution/jarvis/observation.ts";
import { PipelineText } from "../../../../execution/jarvis/pipeline-text.ts";
import type { ExecutionName, Question } from "../../../../execution/jarvis/questions.ts";
import { QUESTIONS } from "../../../../execution/jarvis/questions.ts";
import { directVerdict, MUTE_PACKAGES, type Verdict } from "../../../../execution/jarvis/verdict.ts";
import { ofAttemptFile } from "../../../../execution/own-place.ts";
import type { ExitRecord } from "../../../../execution/spool-records.ts";
import { sha256Hex } from "../../../../lib/digest.ts";
import { readRegular } from "../../../../lib/files/regular-file.ts";
import { timestamp } from "../../../../lib/waiting/clock.ts";
import type { Schedulers } from "../../allocation/schedulers.ts";
import type { EngineAround, EngineAttempt, EngineDocument, EngineEnd, EnginePlan } from "../engine.ts";
import { recordedEnd } from "../engine.ts";
import { PipelineAllocation } from "./allocation.ts";
import { AllocationOutput } from "./allocation-output.ts";
import { allocationEnd, allocationVerdict } from "./allocation-verdict.ts";
import { readHandle } from "./handle.ts";
import type { JarvisInstallation } from "./installation.ts";
import { jarvisPlan, PIPELINE_FILE } from "./plan.ts";
import { sharedInput } from "./shared-input.ts";
import { type Answers, ExecutionWatch } from "./watch.ts";

/** How far apart JARVIS is asked where it keeps executions, once it has not said. */
const PLACE_AGAIN_MS = 30_000;

/** One run of a pipeline (docs/jarvis.md). */
export class JarvisAttempt implements EngineAttempt {
  readonly #executionId: string;
  #watch: ExecutionWatch | null = null;
  #attached = false;
  /** Undefined until the pipeline says whether it has one. */
  #allocation: PipelineAllocation | null | undefined;
  #output: AllocationOutput | null = null;
  #placeAskedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly around: EngineAround<"jarvis">,
    private readonly jarvis: JarvisInstallation,
    private readonly schedulers: Schedulers,
  ) {
    this.#executionId = executionIdOf(around.job);
  }

  get said(): JarvisExecution["said"] {
    const record = this.#watch?.record ?? null;
    if (record === null) return null;
    const { pipeline_id, mode, state, updated_at, scheduler_native_id } = record;
    return { pipeline_id, mode, state, updated_at, scheduler_native_id };
  }

  async plan(): Promise<EnginePlan> {
    const { context, job, fence } = this.around;
    const paths = new Map<string, string>();
    for (const [name, id] of Object.entries(job.spec.inputs ?? {})) {
      const artifact = await context.store.artifact(id);
      const staged = inputPath(context.spoolDir, artifact.sha256, artifact.name);
      const { sharedSpoolDir: shared } = context;
      // Compute nodes do not see the cluster's spool where another one is shared with them.
      paths.set(name, job.lane === "scheduler" && shared !== null ? await sharedInput(staged, shared, fence, artifact) : staged);
    }
    const { plan, text, ready } = await jarvisPlan(this.around, this.jarvis, paths);
    const sha256 = sha256Hex(text);
    const event: NewEvent = {
      event_type: "runtime.metadata_ingested",
      message: `The pipeline to be run takes ${Buffer.byteLength(text)} bytes.`,
      payload: { execution_id: this.#executionId, sha256, size_bytes: Buffer.byteLength(text) },
    };
    const emits = packageLines(ready.pipeline.packages, "planned", await context.store.emitOffsets(fence));
    await context.store.ingest(fence, { deltas: [], truncations: [], emits, notices: [{ about: `pipeline ${sha256}`, event }] });
    return plan;
  }

  async look(): Promise<void> {
    await this.#attach();
    const watch = await this.#execution();
    const allocation = this.#pipelineAllocation();
    await allocation?.intend();
    watch?.look();
    const native = watch?.record?.scheduler_native_id ?? null;
    if (native !== null) await allocation?.named(native);
  }

  async end(exit: ExitRecord, canceling: boolean): Promise<EngineEnd | null> {
    if (exit.started_at === null) return recordedEnd(exit);
    await this.#attach();
    const watch = await this.#execution();
    if (watch === null) return { ...recordedEnd(exit), documents: this.#pipelineDocuments() };
    const allocation = this.#pipelineAllocation();
    if (allocation !== null) return this.#endOfAllocation(allocation, watch, exit, canceling);
    const handle = readHandle(this.around.directory, this.#executionId, exit.streams.stdout.kept);
    const evidence = { executionId: this.#executionId, exit: exit.outcome, startedAt: exit.started_at, mute: this.#mutePackages() };
    return this.#ended(watch, handle.read, (answers) =>
      directVerdict({ ...evidence, lastLine: handle.line, handle: handle.read, record: answers.get }),
    );
  }

  /** The submission has ended; the run has when the scheduler says so. */
  async #endOfAllocation(
    allocation: PipelineAllocation,
    watch: ExecutionWatch,
    exit: ExitRecord,
    canceling: boolean,
  ): Promise<EngineEnd | null> {
    const handle = readHandle(this.around.directory, this.#executionId, exit.streams.stdout.kept);
    const told = handle.read !== null && "document" in handle.read ? handle.read.document.scheduler_native_id : null;
    const found = await allocation.found(exit, told ?? watch.record?.scheduler_native_id ?? null, handle.line || exit.outcome.message);
    if (found.kind === "refused") {
      await allocation.refused();
      const reason = canceling ? "canceled" : "engine_failed";
      return this.#ended(watch, handle.read, () => ({
        outcome: { ...exit.outcome, reason, message: `JARVIS did not submit it: ${found.said}`.slice(0, 2_000) },
        events: [],
      }));
    }
    if (found.kind === "open") {
      if (!canceling) return null;
      const message = "canceled; whether the scheduler has the job was never known: one with the attempt's name may be left there";
      const end = await this.#ended(watch, handle.read, () => ({ outcome: { ...exit.outcome, reason: "canceled", message }, events: [] }));
      return { ...end, ended_at: this.#now() };
    }
    const { over } = allocation;
    const output = await this.#allocationOutput(exit);
    // What has come is part of the log before anything else is said of it.
    const gained = output?.take(over !== null) === true;
    if (gained) this.around.wake();
    if (canceling && over === null) {
      const { cancellation_request } = await this.around.context.store.job(this.around.job.job_id);
      if (cancellation_request?.cancel_scheduler === true) await allocation.cancel();
      else return unfinished(await this.#with(output, this.#left(found.record.native_id, exit, handle.read)));
    }
    watch.look();
    const lagging = over !== null && watch.record?.terminal !== true && over.ms < this.schedulers.times.lag;
    if (gained || over === null || lagging || (over.how === "absent" && over.ms < this.schedulers.times.lag)) return null;
    const status = over.how === "ended" ? allocation.status : null;
    const end = await this.#ended(watch, handle.read, (answers) => allocationVerdict(status, recordIn(answers), canceling));
    const ended_at = allocationEnd(exit.ended_at, { status, record: watch.record, now: this.#now() });
    return this.#with(output, { ...end, ended_at });
  }

  async #with(output: AllocationOutput | null, end: EngineEnd): Promise<EngineEnd> {
    return output === null ? end : { ...end, streams: await output.streams() };
  }

  /** What the run writes in its allocation; null until it is known where. */
  async #allocationOutput(exit: ExitRecord): Promise<AllocationOutput | null> {
    const now = this.around.context.clock.monotonic();
    if (this.#output !== null || now < this.#placeAskedAt + PLACE_AGAIN_MS) return this.#output;
    this.#placeAskedAt = now;
    const root = await this.#root();
    const ownFiles = this.#pipeline()?.scheduler?.ownFiles;
    const quota = readSpec(this.around.directory)?.quota;
    if (root === null || ownFiles === undefined || quota === undefined) return null;
    const fileOf = (stream: LogStream) => (ownFiles[stream] ? null : path.join(root, `${stream}.log`));
    const sources = { stdout: fileOf("stdout"), stderr: fileOf("stderr") };
    this.#output = new AllocationOutput({ directory: this.around.directory, sources, exit, quota });
    return this.#output;
  }

  /** Everything that JARVIS says, with the verdict on it. */
  async #ended(watch: ExecutionWatch, handle: Read<Handle> | null, verdict: (answers: Answers) => Verdict): Promise<EngineEnd> {
    const answers = await watch.final();
    const { outcome, events } = verdict(answers);
    if (outcome.reason === "completed") await this.#packagesSucceeded();
    const { artifacts } = answers;
    const listed = artifacts.kind === "read" && "document" in artifacts.read ? artifacts.read.document : null;
    const documents = [...this.#pipelineDocuments(), ...handleDocuments(handle), ...answerDocuments(answers)];
    return { outcome, outputs: await this.#outputs(listed), documents, events };
  }

  async #packagesSucceeded(): Promise<void> {
    const { context, fence } = this.around;
    const emits = packageLines(this.#pipeline()?.packages ?? [], "succeeded", await context.store.emitOffsets(fence));
    if (emits.length > 0) await context.store.ingest(fence, { deltas: [], truncations: [], emits });
  }

  /** Canceled without the scheduler's job, which goes on. */
  #left(nativeId: string | null, exit: ExitRecord, handle: Read<Handle> | null): EngineEnd {
    const message = `canceled; job ${nativeId} of the scheduler was left alone and goes on`;
    const documents = [...this.#pipelineDocuments(), ...handleDocuments(handle)];
    return {
      ...recordedEnd({ ...exit, outcome: { ...exit.outcome, reason: "canceled", message } }),
      documents,
      retain: true,
      ended_at: this.#now(),
    };
  }

  #now(): string {
    return timestamp(this.around.context.clock);
  }

  #pipelineAllocation(): PipelineAllocation | null {
    if (this.#allocation !== undefined) return this.#allocation;
    const pipeline = this.#pipeline();
    if (pipeline === null) return null;
    const marker = pipeline.scheduler?.jobName ?? null;
    this.#allocation = marker === null ? null : new PipelineAllocation(this.around, this.schedulers, marker);
    return this.#allocation;
  }

  #mutePackages(): string[] {
    const packages = this.#pipeline()?.packages ?? [];
    return packages.filter(({ type }) => MUTE_PACKAGES.has(type.includes(".") ? type : `builtin.${type}`)).map(({ id }) => id);
  }

  async close(): Promise<void> {
    // What is asked of JARVIS has a deadline, and its answer changes nothing any more.
    this.#allocation?.close();
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
      (file) => readRegular(file, LIMITS.pipelineBytes),
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

/** What goes on writes, and its log has what there was by now. */
function unfinished(end: EngineEnd): EngineEnd {
  if (end.streams === undefined) return end;
  const { stdout, stderr } = end.streams;
  return { ...end, streams: { stdout: { ...stdout, complete: false }, stderr: { ...stderr, complete: false } } };
}

const recordIn = ({ get }: Answers): ExecutionRecord | null => (get.kind === "read" && "document" in get.read ? get.read.document : null);

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
