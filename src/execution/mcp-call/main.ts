import path from "node:path";
import { listenForTerm } from "../shim/term-signal.ts";
import { CallFailed } from "./call-failed.ts";
import { ownStreams } from "./call-output.ts";
import { oneCall } from "./one-call.ts";
import { record, succeeded } from "./record.ts";
import { CALL_FILES, readRequest } from "./request-file.ts";

/** What the program needs of the process around it. */
export interface McpCallIo {
  readonly version: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workdir: string;
}

/**
 * `__mcp-call FILE`: what the shim of a job of kind mcp_call runs (docs/federation.md). FILE is `mcp-request.json` in the attempt's directory.
 *
 * @returns the exit code: 0 where the server answered and says that it did what was asked; 1 otherwise; 2 for arguments that are none of these
 */
export async function runMcpCall(argv: readonly string[], io: McpCallIo): Promise<number> {
  const [file] = argv;
  if (argv.length !== 1 || file === undefined || path.basename(file) !== CALL_FILES.request) return 2;
  const term = listenForTerm();
  const request = readRequest(file);
  const interrupted = new AbortController();
  void term.promise.then(() => interrupted.abort(new CallFailed("interrupted", "it was asked to end")));
  const directory = path.dirname(file);
  const eventsDir = io.environment["CLIO_RELAY_EVENTS"] ?? path.join(directory, "events");
  const environment = () => Promise.resolve(io.environment);
  const around = { request, environment, workdir: io.workdir, clientInfo: { name: "clio-relay", version: io.version } };
  const end = await oneCall(around, { directory, eventsDir, sinks: ownStreams, signal: interrupted.signal });
  record(directory, end);
  return succeeded(end) ? 0 : 1;
}
