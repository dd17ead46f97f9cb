import { EXIT } from "../../domain/errors.ts";
import { sleep } from "../../lib/waiting/sleep.ts";
import { newBytes, tailOf } from "../../roles/desktop/log-file.ts";
import { interruptible } from "../follow/interrupt.ts";
import { jsonText, SafeStream } from "../print/safe-text.ts";
import { whole } from "../values.ts";
import { also, defineVerb, optionOr, toggle } from "../verb.ts";

const LOOK_MS = 250;

export const verb = defineVerb({
  summary: "Print the daemon's log",
  details: "Read from its file, so that it is there when the daemon is not.",
  positionals: {},
  flags: {
    follow: toggle("Go on with what is added", "f"),
    lines: also({ ...optionOr(whole(0, 100_000), 100, "Lines from the end"), short: "n" }, "tail"),
  },
  examples: [
    ["desktop logs", "the last hundred lines"],
    ["desktop logs -f --lines 10", "ten lines, and what follows"],
  ],
  async run({ flags, io, json, relay }) {
    const file = relay.paths.desktopLog;
    const { text, offset } = tailOf(file, flags.lines);
    const safe = new SafeStream();
    const show = (part: string): Promise<void> => io.stdout.write(json ? jsonLines(part) : io.stdout.isTerminal ? safe.push(part) : part);
    await show(text);
    if (!flags.follow) return EXIT.ok;
    return interruptible(
      io,
      () => null,
      async (signal) => {
        let at = offset;
        for (;;) {
          await sleep(LOOK_MS, signal);
          const added = newBytes(file, at);
          at = added.offset;
          if (added.bytes.length > 0) await show(Buffer.from(added.bytes).toString("utf8"));
        }
      },
    );
  },
});

/** `time level message` as one object a line; a line that is none of these is a message. */
const jsonLines = (text: string): string =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const match = /^(\S+Z) (info|warn|error) (.*)$/.exec(line);
      return `${jsonText(match === null ? { message: line } : { time: match[1], level: match[2], message: match[3] })}\n`;
    })
    .join("");
