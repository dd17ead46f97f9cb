import { namedFileFailure } from "../config/named-file.ts";
import { EXIT, errorRule, hintOf, RelayError } from "../domain/errors.ts";
import { SystemLimit } from "../lib/system/process-limits.ts";
import { type CliIo, OutputClosed } from "./io.ts";
import { jsonText, oneLine } from "./print/safe-text.ts";

/** Ends a verb that was interrupted; what is to be said was said. */
export class Interrupted extends Error {}

/**
 * Say what went wrong on standard error: for people one line with the reason and one with what to do, with `json` the problem document, which has
 * both, on one line and nothing else. Returns the exit code.
 */
export async function reportFailure(io: CliIo, error: unknown, json: boolean): Promise<number> {
  if (error instanceof OutputClosed) return EXIT.ok;
  if (error instanceof Interrupted) return EXIT.interrupted;
  const failure = error instanceof RelayError ? error : unexpected(error);
  const rule = errorRule(failure.code);
  try {
    await io.stderr.write(`${json ? await problemLine(failure) : personsText(failure)}\n`);
  } catch (closed) {
    if (!(closed instanceof OutputClosed)) throw closed;
  }
  return rule.exit;
}

async function problemLine(failure: RelayError): Promise<string> {
  const { problemOf } = await import("../api/problem.ts");
  return jsonText(problemOf(failure));
}

function personsText(failure: RelayError): string {
  const hint = hintOf(failure);
  const lines = [`error: ${oneLine(failure.message)} [${failure.code}]`];
  const issues = Array.isArray(failure.data["issues"]) ? (failure.data["issues"] as { path: string; message: string }[]) : [];
  for (const issue of issues.slice(1, 10)) lines.push(`  ${oneLine(`${issue.path}: ${issue.message}`)}`);
  if (hint !== undefined) lines.push(`hint: ${oneLine(hint)}`);
  return lines.join("\n");
}

/** System errors (a file that is not there, no permission) say enough by themselves; anything else is a fault of ours and shows where. */
function unexpected(error: unknown): RelayError {
  if (error instanceof Error && "syscall" in error && "code" in error) {
    const failure = namedFileFailure("path" in error ? String(error.path) : String(error.syscall), error);
    // Which file nobody has named is not there says more in the system's words, and is no slip of the command line.
    if (failure !== null && failure.code !== "local_file_missing") return failure;
    return new RelayError("local_file_unusable", error.message, {}, undefined, { cause: error });
  }
  if (error instanceof SystemLimit)
    return new RelayError(
      "system_limit",
      error.message,
      {},
      "`ulimit -v unlimited`, or 4 GB, before it is started; it reserves more than it uses",
      { cause: error },
    );
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new RelayError("internal_error", text.slice(0, 2_000), {}, "this is a fault of clio-relay", { cause: error });
}
