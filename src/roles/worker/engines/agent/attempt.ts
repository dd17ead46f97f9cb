import path from "node:path";
import type { AgentConfiguration } from "../../../../domain/agent.ts";
import { agentArgv, takesText } from "../../../../execution/agent/command-line.ts";
import { inputPath } from "../../../../execution/input-place.ts";
import type { ExitRecord } from "../../../../execution/spool-records.ts";
import type { EngineAround, EngineAttempt, EngineEnd, EnginePlan } from "../engine.ts";
import { recordedEnd } from "../engine.ts";
import { agentFile, agentRefused, mcpConfiguration } from "./files.ts";
import { lastMessage } from "./last-message.ts";
import { OutputReports } from "./output-reports.ts";

/** Where the agent may write its last message, in the attempt's directory. */
const OUTPUT_FILE = "last-message.txt";

/** One run of an agent. */
export class AgentAttempt implements EngineAttempt {
  readonly #reports: OutputReports | null;

  constructor(
    private readonly around: EngineAround<"remote_agent">,
    private readonly agent: AgentConfiguration,
    private readonly program: () => string,
  ) {
    this.#reports = agent.adapter === "exec" ? null : new OutputReports(around, agent.adapter);
  }

  async plan(): Promise<EnginePlan> {
    const { directory, job } = this.around;
    const { model, workdir, timeout_seconds } = job.spec;
    const given = await this.#placeOf("prompt", job.spec.prompt_path);
    if (given === null) throw agentRefused("prompt", "there is no prompt");
    const configuration = await this.#placeOf("mcp_config", job.spec.mcp_config_path);
    const prompt = await agentFile("prompt", given.here, takesText(this.agent));
    const servers = configuration === null ? [] : await mcpConfiguration(configuration.here, this.agent);
    const prompt_path = given.there;
    const mcp_config_path = configuration?.there ?? null;
    const output_path = path.join(directory, OUTPUT_FILE);
    const env = {
      CLIO_RELAY_AGENT_PROMPT: prompt_path,
      CLIO_RELAY_AGENT_OUTPUT: output_path,
      ...(mcp_config_path === null ? {} : { CLIO_RELAY_AGENT_MCP_CONFIG: mcp_config_path }),
      ...(model === null ? {} : { CLIO_RELAY_AGENT_MODEL: model }),
    };
    const argv = agentArgv(this.program(), this.agent, { prompt, prompt_path, mcp_config_path, model, output_path }, servers);
    return { argv, env, workdir, login: false, timeout_seconds };
  }

  async look(): Promise<void> {
    if (await this.#reports?.take()) this.around.wake();
  }

  async end(exit: ExitRecord): Promise<EngineEnd> {
    if (exit.started_at === null) return recordedEnd(exit);
    while (await this.#reports?.take());
    const message = lastMessage(path.join(this.around.directory, OUTPUT_FILE), this.agent.adapter);
    return {
      ...recordedEnd(exit),
      documents: message.text === null ? [] : [{ kind: "agent_last_message", name: OUTPUT_FILE, text: message.text }],
      events: message.events,
    };
  }

  async close(): Promise<void> {}

  /** The path of what lies on the cluster, or of what was brought along, for the worker and for the agent; null for neither. */
  async #placeOf(name: string, given: string | null | undefined): Promise<{ readonly here: string; readonly there: string } | null> {
    const { context, job, directory } = this.around;
    const id = job.spec.inputs?.[name];
    if (id === undefined) return given == null ? null : { here: given, there: given };
    const artifact = await context.store.artifact(id);
    const here = inputPath(context.spoolDir, artifact.sha256, artifact.name);
    // Nodes see the attempt's own copy where they do not see the cluster's spool.
    const copied = job.lane === "scheduler" && context.sharedSpoolDir !== null;
    return { here, there: copied ? inputPath(directory, artifact.sha256, artifact.name) : here };
  }
}
