import type { KeyServices } from "../../api/key-services.ts";
import { RelayError } from "../../domain/errors.ts";
import type { LinkKeys } from "../../domain/link-keys.ts";
import { parseRelayUrl } from "../../domain/relay-url.ts";
import { type Clock, systemClock } from "../../lib/waiting/clock.ts";
import { hostKeyPrint } from "./host-key-print.ts";
import type { LinkSessions } from "./link-sessions.ts";

export interface KeyServiceOptions {
  readonly cluster: string;
  readonly coreDir: string;
  readonly comment: string;
  readonly clock: Clock;
  readonly sessions: LinkSessions;
  /** The address of the relay-host where the worker is; null: it is at none. */
  readonly relayHost: () => string | null;
}

/** The keys as they are in the worker's files. @throws RelayError configuration_error */
export async function keysOf(coreDir: string, clock: Clock = systemClock): Promise<LinkKeys> {
  const [{ listClients }, { hostKey, nextHostKey }] = await Promise.all([import("./link-keys.ts"), import("./host-key.ts")]);
  const known = hostKeyPrint(coreDir);
  const next = nextHostKey(coreDir, clock);
  return {
    schema_version: "clio-relay.link-keys.v1",
    host_key: known === null ? null : await printOf(hostKey(coreDir, "", clock)),
    next_host_key: next === null ? null : { fingerprint: next.fingerprint, since: next.since, switch_at: next.switch_at },
    keys: listClients(coreDir, clock),
  };
}

async function printOf(privateKey: string): Promise<string> {
  const [{ fingerprintOf }, { publicKeyOf }] = await Promise.all([
    import("../../transport/session/keys.ts"),
    import("../../transport/session/key-pair.ts"),
  ]);
  return fingerprintOf(publicKeyOf(privateKey));
}

/** The keys of a worker that runs. Nothing of the protocol is loaded before it is needed. */
export function keyService({ cluster, coreDir, comment, clock, sessions, relayHost }: KeyServiceOptions): KeyServices {
  return {
    async list() {
      const found = await keysOf(coreDir, clock);
      const counts = sessions.counts();
      return { ...found, keys: found.keys.map((key) => ({ ...key, sessions: counts.get(key.fingerprint) ?? 0 })) };
    },
    async revoke(key) {
      const { revokeClient } = await import("./link-keys.ts");
      const before = sessions.counts();
      const revoked = await revokeClient(coreDir, key, clock);
      return { revoked: { ...revoked, sessions: before.get(revoked.fingerprint) ?? 0 }, ended_sessions: sessions.enforce() };
    },
    async rotate(overlapSeconds) {
      const { rotateHostKey } = await import("./host-key.ts");
      const rotation = await rotateHostKey(coreDir, comment, overlapSeconds, clock);
      await sessions.identityMayHaveChanged();
      return rotation;
    },
    async pair(wanted, ttlSeconds) {
      const { hostKey } = await import("./host-key.ts");
      const address = meetingAt(cluster, wanted, relayHost());
      return (await sessions.pairings()).make({ cluster, hostKey: hostKey(coreDir, comment, clock), relayHost: address, ttlSeconds });
    },
  };
}

/** @throws RelayError state_conflict */
function meetingAt(cluster: string, wanted: string | null, present: string | null): string {
  const same = wanted === null || (present !== null && parseRelayUrl(wanted).text === parseRelayUrl(present).text);
  if (present !== null && same) return present;
  throw new RelayError(
    "state_conflict",
    present === null ? `the worker of ${cluster} is at no relay-host` : `the worker of ${cluster} is at ${present}, not at ${wanted}`,
    { cluster, relay_host: present },
    present === null
      ? "on its own host, clio-relay worker pair --relay-host URL --relay-token-file FILE says what moves it"
      : `for a code at ${present}, leave --relay-host out; on its own host, the same with --relay-host says what moves it`,
  );
}
