import type { Session } from "../session/session.ts";
import { hopSsh, type SshConnection } from "./connect.ts";
import type { SshRequest } from "./request.ts";

/** An authenticated connection with a login node, whichever client holds it. */
export interface HeldConnection {
  /** With the last hop. Closing it closes the connection. */
  readonly session: Session;
  /** Its entry in the ledger. */
  readonly ledgerSeq: number;
  /**
   * Go on to another login node of the cluster, inside this connection. The new one closes this with it.
   *
   * @param node its name as the host at the other side knows it
   * @throws as the client's own connecting; this connection is still there then
   */
  goOn(node: string, request: SshRequest): Promise<HeldConnection>;
}

/** A connection of the built-in client. */
export const heldByUs = (connection: SshConnection): HeldConnection => ({
  session: connection.session,
  ledgerSeq: connection.ledgerSeq,
  goOn: async (node, request) => heldByUs(await hopSsh(connection, { host: node }, request)),
});
