import { EXIT } from "../../domain/errors.ts";
import type { LinkClient } from "../../domain/link-keys.ts";
import { CLUSTER } from "../cluster-option.ts";
import { agoText } from "../print/quantities.ts";
import { styleFor } from "../print/style.ts";
import { printJson, printTable } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { keyDoor } from "./key-door.ts";

export const verb = defineVerb({
  summary: "List the keys of desktops that a worker lets in, and its own",
  details:
    "For sessions that the worker answers itself: modes relay and frp, and bridges. On the cluster it works with and without a running worker; on a desktop it goes over the link.",
  positionals: {},
  flags: { cluster: CLUSTER },
  examples: [
    ["worker keys list --cluster my-cluster", "who is let in, since when, until when, and when they were last there"],
    ["worker keys list --json", "the same, for a program"],
  ],
  async run({ flags, io, json, relay }) {
    const { keys } = await keyDoor(io, relay, flags.cluster);
    const found = await keys.list();
    if (json) {
      await printJson(io.stdout, found);
      return EXIT.ok;
    }
    const now = io.clock.now();
    const header = ["KEY", "COMMENT", "BY", { spare: "ADDED" }, "UNTIL", { spare: "LAST USED" }, "SESSIONS"] as const;
    const rows = found.keys.map((key) => rowOf(key, now));
    if (rows.length > 0) await printTable(io.stdout, styleFor(io.stdout, io.env), header, rows);
    await io.stderr.write(`the worker's own key: ${found.host_key ?? "none was made yet"}\n`);
    const next = found.next_host_key;
    if (next !== null) await io.stderr.write(`from ${next.switch_at} on: ${next.fingerprint}\n`);
    return EXIT.ok;
  },
});

const rowOf = ({ fingerprint, comment, by, added_at, expires_at, expired, last_used_at, sessions }: LinkClient, now: number) =>
  [
    fingerprint,
    comment === "" ? null : comment,
    by,
    added_at,
    expired ? "expired" : expires_at,
    last_used_at === null ? null : agoText(last_used_at, now),
    sessions,
  ] as const;
