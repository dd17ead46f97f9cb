import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { type Json, looseText, recordOf } from "../../domain/primitives.ts";
import { lastLine } from "./command.ts";
import script from "./inspection.py" with { type: "text" };
import { atSite, type JarvisProgram, type JarvisSite } from "./program.ts";

/** jarvis_cd/deployment.py, ConfigurationInputBinding: a setting that is a file of the submitter's. */
const Binding = v.strictObject({
  schema_version: v.literal("jarvis.configuration-input-binding.v1"),
  kind: v.literal("local_file"),
  structure: v.literal("regular_file"),
});

const Package = v.variant("problem", [
  v.object({
    problem: v.null(),
    /** With its repository. */
    name: v.string(),
    /** Settings that declare a binding, with what they are by default. */
    bound: recordOf(v.string(), v.object({ binding: v.unknown(), default: v.string() })),
  }),
  v.object({ problem: v.picklist(["package_missing", "package_broken"]), said: looseText(2_000) }),
]);

const Answer = v.variant("problem", [
  v.object({
    problem: v.null(),
    version: v.nullable(v.string()),
    python: v.string(),
    shared_dir: v.pipe(v.string(), v.startsWith("/")),
    config_dir: v.string(),
    packages: recordOf(v.string(), Package),
    pipeline: v.optional(v.nullable(v.string())),
  }),
  v.object({ problem: v.picklist(["jarvis_version", "jarvis_uninitialized", "jarvis_failed"]), said: looseText(2_000) }),
]);

/** What an installed JARVIS-CD says of itself. */
export type Inspection = Extract<v.InferOutput<typeof Answer>, { problem: null }>;

export interface InspectionRequest {
  /** Package types, as pipelines name them. */
  readonly packages: readonly string[];
  /** Name of a pipeline that JARVIS keeps, whose text is wanted; null for none. */
  readonly pipeline: string | null;
  readonly textMax: number;
}

const INSPECTION_MS = 30_000;

/**
 * Ask JARVIS' Python what its command line has no verb for. Changes nothing there.
 *
 * @throws RelayError engine_unavailable, with what is wrong as `cause`
 */
export async function inspect(site: JarvisSite, { python, place }: JarvisProgram, request: InspectionRequest): Promise<Inspection> {
  const marker = `clio-relay-${crypto.randomUUID()} `;
  const asked = { place, packages: request.packages, pipeline: request.pipeline, text_max: request.textMax };
  const input = `import json\nmarker = ${JSON.stringify(marker)}\nrequest = json.loads(${JSON.stringify(JSON.stringify(asked))})\n${script}`;
  const end = await site.run({ ...atSite(site, [...python, "-"], INSPECTION_MS), input });
  if (end.kind === "missing") throw unfit("jarvis_missing", `there is no ${end.program}, which JARVIS-CD runs on`);
  const line = end.stdout.split("\n").findLast((one) => one.startsWith(marker));
  if (line === undefined) throw unfit("jarvis_failed", lastLine(end));
  const parsed = v.safeParse(Answer, json(line.slice(marker.length)));
  if (!parsed.success) throw unfit("jarvis_failed", `its answer is not understood: ${parsed.issues[0].message}`);
  if (parsed.output.problem !== null) throw unfit(parsed.output.problem, parsed.output.said);
  return parsed.output;
}

function json(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

const WORDS = {
  jarvis_missing: "JARVIS-CD is not usable",
  jarvis_version: "this JARVIS-CD has no executions that can be asked for later",
  jarvis_uninitialized: "JARVIS-CD was never initialized here",
  jarvis_failed: "JARVIS-CD does not answer as it should",
} as const;

const HINTS: { readonly [K in keyof typeof WORDS]?: string } = {
  jarvis_uninitialized: "on the cluster, once: jarvis init CONFIG_DIR PRIVATE_DIR SHARED_DIR",
  jarvis_version: "a JARVIS-CD with `jarvis ppl run … --execution-id` is needed, and Python 3.11 or later",
};

const unfit = (cause: keyof typeof WORDS, said: string): RelayError =>
  new RelayError("engine_unavailable", `${WORDS[cause]}: ${said}`, { kind: "jarvis", cause }, HINTS[cause]);

/** Whether a declared binding is one that can be honoured. */
export const isBinding = (binding: unknown): boolean => v.is(Binding, binding);
