import { EXIT, RelayError } from "../../domain/errors.ts";
import { CLUSTER } from "../cluster-option.ts";
import { printJson } from "../print/table.ts";
import { duration } from "../values.ts";
import { defineVerb, option, toggle } from "../verb.ts";
import { keyDoor } from "./key-door.ts";

const WEEK_SECONDS = 7 * 86_400;

export const verb = defineVerb({
  summary: "Give a worker another key of its own",
  details:
    "The new key is announced at once, to desktops that are connected or come meanwhile, and answers when the overlap is over. A desktop that was not there is refused then, as host_key_changed, until cluster bootstrap or a new pairing code. " +
    "--now is for a key that somebody else may have: nothing that it announces can be trusted.",
  positionals: {},
  flags: {
    cluster: CLUSTER,
    overlap: option(duration, "How long desktops have to learn the new key (default 7d)"),
    now: toggle("The new key answers at once"),
  },
  examples: [
    ["worker keys rotate --cluster my-cluster", "a new key from next week on"],
    ["worker keys rotate --cluster my-cluster --now", "at once; desktops need a bootstrap or a code"],
  ],
  async takesAway({ flags, io, relay }) {
    if (!flags.now || flags.overlap !== undefined) return null;
    await keyDoor(io, relay, flags.cluster);
    return "this shuts out every desktop until cluster bootstrap or a new pairing code: none knows the new key";
  },
  async run({ flags, io, json, relay }) {
    if (flags.now && flags.overlap !== undefined) throw new RelayError("usage", "--now and --overlap exclude each other");
    const { keys, cluster } = await keyDoor(io, relay, flags.cluster);
    const done = await keys.rotate(flags.now ? 0 : Math.ceil(flags.overlap ?? WEEK_SECONDS));
    if (json) {
      await printJson(io.stdout, done);
      return EXIT.ok;
    }
    const next = done.next_host_key;
    const what =
      next === null
        ? `the worker of ${cluster} has the key ${done.host_key}, in place of ${done.previous}`
        : `the worker of ${cluster} has the key ${next.fingerprint} from ${next.switch_at} on${done.state === "pending" ? "; that was so before, and nothing was changed" : ""}`;
    await io.stdout.write(`${what}\n`);
    return EXIT.ok;
  },
});
