import path from "node:path";
import type { AgentArgument, AgentConfiguration } from "../domain/agent.ts";
import { agentArguments } from "../domain/agent.ts";
import { programsOf, type WorkerPrograms } from "../domain/worker-programs.ts";
import type { Environment } from "./environment.ts";
import { type FileValues, loadSettings, wordsOf } from "./settings.ts";

/** What a worker runs jobs with. */
export interface ProgramSettings {
  readonly jarvis: string;
  readonly agent: AgentConfiguration;
  /** Program and arguments of the MCP server of JARVIS-CD; left out where none is set. */
  readonly jarvisMcp?: readonly string[];
}

/**
 * The programs of a cluster's worker: its environment wins over the cluster's entry, which wins over config.toml. An agent that the entry names has nothing of
 * another one that the file describes.
 *
 * @throws RelayError configuration_error
 */
export function workerPrograms(env: Environment, file: FileValues, entry: WorkerPrograms): ProgramSettings {
  const { jarvis_bin, agent_bin, ...agent } = programsOf(entry);
  const { agent_adapter, agent_args, ...others } = file;
  const settings = loadSettings(env, {
    ...(agent_bin === undefined ? file : others),
    ...agent,
    ...(jarvis_bin === undefined ? {} : { jarvis_bin: atHome(jarvis_bin, env) }),
    ...(agent_bin === undefined ? {} : { agent_bin: atHome(agent_bin, env) }),
  });
  const args: readonly AgentArgument[] = agentArguments(settings.agent_args) ?? [];
  const jarvisMcp = wordsOf(settings.jarvis_mcp_command ?? "");
  return {
    jarvis: settings.jarvis_bin,
    agent: { program: settings.agent_bin, adapter: settings.agent_adapter, args },
    ...(jarvisMcp === null ? {} : { jarvisMcp }),
  };
}

const atHome = (program: string, { home }: Environment): string => (program.startsWith("~/") ? path.join(home, program.slice(2)) : program);
