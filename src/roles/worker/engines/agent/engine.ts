import path from "node:path";
import type { AgentConfiguration } from "../../../../domain/agent.ts";
import { type Capacity, kindSlotsOf } from "../../../../domain/endpoint.ts";
import { isRelayError, RelayError } from "../../../../domain/errors.ts";
import { type Lane, laneOf } from "../../../../domain/job.ts";
import { parentOf } from "../../../../domain/parent.ts";
import { takesText } from "../../../../execution/agent/command-line.ts";
import { inputPath } from "../../../../execution/input-place.ts";
import type { QueueStore } from "../../../../queue/store.ts";
import type { Engine, EngineAround, EngineAttempt, SubmissionOf } from "../engine.ts";
import { AgentAttempt } from "./attempt.ts";
import { agentFile, agentRefused, mcpConfiguration } from "./files.ts";

export interface AgentEngineAround {
  readonly agent: AgentConfiguration;
  readonly capacity: Capacity;
  readonly store: Pick<QueueStore, "job" | "artifact">;
  /** The cluster's spool. */
  readonly spoolDir: string;
  /** PATH of jobs. */
  readonly searchPath: string;
  /** Whether a setup text may make another one of it. */
  readonly hasSetup: boolean;
}

/** How many jobs a chain of parents is followed up. */
const ANCESTORS_MAX = 32;

/** Runs of the cluster's agent (docs/agents.md). */
export class AgentEngine implements Engine<"remote_agent"> {
  readonly kind = "remote_agent";

  constructor(private readonly around: AgentEngineAround) {}

  async admit(submission: SubmissionOf<"remote_agent">): Promise<Lane> {
    const { agent, capacity } = this.around;
    this.program(submission.cluster);
    const lane = laneOf(submission);
    if (lane === "workload" && kindSlotsOf(capacity, "remote_agent") < 1)
      throw unavailable(
        "agent_slots",
        "this worker has one slot for jobs, and an agent that waits for a job of its own must not have the last one",
      );
    await this.#refuseNested(submission);
    const { prompt_path, mcp_config_path, inputs } = submission.spec;
    const prompt = prompt_path ?? (await this.#staged(inputs?.["prompt"]));
    const configuration = mcp_config_path ?? (await this.#staged(inputs?.["mcp_config"]));
    if (prompt !== null) await agentFile("prompt", prompt, takesText(agent));
    if (configuration !== null) await mcpConfiguration(configuration, agent);
    return lane;
  }

  /** Where a file lies that was brought along; null for none, and for what is none: the queue refuses that, and says why. */
  async #staged(id: string | undefined): Promise<string | null> {
    if (id === undefined) return null;
    const artifact = await this.around.store.artifact(id).catch((error: unknown) => {
      if (isRelayError(error, "artifact_not_found")) return null;
      throw error;
    });
    return artifact?.kind === "input" ? inputPath(this.around.spoolDir, artifact.sha256, artifact.name) : null;
  }

  attempt(around: EngineAround<"remote_agent">): EngineAttempt {
    return new AgentAttempt(around, this.around.agent, () => this.program(around.job.cluster));
  }

  /** The program's path, or its name where it is to be found when it runs. @throws RelayError engine_unavailable */
  program(cluster: string): string {
    const { agent, searchPath, hasSetup } = this.around;
    const { program } = agent;
    if (program === null)
      throw unavailable(
        "agent_unconfigured",
        "this worker has no agent",
        `clio-relay cluster add --name ${cluster} --agent-bin PROGRAM, or CLIO_RELAY_AGENT_BIN where the worker runs; then start the worker again`,
      );
    const found = path.isAbsolute(program) ? Bun.which(program) : Bun.which(program, { PATH: searchPath });
    if (found !== null) return found;
    if (hasSetup && !path.isAbsolute(program)) return program;
    throw unavailable("agent_missing", `there is no program ${program}, which CLIO_RELAY_AGENT_BIN names`);
  }

  /** All that may run agents could wait for one that does not get a slot. */
  async #refuseNested(submission: SubmissionOf<"remote_agent">): Promise<void> {
    let parent = parentOf(submission);
    for (let above = 0; parent !== null && above < ANCESTORS_MAX; above++) {
      const job = await this.around.store.job(parent).catch((error: unknown) => {
        if (isRelayError(error, "job_not_found")) return null;
        throw error;
      });
      if (job?.kind === "remote_agent")
        throw agentRefused("nested", `it was submitted by the agent of job ${job.job_id}, and an agent starts no agents`);
      parent = job === null ? null : parentOf(job);
    }
  }
}

const unavailable = (cause: string, message: string, hint?: string): RelayError =>
  new RelayError("engine_unavailable", message, { kind: "remote_agent", cause }, hint);
