import { type Document, isCollection, isNode, LineCounter, parseAllDocuments, visit, type YAMLMap, type YAMLSeq } from "yaml";
import { RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import type { LogStream } from "../../domain/log.ts";
import { JARVIS_ID } from "./documents.ts";
import { yamlDepth } from "./yaml-depth.ts";
import { mapAt, YamlEdit } from "./yaml-edit.ts";

/** A package of a pipeline. */
export interface PipelinePackage {
  /** Its name within the pipeline. */
  readonly id: string;
  /** As the pipeline names it: `repository.package`, or only the package. */
  readonly type: string;
  readonly settings: Readonly<Record<string, unknown>>;
}

/** What a `scheduler:` block says, as far as the relay needs it. */
export interface PipelineScheduler {
  readonly name: string;
  readonly jobName: string | null;
  /** What else it has JARVIS say to sbatch, as words of a command line. */
  readonly options: readonly string[];
  /** Streams of the run for which it names a file. */
  readonly ownFiles: Readonly<Record<LogStream, boolean>>;
}

/** More than this is no pipeline, but a way to use up memory. */
const ALIASES_MAX = 100;
/** The parser takes the square of the depth in time, and its stack ends somewhere. */
const DEPTH_MAX = 200;
const PACKAGES_MAX = 1_000;
const PACKAGE_TYPE = /^[A-Za-z0-9_-]{1,128}(\.[A-Za-z0-9_-]{1,128}){0,2}$/;
/** What a pipeline test has beside `config` (jarvis_cd/core/pipeline_test.py). */
const TEST_FIELDS = ["vars", "loop", "repeat", "output"];

/** A refusal of a pipeline. `cause` is one of those of docs/jarvis.md. */
export const pipelineRefused = (cause: string, message: string, data: Readonly<Record<string, unknown>> = {}, hint?: string): RelayError =>
  new RelayError("jarvis_submission_refused", message, { cause, ...data }, hint);

/**
 * The text of a JARVIS-CD pipeline, of which single values can be replaced. Without a replacement it is written back byte for byte.
 *
 * Read as PyYAML reads it, which is what JARVIS uses: YAML 1.1, of several equal keys the last.
 */
export class PipelineText {
  readonly name: string;
  /** Packages and interceptors. */
  readonly packages: readonly PipelinePackage[];
  readonly scheduler: PipelineScheduler | null;
  readonly #document: Document;
  readonly #edit: YamlEdit;

  /** @throws RelayError jarvis_submission_refused, with `line` and `column` for what is no YAML */
  constructor(given: string) {
    if (Buffer.byteLength(given) > LIMITS.pipelineBytes)
      throw pipelineRefused("pipeline", `the pipeline takes more than ${LIMITS.pipelineBytes} bytes`);
    this.#document = parse(given);
    this.#edit = new YamlEdit(given);
    const value = contentOf(this.#document);
    if (!isMapping(value)) throw pipelineRefused("pipeline", "a pipeline is a YAML mapping");
    const tested = "config" in value && TEST_FIELDS.some((field) => field in value);
    if (tested || "experiments" in value)
      throw pipelineRefused("pipeline", "this is a pipeline test, which is many runs and has no handle; submit its pipelines one by one");
    this.name = nameOf(value["name"]);
    this.packages = [...packagesOf(value["pkgs"], "pkgs"), ...packagesOf(value["interceptors"], "interceptors")];
    refuseTwins(this.packages);
    this.scheduler = schedulerOf(value["scheduler"]);
  }

  /** Give a setting of a package a value. @throws RelayError jarvis_submission_refused where it cannot be put there */
  set(packageId: string, setting: string, value: string): void {
    for (const list of ["pkgs", "interceptors"]) {
      const items = (this.#document.get(list) as YAMLSeq | undefined)?.items ?? [];
      for (const item of items) {
        const map = mapAt(item);
        if (map !== null && idOf(map.get("pkg_name"), map.get("pkg_type")) === packageId) this.#put(map, setting, value);
      }
    }
  }

  /** Give a member of the `scheduler:` block a value. @throws as `set` */
  setScheduler(member: string, value: string | boolean): void {
    const map = mapAt(this.#document.get("scheduler"));
    if (map === null) throw pipelineRefused("scheduler", "scheduler: is an alias, in which nothing can be put; write it out");
    this.#put(map, member, value);
  }

  #put(map: YAMLMap, key: string, value: string | boolean): void {
    if (map.get(key) === value || this.#edit.set(map, key, value)) return;
    throw pipelineRefused(
      "pipeline",
      `the value of ${key} is an alias, a block or has an anchor or a tag, and cannot be replaced; write a plain value`,
      { setting: key },
    );
  }

  /** What is to run. */
  toString(): string {
    return this.#edit.toString();
  }
}

/** @throws RelayError jarvis_submission_refused, with `line` and `column` where it is at one place */
function parse(text: string): Document {
  if (yamlDepth(text, DEPTH_MAX) > DEPTH_MAX)
    throw pipelineRefused("yaml", `the pipeline is nested too deeply, or indented by more than ${DEPTH_MAX} columns`);
  const lines = new LineCounter();
  const refusedAt = (offset: number, message: string): RelayError => {
    const { line, col } = lines.linePos(offset);
    return pipelineRefused("yaml", `line ${line}, column ${col}: ${message}`, { line, column: col });
  };
  const parsed = parseAllDocuments(text, {
    version: "1.1",
    uniqueKeys: false,
    prettyErrors: false,
    lineCounter: lines,
    logLevel: "silent",
  });
  const documents: readonly Document[] = "empty" in parsed ? [] : parsed;
  // JARVIS loads what is safe to load, which knows no other tags.
  const tags = documents.flatMap(({ warnings }) => warnings).filter(({ code }) => code === "TAG_RESOLVE_FAILED");
  const [error] = [...documents.flatMap(({ errors }) => errors), ...tags];
  if (error !== undefined) throw refusedAt(error.pos[0], error.message);
  const [document, second] = documents;
  if (document === undefined) throw pipelineRefused("pipeline", "the pipeline is empty");
  if (second !== undefined) throw refusedAt(second.range?.[0] ?? 0, "a second document begins; a pipeline is one");
  const bad = badNode(document);
  if (bad !== null) throw refusedAt(bad.offset, bad.message);
  return document;
}

/** The first alias whose anchor does not stand before it, or stands around it, or key that Python has no mapping for. */
function badNode(document: Document): { readonly offset: number; readonly message: string } | null {
  const anchors = new Set<string>();
  let bad: ReturnType<typeof badNode> = null;
  visit(document, {
    Pair(_key, { key }) {
      if (!isCollection(key)) return undefined;
      bad = { offset: key.range?.[0] ?? 0, message: "a key is a list or a mapping" };
      return visit.BREAK;
    },
    Value(_key, { anchor }) {
      if (anchor !== undefined) anchors.add(anchor);
    },
    Alias(_key, { source, range }, path) {
      const isAround = path.some((node) => isNode(node) && "anchor" in node && node.anchor === source);
      if (anchors.has(source) && !isAround) return undefined;
      bad = { offset: range?.[0] ?? 0, message: `the alias *${source} ${isAround ? "stands in what it stands for" : "leads nowhere"}` };
      return visit.BREAK;
    },
  });
  return bad;
}

function contentOf(document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch (error) {
    if (error instanceof ReferenceError) throw pipelineRefused("yaml", `an alias stands for more than ${ALIASES_MAX} others`);
    throw pipelineRefused("yaml", `the pipeline cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === "object" && !Array.isArray(value);

function nameOf(name: unknown): string {
  if (name === undefined) throw pipelineRefused("pipeline", "the pipeline has no name", {}, "begin it with a line such as: name: demo");
  if (typeof name === "string" && JARVIS_ID.test(name) && !name.endsWith(".")) return name;
  throw pipelineRefused(
    "pipeline",
    "the pipeline's name has to be letters, digits, `.`, `_` and `-`, at most 128, and begin with a letter or digit",
  );
}

const idOf = (name: unknown, type: unknown): unknown => name ?? (typeof type === "string" ? type.split(".").at(-1) : undefined);

function packagesOf(list: unknown, where: string): PipelinePackage[] {
  if (list === undefined) return [];
  if (!Array.isArray(list) || list.length > PACKAGES_MAX)
    throw pipelineRefused("pipeline", `${where} has to be a list of at most ${PACKAGES_MAX} packages`);
  return list.map((item: unknown, index) => {
    const place = `${where}[${index}]`;
    const type = isMapping(item) ? item["pkg_type"] : undefined;
    if (!isMapping(item) || typeof type !== "string") throw pipelineRefused("pipeline", `${place} has no pkg_type`);
    if (!PACKAGE_TYPE.test(type)) throw pipelineRefused("pipeline", `${place}.pkg_type is no name of a package: repository.package`);
    const id = idOf(item["pkg_name"], type);
    if (typeof id !== "string" || !JARVIS_ID.test(id))
      throw pipelineRefused("pipeline", `${place}.pkg_name has to be letters, digits, \`.\`, \`_\` and \`-\`, at most 128`);
    const { pkg_type: _type, pkg_name: _name, ...settings } = item;
    return { id, type, settings };
  });
}

function refuseTwins(packages: readonly PipelinePackage[]): void {
  const seen = new Set<string>();
  for (const { id } of packages) {
    if (seen.has(id))
      throw pipelineRefused("pipeline", `two packages are called ${id}; give one of them another pkg_name`, { package: id });
    seen.add(id);
  }
}

function schedulerOf(block: unknown): PipelineScheduler | null {
  // An empty block is none (jarvis_cd/core/pipeline.py, _load_from_file).
  if (!block || (isMapping(block) && Object.keys(block).length === 0)) return null;
  if (!isMapping(block) || typeof block["name"] !== "string")
    throw pipelineRefused("scheduler", "scheduler: has to be a mapping with a name, such as slurm");
  const { name, job_name: jobName } = block;
  if (name.trim().toLowerCase() !== "slurm")
    throw pipelineRefused("scheduler", `JARVIS-CD submits to slurm only, not to ${name.slice(0, 100)}`);
  return {
    name: "slurm",
    jobName: typeof jobName === "string" ? jobName : null,
    options: optionsIn(block),
    ownFiles: { stdout: block["output"] !== undefined, stderr: block["error"] !== undefined },
  };
}

/** Members of a block that are not handed to sbatch, or that JARVIS or the relay sets itself (jarvis_cd/core/scheduler.py). */
const OWN_MEMBERS: ReadonlySet<string> = new Set([
  ...["name", "hostfile", "suffix", "sbatch_args", "pre_cmds", "post_cmds"],
  ...["job_name", "output", "error"],
]);

function optionsIn(block: Readonly<Record<string, unknown>>): string[] {
  const members = Object.entries(block).filter(([key, value]) => !OWN_MEMBERS.has(key) && value !== null && value !== false);
  const further: unknown = block["sbatch_args"];
  return [
    ...members.map(([key, value]) => `--${key.replaceAll("_", "-")}${value === true ? "" : `=${String(value)}`}`),
    ...(Array.isArray(further) ? further.map(String) : []),
  ];
}
