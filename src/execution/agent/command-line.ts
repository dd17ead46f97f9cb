import type { AgentArgument, AgentConfiguration } from "../../domain/agent.ts";

/** What placeholders stand for; null for what the run does not have. */
export interface AgentValues {
  readonly prompt: string;
  readonly prompt_path: string;
  readonly mcp_config_path: string | null;
  readonly model: string | null;
  readonly output_path: string;
}

type Placeholder = keyof AgentValues;

const PLACEHOLDER = /\{(prompt|prompt_path|mcp_config_path|model|output_path)\}/g;

/**
 * Program and arguments of a run. What placeholders stand for is not looked at again.
 *
 * @param servers options that codex gets for its MCP configuration
 */
export function agentArgv(
  program: string,
  { adapter, args }: Pick<AgentConfiguration, "adapter" | "args">,
  values: AgentValues,
  servers: readonly string[] = [],
): string[] {
  const given = args.flatMap((argument) => filled(argument, values));
  if (adapter !== "codex") return [program, ...(args.length === 0 ? [values.prompt] : given)];
  const own = ["exec", "--json", "--output-last-message", values.output_path];
  const model = values.model === null ? [] : ["--model", values.model];
  // A prompt may begin with a dash.
  const prompt = takes(args, "prompt") || takes(args, "prompt_path") ? [] : ["--", values.prompt];
  return [program, ...own, ...model, ...servers, ...given, ...prompt];
}

/** Whether the text of the prompt is going to be an argument. */
export const takesText = ({ adapter, args }: Pick<AgentConfiguration, "adapter" | "args">): boolean =>
  takes(args, "prompt") || (adapter === "codex" ? !takes(args, "prompt_path") : args.length === 0);

/** Whether the arguments have that placeholder. */
export const takes = (args: readonly AgentArgument[], name: Placeholder): boolean => args.flat().some((one) => one.includes(`{${name}}`));

function filled(argument: AgentArgument, values: AgentValues): string[] {
  const words = typeof argument === "string" ? [argument] : argument;
  const isGroup = typeof argument !== "string";
  const lacking = words.some((word) => [...word.matchAll(PLACEHOLDER)].some(([, name]) => values[name as Placeholder] === null));
  if (isGroup && lacking) return [];
  return words.map((word) => word.replace(PLACEHOLDER, (_whole, name: Placeholder) => values[name] ?? ""));
}
