import { RelayError } from "../../domain/errors.ts";
import type { ExecStatus } from "../session/session.ts";
import type { FrameReader } from "./frame.ts";

/** How much of what was said instead of an answer is shown. */
const SAID_BYTES = 1_024;
/** What stands between sshd and a command of ours. */
export const PROFILE_HINT =
  "look at the profile of that account's login shell (~/.bashrc, ~/.zshenv, ~/.cshrc or the like): without a terminal it has to print little, read nothing, start no other shell, and end";

const shownOf = (noise: string): string => noise.trim().slice(0, SAID_BYTES);
const printed = (shown: string): string => (shown === "" ? "" : `; it printed: ${shown}`);

/** A login shell that has not come to the command, or has put something else in its place. */
export function notBegun({ name }: { readonly name: string }, noise: string): RelayError {
  const said = shownOf(noise);
  return new RelayError(
    "observation_timeout",
    `the account's login shell on the cluster's host has not begun the program "${name}": its profile may hang, wait for input, or have started something else${printed(said)}`,
    { script: name, said },
    PROFILE_HINT,
  );
}

/**
 * A script that is over without an answer.
 *
 * @param status null: it has closed its outputs and goes on
 */
export function unanswered({ name }: { readonly name: string }, status: ExecStatus | null, reader: FrameReader): RelayError {
  const { code, signal } = status ?? { code: null, signal: null };
  // A program that ends has a status (RFC 4254, section 6.10): without one it is the connection that has ended.
  if (status !== null && code === null && signal === null)
    return new RelayError("link_down", `the connection ended before the program "${name}" on the cluster's host had answered`);
  const how = status === null ? "closed its outputs and goes on" : code === null ? `was ended by ${signal}` : `ended with ${code}`;
  const said = shownOf(reader.noise);
  const data = { script: name, exit_code: code, signal, said };
  if (reader.isReady)
    return new RelayError("script_failed", `the program "${name}" on the cluster's host ${how}${said === "" ? "" : `: ${said}`}`, data);
  const what = `the account's login shell on the cluster's host ${how} without having begun the program "${name}": its profile may have ended it${printed(said)}`;
  return new RelayError("script_failed", what, data, PROFILE_HINT);
}
