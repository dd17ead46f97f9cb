import { AGENT_ADAPTERS, type AgentArgument, agentArguments } from "../../domain/agent.ts";
import { RelayError } from "../../domain/errors.ts";
import { PROGRAM, programsOf, type WorkerPrograms } from "../../domain/worker-programs.ts";
import { oneOf, type Reader } from "../values.ts";
import { type FlagValues, option } from "../verb.ts";

const program: Reader<string> = {
  label: "PROGRAM",
  form: "a program on the cluster: an absolute path, one below ~/ or $HOME/, or a name on the worker's PATH",
  read(given) {
    const named = given.replace(/^\$HOME\//, "~/");
    return PROGRAM.test(named) ? named : undefined;
  },
  // What lies here says nothing of there.
  suggests: null,
};

const args: Reader<AgentArgument[]> = {
  label: "JSON",
  form: "a JSON array of texts, and of arrays of texts",
  read: (given) => (agentArguments(given) as AgentArgument[] | null) ?? undefined,
  suggests: null,
};

/** Programs on the cluster that its worker runs jobs with. */
export const PROGRAMS = {
  "jarvis-bin": option(program, "JARVIS-CD's program there; jarvis on the worker's PATH when nothing says otherwise"),
  "agent-bin": option(program, "The agent's program there, for agent run"),
  "agent-adapter": option(oneOf(...AGENT_ADAPTERS), "How that agent is called, and what its output means; exec when it is not said"),
  "agent-args": option(args, 'Its arguments, with placeholders, such as ["run", "{prompt_path}"]'),
} as const;

/** @throws RelayError usage where there is no agent that they could be of */
export function programsWith(before: WorkerPrograms | null, flags: FlagValues<typeof PROGRAMS>): WorkerPrograms {
  const known = before === null ? {} : programsOf(before);
  const programs: WorkerPrograms = {
    ...known,
    ...(flags["jarvis-bin"] === undefined ? {} : { jarvis_bin: flags["jarvis-bin"] }),
    ...(flags["agent-bin"] === undefined ? {} : { agent_bin: flags["agent-bin"] }),
    ...(flags["agent-adapter"] === undefined ? {} : { agent_adapter: flags["agent-adapter"] }),
    ...(flags["agent-args"] === undefined ? {} : { agent_args: flags["agent-args"] as WorkerPrograms["agent_args"] & object }),
  };
  const alone = (["agent-adapter", "agent-args"] as const).find((flag) => flags[flag] !== undefined);
  if (alone !== undefined && programs.agent_bin === undefined) throw new RelayError("usage", `--${alone} needs --agent-bin`);
  return programs;
}
