import type { AgentConfiguration } from "../../../domain/agent.ts";
import type { Capacity } from "../../../domain/endpoint.ts";
import { RelayError } from "../../../domain/errors.ts";
import type { JobKind, JobSubmission, Lane } from "../../../domain/job.ts";
import type { PipelineInputs, PipelineQuestion } from "../../../domain/pipeline.ts";
import { handedOnEnvironment } from "../../../execution/environment.ts";
import type { ShimLauncher } from "../../../execution/launcher.ts";
import type { ExitRecord } from "../../../execution/spool-records.ts";
import type { Clock } from "../../../lib/waiting/clock.ts";
import { systemTimers } from "../../../lib/waiting/timers.ts";
import type { QueueStore } from "../../../queue/store.ts";
import { runSiteCommand } from "../../../scheduler/site-command.ts";
import type { Schedulers } from "../allocation/schedulers.ts";
import { AgentEngine } from "./agent/engine.ts";

import { commandEngine } from "./command.ts";
import { type Engine, type EngineAround, type EngineAttempt, type EngineEnd, type Engines, recordedEnd } from "./engine.ts";
import { JarvisEngine } from "./jarvis/engine.ts";
import { JarvisInstallation } from "./jarvis/installation.ts";
import { McpEngine } from "./mcp/engine.ts";
import { ToolEvidence } from "./mcp/evidence.ts";
import { WarmServers } from "./mcp/warm-servers.ts";

/** The programs that a worker's operator names. */
export interface Programs {
  /** Path or name of JARVIS-CD's program; `jarvis` when left out. */
  readonly jarvis?: string;
  /** The agent; none when left out. */
  readonly agent?: AgentConfiguration;
  /** Program and arguments of the MCP server of JARVIS-CD; none when left out. */
  readonly jarvisMcp?: readonly string[];
}

/** What the engines of a worker are given. */
export interface EnginesAround extends Programs {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly envSetup: string | null;
  readonly clock: Clock;
  readonly capacity: Capacity;
  readonly store: Pick<QueueStore, "job" | "artifact">;
  readonly spoolDir: string;
  readonly launcher: Pick<ShimLauncher, "keep">;
  readonly schedulers: Schedulers;
}

const NO_AGENT: AgentConfiguration = { program: null, adapter: "exec", args: [] };

/** The engines that there are. */
export function enginesOf({
  environment,
  envSetup,
  clock,
  capacity,
  store,
  spoolDir,
  launcher,
  schedulers,
  ...programs
}: EnginesAround): Engines {
  const { jarvis = "jarvis", agent = NO_AGENT, jarvisMcp = null } = programs;
  const handedOn = handedOnEnvironment(environment);
  const site = { program: jarvis, environment: handedOn, envSetup, run: runSiteCommand };
  return {
    command: commandEngine,
    jarvis: new JarvisEngine(new JarvisInstallation(site, clock), schedulers),
    remote_agent: new AgentEngine({ agent, capacity, store, spoolDir, searchPath: handedOn["PATH"] ?? "", hasSetup: envSetup !== null }),
    mcp_call: new McpEngine({
      evidence: new ToolEvidence(store, spoolDir),
      warm: new WarmServers(launcher, spoolDir, systemTimers),
      environment,
      hasSetup: envSetup !== null,
      jarvis: jarvisMcp,
    }),
  };
}

export const kindsOf = (engines: Engines): ReadonlySet<JobKind> => new Set(Object.keys(engines) as JobKind[]);

/**
 * See Engine.admit.
 *
 * @throws RelayError engine_unavailable also for a kind without an engine
 */
export async function admitTo(engines: Engines, submission: JobSubmission): Promise<Lane> {
  return engineOf(engines, submission.kind).admit(submission as never);
}

/** What goes with a pipeline. @throws RelayError engine_unavailable where there is no JARVIS-CD */
export async function pipelineInputs({ jarvis }: Engines, question: PipelineQuestion): Promise<PipelineInputs> {
  if (jarvis === undefined) throw unavailable("jarvis");
  return jarvis.inputs(question);
}

/** See Engine.attempt. A job of a kind that has no engine (any more) ends as one that cannot be started. */
export function attemptWith(engines: Engines, around: EngineAround<JobKind>): EngineAttempt {
  const { kind } = around.job;
  const engine = engines[kind];
  return engine === undefined ? new NoEngine(kind) : (engine as Engine<JobKind>).attempt(around);
}

function engineOf<K extends JobKind>(engines: Engines, kind: K): Engine<K> {
  const engine = engines[kind];
  if (engine === undefined) throw unavailable(kind, kindsOf(engines));
  return engine as unknown as Engine<K>;
}

const unavailable = (kind: JobKind, available: ReadonlySet<JobKind> = new Set()): RelayError =>
  new RelayError("engine_unavailable", `this worker runs no jobs of kind ${kind}`, { kind, available: [...available] });

class NoEngine implements EngineAttempt {
  constructor(private readonly kind: JobKind) {}

  async plan(): Promise<never> {
    throw unavailable(this.kind);
  }

  async look(): Promise<void> {}

  async end(exit: ExitRecord): Promise<EngineEnd> {
    return recordedEnd(exit);
  }

  async close(): Promise<void> {}
}
