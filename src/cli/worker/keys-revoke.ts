import { EXIT } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { printJson } from "../print/table.ts";
import { text } from "../values.ts";
import { defineVerb } from "../verb.ts";
import { keyDoor } from "./key-door.ts";
import { clusterElsewhere } from "./local-worker.ts";

export const verb = defineVerb({
  summary: "Let a desktop's key in no longer, and end its sessions",
  details:
    "KEY is a fingerprint as worker keys list shows it, or a beginning of it that no other has. Jobs go on. The desktop comes in again by cluster bootstrap or a new pairing code.",
  positionals: { key: { ...text("KEY"), suggests: "key", whenMissing: "clio-relay worker keys list shows who is let in" } },
  flags: { cluster: CLUSTER },
  examples: [["worker keys revoke --cluster my-cluster SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8", "shut a lost laptop out"]],
  async takesAway({ flags, args, io, relay }) {
    const elsewhere = await clusterElsewhere(io, relay, flags.cluster);
    const own = elsewhere !== null && (await isOwn(relay.paths.configDir, args.key));
    const whose = own ? `the key of this desktop, which then cannot reach ${elsewhere} by it any more` : `the key ${args.key.slice(0, 60)}`;
    return `this lets a desktop in no longer and ends its sessions: ${whose}`;
  },
  async run({ flags, args, io, json, relay }) {
    const { keys } = await keyDoor(io, relay, flags.cluster);
    const done = await keys.revoke(args.key);
    if (json) await printJson(io.stdout, done);
    else await io.stdout.write(`revoked ${done.revoked.fingerprint}\n`);
    if (!json && done.ended_sessions !== null) await io.stderr.write(`sessions that were ended: ${done.ended_sessions}\n`);
    return EXIT.ok;
  },
});

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
