import { isErrorCode, RelayError } from "../../domain/errors.ts";
import layout from "../script/layout.sh" with { type: "text" };
import { accepted } from "../script/refusal.ts";
import type { Remote, Script } from "../script/remote.ts";
import relayText from "./relay.sh" with { type: "text" };

const SCRIPT: Script = { name: "clio-relay", text: layout + relayText };
const WITHIN_MS = 120_000;

/** Where an installation on a host is, and where its jobs write. */
export interface Whereabouts {
  /** The installation's directory on the host; null for the usual place. */
  readonly home: string | null;
  /** Null: below the installation's. */
  readonly spool: string | null;
}

export interface RelayCommand extends Whereabouts {
  /** The verb with its options; `--json` is added. */
  readonly args: readonly string[];
  /** Its standard input; nothing when left out. */
  readonly input?: string;
  readonly signal: AbortSignal;
  readonly withinMs?: number;
}

/**
 * Run a verb of the executable that is installed on a host, and return its document.
 *
 * @throws RelayError relay_not_installed where there is none or it does not start; the verb's own failure with its reason; script_failed for one without;
 *   answer_malformed where what it printed is no JSON; as Remote.run
 */
export async function runRelay(remote: Remote, command: RelayCommand): Promise<unknown> {
  const args = [...command.args, "--json"];
  const values: Record<string, string> = {
    a_home: command.home ?? "",
    a_spool: command.spool ?? "",
    a_count: String(args.length),
    ...Object.fromEntries(args.map((arg, index) => [`a_${index + 1}`, arg])),
  };
  const options = { values, signal: command.signal, withinMs: command.withinMs ?? WITHIN_MS };
  const { input } = command;
  const answer = accepted(
    input === undefined ? await remote.run(SCRIPT, options) : await remote.feed(SCRIPT, bytesOf(input), options),
    SCRIPT,
  );
  const code = answer.count("code") ?? 1;
  if (code !== 0) throw failureOf(code, answer.last("said") ?? "", command.args);
  const printed = answer.last("printed") ?? "";
  try {
    return JSON.parse(printed);
  } catch (error) {
    throw new RelayError("answer_malformed", `clio-relay ${command.args.join(" ")} printed no document on that host`, {}, undefined, {
      cause: error,
    });
  }
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

/** sh(1): 126 and 127 for a program that cannot be started. Else the last line is a problem document, where it got that far. */
function failureOf(code: number, said: string, args: readonly string[]): RelayError {
  const shown = said.trim().slice(0, 1_000);
  if (code === 126 || code === 127) {
    return new RelayError("relay_not_installed", `the executable on that host does not start: ${shown}`, { exit_code: code });
  }
  const problem = problemIn(said);
  if (problem !== null) return problem;
  return new RelayError("script_failed", `clio-relay ${args.join(" ")} on that host ended with ${code}: ${shown}`, {
    script: SCRIPT.name,
    exit_code: code,
    said: shown,
  });
}

function problemIn(said: string): RelayError | null {
  try {
    const data: unknown = JSON.parse(said.trim().split("\n").at(-1) ?? "");
    if (data === null || typeof data !== "object" || !("reason" in data) || !("detail" in data)) return null;
    const {
      reason,
      detail,
      hint,
      type: _,
      title: __,
      status: ___,
      schema_version: ____,
      retryable: _____,
      ...members
    } = data as Record<string, unknown>;
    if (typeof reason !== "string" || typeof detail !== "string" || !isErrorCode(reason)) return null;
    return new RelayError(reason, detail, members, typeof hint === "string" ? hint : undefined);
  } catch {
    return null;
  }
}
