import { variable } from "../../config/environment.ts";
import type { TraceContext } from "../../domain/trace.ts";
import type { CliIo } from "../io.ts";

/** The trace that a command belongs to: that of the job which it runs in, or of whatever else has started it. One that is none is said and left out. */
export async function surroundingTrace({ env, stderr }: Pick<CliIo, "env" | "stderr">): Promise<TraceContext | null> {
  const traceparent = variable(env, "TRACEPARENT");
  if (traceparent === undefined) return null;
  // A validator comes with it, which takes as long to load as the rest of the command.
  const { traceContext } = await import("../../domain/trace.ts");
  const trace = traceContext(traceparent, variable(env, "TRACESTATE"));
  if (trace === null) await stderr.write("notice: TRACEPARENT is no traceparent, and is left out\n").catch(() => undefined);
  return trace;
}
