import path from "node:path";
import type { AttendedRequest } from "../../api/desktop/link-views.ts";
import { variable } from "../../config/environment.ts";
import { withoutCredentials } from "../../transport/process-stream.ts";
import type { CliIo } from "../io.ts";

/** Longest variable that is handed on, as the daemon takes it. */
const MAX_VARIABLE = 128 * 1024;
const MAX_NAME = 1_024;

/** What this command has around it, for a connection that is made for it. */
export function attendedRequest(io: Pick<CliIo, "env">, command: string, interactive: boolean): AttendedRequest {
  const { env } = io;
  const config = variable(env, "CLIO_RELAY_SSH_CONFIG");
  return {
    requested_by: `clio-relay ${command}`.slice(0, 256),
    interactive,
    directory: env.cwd,
    agent_socket: variable(env, "SSH_AUTH_SOCK") ?? null,
    ssh_config: config === undefined || config === "none" ? (config ?? null) : path.resolve(env.cwd, config),
    variables: Object.fromEntries(
      Object.entries(withoutCredentials(env.variables)).filter(
        ([name, value]) => name !== "" && name.length <= MAX_NAME && value.length <= MAX_VARIABLE,
      ),
    ),
  };
}
