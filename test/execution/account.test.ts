import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { account, parsePasswdLine } from "../../src/execution/account.ts";

describe("a user's account", () => {
  test("is what the password database says, whatever the environment says", () => {
    const { stdout } = spawnSync("getent", ["passwd", String(process.getuid?.())], { encoding: "utf8" });
    const [name, , , , , home, shell] = stdout.trim().split(":");
    expect(account(process.getuid!())).toEqual({ name: name!, home: home!, shell: shell || "/bin/sh" });
  });

  test("of a user without an entry has a number for a name", () => {
    expect(account(3_999_999_999)).toEqual({ name: "3999999999", home: "/", shell: "/bin/sh" });
  });

  test.each([
    ["u:x:1000:1000:U, Room 1:/home/u:/bin/zsh", { name: "u", home: "/home/u", shell: "/bin/zsh" }],
    ["u:x:1000:1000::/home/u:", { name: "u", home: "/home/u", shell: "/bin/sh" }],
    ["u:x:1001:1000::/home/u:/bin/sh", null],
    ["u:x:1000", null],
    [":x:1000:1000::/home/u:/bin/sh", null],
    ["", null],
  ])("line %p", (line, expected) => {
    expect(parsePasswdLine(line, 1000)).toEqual(expected);
  });
});
