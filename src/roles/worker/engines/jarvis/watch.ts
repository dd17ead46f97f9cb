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
import type { DocumentOf, ExecutionName, Question } from "../../../../execution/jarvis/questions.ts";
import type { EngineAround } from "../engine.ts";
import type { JarvisInstallation } from "./installation.ts";

/** How far apart JARVIS is asked about one execution, in milliseconds: while its files change, and at least. Each question is a Python that starts. */
const NEXT_MS = 2_000;
const QUIET_MS = 30_000;
/** Where its files cannot be seen. */
const BLIND_MS = 10_000;

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

  /** Until the question that is under way is answered. */
  async settled(): Promise<void> {
    await this.#asking;
  }

  /** Take in everything once more. */
  async final(): Promise<void> {
    await this.settled();
    await this.#ask(null, null).catch((error: unknown) =>
      this.around.context.laneFailed(`JARVIS execution ${this.name.executionId}`, error),
    );
  }

  async #ask(signs: Signs | null, seen: Signs | null): Promise<void> {
    const changed = (sign: keyof Signs): boolean => signs === null || seen === null || signs[sign] !== seen[sign];
    const notices: OnceEvent[] = [];
    let lines: SourceLines[] = [];
    if (changed("record") || this.#record === null) {
      const record = await this.#read("get", notices);
      if (record !== null) {
        if (this.#record === null) notices.push(startedEvent(record));
        notices.push(stateEvent(record));
        this.#record = record;
      }
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

  async #read<Q extends Question>(question: Q, notices: OnceEvent[]): Promise<DocumentOf<Q> | null> {
    const answer = await this.jarvis.ask(question, this.name);
    if (answer.kind !== "read") return null;
    if ("document" in answer.read) return answer.read.document;
    notices.push(refusedEvent(question, answer.read.refused));
    return null;
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
