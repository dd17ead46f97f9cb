/** How an agent is called, and what its output means (docs/agents.md). */
export const AGENT_ADAPTERS = ["exec", "codex", "generic"] as const;
export type AgentAdapter = (typeof AGENT_ADAPTERS)[number];

/** One argument with its placeholders, or several that are left out together where one of their placeholders has no value. */
export type AgentArgument = string | readonly string[];

/** The agent of a worker. */
export interface AgentConfiguration {
  /** Absolute path of its program, or its name; null where there is none. */
  readonly program: string | null;
  readonly adapter: AgentAdapter;
  readonly args: readonly AgentArgument[];
}

/** Arguments from a JSON array of texts and of arrays of texts; null for what is none. */
export function agentArguments(text: string): readonly AgentArgument[] | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const fits = Array.isArray(value) && value.every((one) => isArgument(one) || (Array.isArray(one) && one.every(isArgument)));
  return fits ? (value as AgentArgument[]) : null;
}

const isArgument = (one: unknown): boolean => typeof one === "string" && !one.includes("\0");
