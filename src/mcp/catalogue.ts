import { toJsonSchema } from "@valibot/to-json-schema";
import type { ClusterEntry } from "../config/cluster-entry.ts";
import { forInput, forOutput } from "./compact-schema.ts";
import type { JsonSchema } from "./federation/schema-walk.ts";
import type { Profile, Tool } from "./tool.ts";
import { clusterTools } from "./tools/clusters.ts";
import { jarvisTools } from "./tools/jarvis.ts";
import { jobTools } from "./tools/jobs.ts";
import { outputTools } from "./tools/outputs.ts";
import { recordTools } from "./tools/records.ts";
import { remoteTools } from "./tools/remote.ts";
import { submissionTools } from "./tools/submissions.ts";
import { timelineTools } from "./tools/timeline.ts";

/** The tools of this program, in the order in which they are listed. */
export const TOOLS: readonly Tool[] = [
  ...clusterTools,
  ...remoteTools,
  ...submissionTools,
  ...jarvisTools,
  ...jobTools,
  ...outputTools,
  ...timelineTools,
  ...recordTools,
];

/** A tool as tools/list shows it. */
export interface Listed {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
  readonly annotations: Readonly<Record<string, unknown>>;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

interface Schemas {
  readonly input: JsonSchema;
  readonly output: JsonSchema;
}

/** The schemas of each tool, made once. */
const made = new WeakMap<Tool, Schemas>();

/** What only a function knows is an object, of whose members its description tells. */
const objects = ({
  valibotSchema: { type },
  jsonSchema,
}: {
  readonly valibotSchema: { readonly type: string };
  readonly jsonSchema: object;
}) => (type === "custom" ? { ...jsonSchema, type: "object" as const } : undefined);

function schemasOf(tool: Tool): Schemas {
  let schemas = made.get(tool);
  if (schemas === undefined) {
    const schema = (of: Tool["input"], typeMode: "input" | "output"): JsonSchema => {
      const { $schema: _dialect, ...rest } = toJsonSchema(of, { typeMode, errorMode: "ignore", overrideSchema: objects });
      return rest;
    };
    schemas = { input: forInput(schema(tool.input, "input")), output: forOutput(schema(tool.output, "output")) };
    made.set(tool, schemas);
  }
  return schemas;
}

/** Whether a profile has a tool. */
export const isOf = (profile: Profile, tool: Pick<Tool, "profile">): boolean => profile === "admin" || tool.profile === profile;

/** Clusters that a tool can be called for, in a profile; null where it takes none. */
function clustersFor(tool: Tool, profile: Profile, entries: readonly ClusterEntry[]): readonly string[] | null {
  if (tool.clusters === undefined) return null;
  const eligible = tool.clusters === "all" || profile === "admin" ? entries : entries.filter((entry) => entry.agent_commands === true);
  return eligible.map(({ name }) => name);
}

/** A tool's own tools/list entry, with the clusters in place of what any name may be. */
export function listed(tool: Tool, clusters: readonly string[] | null): Listed {
  const { input, output } = schemasOf(tool);
  return {
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: clusters === null || clusters.length === 0 ? input : withClusters(input, clusters),
    outputSchema: output,
    annotations: { title: tool.title, ...tool.hints },
  };
}

function withClusters(schema: JsonSchema, clusters: readonly string[]): JsonSchema {
  const properties = schema["properties"] as Readonly<Record<string, JsonSchema>>;
  const { cluster } = properties;
  if (cluster === undefined) return schema;
  const { description } = cluster;
  return {
    ...schema,
    properties: { ...properties, cluster: { type: "string", enum: [...clusters], ...(description === undefined ? {} : { description }) } },
  };
}

/** What a profile is shown. A tool that no cluster takes is left out. */
export function listTools(profile: Profile, entries: readonly ClusterEntry[], tools: readonly Tool[] = TOOLS): Listed[] {
  return tools.flatMap((tool) => {
    if (!isOf(profile, tool)) return [];
    const clusters = clustersFor(tool, profile, entries);
    return tool.clusters === "commands" && clusters?.length === 0 ? [] : [listed(tool, clusters)];
  });
}
