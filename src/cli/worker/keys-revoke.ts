import { type ErrorCode, EXIT, isRelayError } from "../../domain/errors.ts";
import type { Revoked } from "../../domain/link-keys.ts";
import { CLUSTER } from "../cluster-option.ts";
import { printJson } from "../print/table.ts";
import { text } from "../values.ts";
import { defineVerb } from "../verb.ts";
import { type KeyDoor, keyDoor } from "./key-door.ts";

/** What a worker says to a desktop whose key it does not let in: at a relay-host, and in its own session. */
const SHUT_OUT: ReadonlySet<ErrorCode> = new Set(["join_refused", "authentication_failed"]);

export const verb = defineVerb({
  summary: "Let a desktop's key in no longer, and end its sessions",
  details:
    "KEY is a fingerprint as worker keys list shows it, or a beginning of it that no other has. Jobs go on. The desktop comes in again by cluster bootstrap or a new pairing code.",
  positionals: { key: { ...text("KEY"), suggests: "key", whenMissing: "clio-relay worker keys list shows who is let in" } },
  flags: { cluster: CLUSTER },
  examples: [["worker keys revoke --cluster my-cluster SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8", "shut a lost laptop out"]],
  async takesAway({ flags, args, io, relay }) {
    const { cluster, elsewhere } = await keyDoor(io, relay, flags.cluster);
    const own = elsewhere && (await isOwn(relay.paths.configDir, args.key));
    const whose = own ? `the key of this desktop, which then cannot reach ${cluster} by it any more` : `the key ${args.key.slice(0, 60)}`;
    return `this lets a desktop in no longer and ends its sessions: ${whose}`;
  },
  async run({ flags, args, io, json, relay }) {
    const { keys, elsewhere } = await keyDoor(io, relay, flags.cluster);
    const own = elsewhere && (await isOwn(relay.paths.configDir, args.key));
    const done = await (own ? revokeOwn(keys, args.key) : keys.revoke(args.key));
    if (json) await printJson(io.stdout, done);
    else await io.stdout.write(`revoked ${done.revoked.fingerprint}\n`);
    if (!json && done.ended_sessions !== null) await io.stderr.write(`sessions that were ended: ${done.ended_sessions}\n`);
    return EXIT.ok;
  },
});

/**
 * This desktop's own key takes the link with it that the answer would come by: that it is let in no longer is then the answer.
 *
 * @throws RelayError as the request has it, where that cannot be told
 */
async function revokeOwn(keys: KeyDoor["keys"], named: string): Promise<Revoked> {
  const wanted = named.replace(/^SHA256:/i, "");
  const known = (await keys.list()).keys.filter(({ fingerprint }) => fingerprint.slice(7).startsWith(wanted));
  try {
    return await keys.revoke(named);
  } catch (error) {
    const [key, ...others] = known;
    if (!isRelayError(error, "link_down") || key === undefined || others.length > 0) throw error;
    const now = await keys.list().then(
      () => null,
      (refusal: unknown) => refusal,
    );
    if (!isRelayError(now) || !SHUT_OUT.has(now.code)) throw error;
    return { revoked: key, ended_sessions: key.sessions };
  }
}

async function isOwn(configDir: string, named: string): Promise<boolean> {
  const [{ desktopKey }, { fingerprintOf }, { publicKeyOf }] = await Promise.all([
    import("../../roles/desktop/desktop-key.ts"),
    import("../../transport/session/keys.ts"),
    import("../../transport/session/key-pair.ts"),
  ]);
  return fingerprintOf(publicKeyOf(desktopKey(configDir)))
    .slice(7)
    .startsWith(named.replace(/^SHA256:/i, ""));
}
