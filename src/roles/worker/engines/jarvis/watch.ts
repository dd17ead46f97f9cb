import fs from "node:fs";
import path from "node:path";
import type { ExecutionRecord } from "../../../../execution/jarvis/documents.ts";
import {
  type OnceEvent,
  progressLines,
  refusedEvent,
  type SourceLines,
  serviceEvents,
  startedEvent,
  stateEvent,
} from "../../../../execution/jarvis/observation.ts";
import type { Answered, DocumentOf, ExecutionName, Question } from "../../../../execution/jarvis/questions.ts";
import type { EngineAround } from "../engine.ts";
import type { JarvisInstallation } from "./installation.ts";

/** How far apart JARVIS is asked about one execution, in milliseconds: while its files change, and at least. Each question is a Python that starts. */
const NEXT_MS = 2_000;
const QUIET_MS = 30_000;
/** Where its files cannot be seen. */
const BLIND_MS = 10_000;

/** How often an answer is asked for once the run has ended, before it counts as none. */
const LAST_TRIES = 3;

/** What was said about an execution, by question. */
export type Answers = { readonly [Q in Question]: Answered<DocumentOf<Q>> };

/** A document that can be used; what is said of one that cannot goes to the notices. */
function understood<Q extends Question>(question: Q, answer: Answered<DocumentOf<Q>>, notices: OnceEvent[]): DocumentOf<Q> | null {
  if (answer.kind !== "read") return null;
  if ("document" in answer.read) return answer.read.document;
  notices.push(refusedEvent(question, answer.read.refused));
  return null;
}

/** What has changed since the last look, by what there is to ask. */
interface Signs {
  readonly record: string;
  readonly progress: string;
  readonly services: string;
}

/** Takes in what JARVIS says of one execution while that lives. */
export class ExecutionWatch {
  #asking: Promise<void> | null = null;
  #nextAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  #seen: Signs | null = null;
  #record: ExecutionRecord | null = null;

  /** @param root directory of the execution; null where it is not known */
  constructor(
    private readonly around: Pick<EngineAround<"jarvis">, "context" | "fence" | "job" | "wake">,
    private readonly jarvis: JarvisInstallation,
    private readonly name: ExecutionName,
    private readonly root: string | null,
  ) {}

  /** The newest record that was read. */
  get record(): ExecutionRecord | null {
    return this.#record;
  }

  /** Ask again, where it is time; comes back at once. */
  look(): void {
    const now = this.around.context.clock.monotonic();
    if (this.#asking !== null || now < this.#nextAt) return;
    const signs = this.#signs();
    const quiet = signs !== null && same(signs, this.#seen);
    if (now - this.#askedAt < (quiet ? QUIET_MS : signs === null ? BLIND_MS : NEXT_MS)) return;
    this.#asking = this.#ask(signs, this.#seen)
      .then(() => {
        this.#seen = signs;
      })
      .catch((error: unknown) => this.around.context.laneFailed(`JARVIS execution ${this.name.executionId}`, error))
      .finally(() => {
        this.#asking = null;
        this.#askedAt = this.around.context.clock.monotonic();
        this.#nextAt = this.#askedAt + NEXT_MS;
        this.around.wake();
      });
  }

  /** Everything that JARVIS says once the run has ended, taken in for the last time. */
  async final(): Promise<Answers> {
    await this.#asking;
    const [get, progress, artifacts, services] = await Promise.all([
      this.#last("get"),
      this.#last("progress"),
      this.#last("artifacts"),
      this.#last("service-runtimes"),
    ]);
    const notices: OnceEvent[] = [];
    const record = understood("get", get, notices);
    if (record !== null) this.#take(record, notices);
    const reports = understood("progress", progress, notices);
    const runtimes = understood("service-runtimes", services, notices);
    if (runtimes !== null) notices.push(...serviceEvents(runtimes));
    const { context, fence } = this.around;
    await this.#commit(notices, reports === null ? [] : progressLines(reports, await context.store.emitOffsets(fence)));
    return { get, progress, artifacts, "service-runtimes": services };
  }

  async #last<Q extends Question>(question: Q): Promise<Answered<DocumentOf<Q>>> {
    let answer = await this.jarvis.ask(question, this.name);
    for (let n = 1; n < LAST_TRIES && answer.kind === "silent"; n++) answer = await this.jarvis.ask(question, this.name);
    return answer;
  }

  async #ask(signs: Signs | null, seen: Signs | null): Promise<void> {
    const changed = (sign: keyof Signs): boolean => signs === null || seen === null || signs[sign] !== seen[sign];
    const notices: OnceEvent[] = [];
    let lines: SourceLines[] = [];
    if (changed("record") || this.#record === null) {
      const record = await this.#read("get", notices);
      if (record !== null) this.#take(record, notices);
    }
    const metadata = this.#record?.metadata;
    const { fence } = this.around;
    const { store } = this.around.context;
    await this.#commit(notices.splice(0), lines);
    if (metadata !== undefined && hasMembers(metadata["progress_files"]) && changed("progress")) {
      const progress = await this.#read("progress", notices);
      if (progress !== null) lines = progressLines(progress, await store.emitOffsets(fence));
    }
    if (metadata !== undefined && hasMembers(metadata["service_runtime_files"]) && changed("services")) {
      const services = await this.#read("service-runtimes", notices);
      if (services !== null) notices.push(...serviceEvents(services));
    }
    await this.#commit(notices, lines);
  }

  async #commit(notices: readonly OnceEvent[], emits: readonly SourceLines[]): Promise<void> {
    const { context, fence } = this.around;
    if (notices.length + emits.length > 0) await context.store.ingest(fence, { deltas: [], truncations: [], emits, notices });
  }

  #take(record: ExecutionRecord, notices: OnceEvent[]): void {
    if (this.#record === null) notices.push(startedEvent(record));
    notices.push(stateEvent(record));
    this.#record = record;
  }

  async #read<Q extends Question>(question: Q, notices: OnceEvent[]): Promise<DocumentOf<Q> | null> {
    return understood(question, await this.jarvis.ask(question, this.name), notices);
  }

  /** What the execution's files look like from outside: JARVIS need not be asked while they stay as they are. */
  #signs(): Signs | null {
    const { root } = this;
    if (root === null || !fs.existsSync(root)) return null;
    return {
      record: signOf(path.join(root, ".jarvis-execution.json")),
      progress: signsBelow(path.join(root, "progress")),
      services: signsBelow(path.join(root, "service-runtimes")),
    };
  }
}

const FILES_MAX = 1_024;

function signOf(file: string): string {
  const stat = fs.statSync(file, { throwIfNoEntry: false, bigint: true });
  return stat === undefined ? "" : `${stat.ino} ${stat.size} ${stat.mtimeNs}`;
}

function signsBelow(directory: string): string {
  let names: string[];
  try {
    names = fs.readdirSync(directory).sort().slice(0, FILES_MAX);
  } catch {
    return "";
  }
  return names
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => `${name} ${signOf(path.join(directory, name))}`)
    .join("\n");
}

const same = (a: Signs, b: Signs | null): boolean =>
  b !== null && a.record === b.record && a.progress === b.progress && a.services === b.services;

const hasMembers = (value: unknown): boolean => value !== null && typeof value === "object" && Object.keys(value).length > 0;
