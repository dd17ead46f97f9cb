import * as v from "valibot";
import { AGENT_ADAPTERS } from "./agent.ts";
import { looseText } from "./primitives.ts";

/** An absolute path, one below `~/`, or a name on the PATH of the worker. */
export const PROGRAM = /^(?:~?\/(?!.*(?:^|\/)\.\.(?:\/|$))[^\p{Cc}]{1,1022}|[A-Za-z0-9_][A-Za-z0-9_.+-]{0,254})$/u;
const Program = v.pipe(v.string(), v.regex(PROGRAM, "must be a program there: an absolute path, one below ~/, or a name"));
const Word = v.pipe(looseText(8_192), v.regex(/^[^\0]*$/, "must not contain NUL"));

/** Arguments of an agent: texts, and arrays of texts that go together (docs/agents.md). */
export const AgentArguments = v.pipe(v.array(v.union([Word, v.pipe(v.array(Word), v.maxLength(64))])), v.maxLength(64));

/** Programs on a cluster that its worker runs jobs with. What is absent is the worker's own setting of that name. */
export const WORKER_PROGRAMS = {
  jarvis_bin: v.exactOptional(Program),
  agent_bin: v.exactOptional(Program),
  agent_adapter: v.exactOptional(v.picklist(AGENT_ADAPTERS)),
  agent_args: v.exactOptional(AgentArguments),
} as const;
const Programs = v.strictObject(WORKER_PROGRAMS);
export type WorkerPrograms = v.InferOutput<typeof Programs>;

/** Only these members of something that has others, too. */
export function programsOf(from: WorkerPrograms): WorkerPrograms {
  const names = Object.keys(WORKER_PROGRAMS) as (keyof WorkerPrograms)[];
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])));
}
