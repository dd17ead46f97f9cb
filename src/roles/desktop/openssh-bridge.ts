import type { SshEntry } from "../../config/cluster-entry.ts";
import { RelayError } from "../../domain/errors.ts";
import { bridgeCommand, newNonce, openBridge } from "../../transport/bring-up/bridge.ts";
import type { LinkTransport } from "../../transport/link.ts";
import { runOpenSsh } from "../../transport/ssh/openssh/connect.ts";
import type { SshRequest } from "../../transport/ssh/request.ts";
import type { Attended } from "./attended-run.ts";
import { type BridgeKeys, overBridge } from "./login-node.ts";

export interface OpenSshWay {
  readonly transport: LinkTransport;
  readonly ledgerSeq: number;
}

/**
 * The worker's own session over one process of the user's ssh, which is held for as long as the session.
 *
 * @param askpass what starts this program to ask for ssh
 * @param privateDirectory of the user's alone
 * @throws RelayError link_bringup_failed where bootstrap has not exchanged keys; as runOpenSsh and openBridge, and what ssh itself said when it ended
 */
export async function bridgeOverOpenSsh(
  entry: SshEntry,
  request: SshRequest,
  { keys, askpass, privateDirectory }: { keys: BridgeKeys; askpass: readonly string[]; privateDirectory: string },
  attended: Attended,
): Promise<OpenSshWay> {
  if (keys === null) {
    throw new RelayError(
      "link_bringup_failed",
      `ssh_client = "openssh" needs the keys that bootstrap exchanges, and ${entry.name} has none yet`,
      { cluster: entry.name },
      `clio-relay cluster add ${entry.name} --ssh-client builtin && clio-relay cluster bootstrap ${entry.name}`,
    );
  }
  const nonce = newNonce();
  const command = bridgeCommand({ cluster: entry.name, home: entry.core_dir, nonce });
  attended.progress(`starting ssh to ${entry.ssh_host}`);
  const ssh = await runOpenSsh({ ...request, command, askpass, privateDirectory });
  try {
    // ssh may wait for a person as long as it likes; that it ended says more than that the bridge did not begin.
    const session = await openBridge(ssh.duplex, nonce, keys, attended.attending.signal, { lineMs: null });
    ssh.opened();
    return { transport: overBridge(session), ledgerSeq: ssh.ledgerSeq };
  } catch (error) {
    ssh.duplex.destroy();
    const own = await ssh.failure;
    throw error instanceof RelayError && error.code !== "link_bringup_failed" ? error : own;
  }
}
