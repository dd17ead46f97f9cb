import { isRelayError, RelayError } from "../../domain/errors.ts";
import { quoted } from "./host-key.ts";
import { contextOf, type SshRequest } from "./request.ts";

/** Which of the two clients an entry names. */
type Client = "builtin" | "openssh";

/** A failure of either client that says nothing of what to do gets that, with the line for a person to look for themselves. */
export function withRemedy(error: unknown, request: SshRequest, client: Client): unknown {
  if (!isRelayError(error) || error.hint !== undefined) return error;
  const hint = remedyOf(error, request, client);
  return hint === null ? error : new RelayError(error.code, error.message, error.data, hint, { cause: error });
}

function remedyOf({ code, data }: RelayError, request: SshRequest, client: Client): string | null {
  const { cluster } = request.entry;
  switch (code) {
    case "host_unreachable":
      return `${sshLine(request)} shows whether ssh reaches it: the host may be down, in reach of another network only, or have another name or port`;
    case "authentication_failed":
      return client === "builtin"
        ? `${sshLine(request)} shows whether OpenSSH is let in; where it is: clio-relay cluster add ${cluster} --ssh-client openssh`
        : `${sshLine(request, "-v ")} shows what OpenSSH tries; the account may want another key, user, password or code`;
    case "ssh_config_unsupported":
      return `clio-relay cluster add ${cluster} --ssh-client openssh, where ssh is installed; or ${
        data["directive"] === "@cert-authority" ? "add the host's own key to known_hosts" : "leave it out for this host"
      }`;
    case "configuration_error":
      return `correct it there: ${sshLine(request, "-G ")} shows what ssh makes of it; CLIO_RELAY_SSH_CONFIG=FILE has another one read`;
    case "link_bringup_failed":
      return client === "builtin" ? null : `${sshLine(request, "-v ")} shows what OpenSSH tries`;
    case "passphrase_wrong":
      return "the same again asks anew; an agent (ssh-add FILE) asks once for all";
    default:
      return null;
  }
}

function sshLine(request: SshRequest, options = ""): string {
  const { entry } = request;
  const { configFile } = contextOf(request);
  const from = configFile === null ? "" : `-F ${quoted(configFile)} `;
  return `ssh ${options}${from}${quoted(entry.user === undefined ? entry.host : `${entry.user}@${entry.host}`)}`;
}
