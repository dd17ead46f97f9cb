import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { COMMANDS } from "../../src/cli/commands.ts";
import { describeWith } from "../runner/components.ts";

const PAGE = path.resolve(import.meta.dir, "../../docs/clio-relay.1");

describeWith("mandoc", "the manual page", () => {
  test("has no fault that mandoc knows", () => {
    const { status, stdout, stderr } = spawnSync("mandoc", ["-Tlint", "-Wwarning", PAGE], { encoding: "utf8" });
    expect([status, stdout, stderr]).toEqual([0, "", ""]);
  });

  test("says of each verb, option and example what help says, in characters that can be copied", async () => {
    const { stdout } = spawnSync("mandoc", ["-Tutf8", "-Owidth=1000", PAGE], { encoding: "utf8", maxBuffer: 16 * 1024 * 1024 });
    // Bold and italic are overstruck.
    const text = stdout.replaceAll(/.(?!\n)\p{Cc}/gu, "");
    for (const [noun, verbs] of Object.entries(COMMANDS)) {
      for (const [name, command] of Object.entries(verbs)) {
        if (command.alias) continue;
        const { verb } = await command.load();
        expect(text).toContain(`\n   ${`${noun} ${name}`.trim()}\n`);
        for (const [line] of verb.examples) expect(text).toContain(`clio-relay ${line}\n`);
        for (const [option, flag] of Object.entries(verb.flags))
          if (flag.kind !== "ignored" && flag.kind !== "refused") expect(text).toContain(`--${option}`);
      }
    }
  });
});
