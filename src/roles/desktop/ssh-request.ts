import os from "node:os";
import type { AttendedRequest } from "../../api/desktop/link-views.ts";
import type { SshEntry } from "../../config/cluster-entry.ts";
import type { Environment } from "../../config/environment.ts";
import { account } from "../../execution/account.ts";
import type { Ledger } from "../../transport/ledger.ts";
import type { Account } from "../../transport/ssh/config/target.ts";
import { entryOf, type SshRequest } from "../../transport/ssh/request.ts";
import type { Attended } from "./attended-run.ts";

/** What is needed for a connection besides the daemon's own things: all of it belongs to the request of a person. */
export function sshRequest(
  entry: SshEntry,
  purpose: SshRequest["purpose"],
  { request, attended, ledger, env }: { request: AttendedRequest; attended: Attended; ledger: Ledger; env: Environment },
): SshRequest {
  return {
    entry: entryOf(entry),
    purpose,
    attending: attended.attending,
    prompter: attended.prompter,
    ledger,
    config: {
      account: accountOf(env),
      sshProgram: Bun.which("ssh", { PATH: request.variables["PATH"] ?? "" }),
      configFile: request.ssh_config,
      variables: request.variables,
      directory: request.directory,
    },
    agentSocket: request.agent_socket,
    keyRing: new Map(),
    notice: (text) => attended.notice(text),
  };
}

function accountOf(env: Environment): Account {
  const hostname = os.hostname();
  if (env.uid < 0) return { name: env.variables["USERNAME"] ?? "", home: env.home, uid: env.uid, hostname };
  const { name, home } = account(env.uid);
  return { name, home, uid: env.uid, hostname };
}
