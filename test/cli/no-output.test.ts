import { describe, expect, test } from "bun:test";
import path from "node:path";
import { SourceRelay } from "./source-relay.ts";

const MAIN = path.resolve(import.meta.dir, "../../src/main.ts");

async function shell(script: string, relay: SourceRelay) {
  const child = Bun.spawn(["sh", "-c", script, process.execPath, MAIN], {
    env: relay.environment,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { stdout, stderr, code };
}

describe.each(["--version", "-V", "version", "--help"])("%s", (word) => {
  test("on a full standard output fails with one line", async () => {
    await using relay = new SourceRelay();
    const { code, stderr } = await shell(`"$0" "$1" ${word} > /dev/full`, relay);
    expect(code).not.toBe(0);
    expect(stderr.split("\n").filter((line) => line.startsWith("error: "))).toHaveLength(1);
    expect(stderr).not.toContain("src/");
    if (!word.startsWith("-") || word === "--help")
      expect(stderr).toBe("error: standard output cannot be written to: no space is left on its device [local_file_unusable]\n");
    if (word.startsWith("-") && word !== "--help") expect([code, stderr.trimEnd().split("\n").length]).toEqual([1, 1]);
  });

  test("into a pipe that nobody reads is nothing wrong", async () => {
    await using relay = new SourceRelay();
    expect(await shell(`{ "$0" "$1" ${word}; echo "code $?" >&2; } | :`, relay)).toEqual({ stdout: "", stderr: "code 0\n", code: 0 });
  });

  test("with standard error full too fails all the same", async () => {
    await using relay = new SourceRelay();
    expect((await shell(`"$0" "$1" ${word} > /dev/full 2>&1`, relay)).code).not.toBe(0);
  });

  // Bun opens /dev/null in place of descriptors that are closed.
  test("on a closed standard output says nothing", async () => {
    await using relay = new SourceRelay();
    expect(await shell(`"$0" "$1" ${word} >&-`, relay)).toEqual({ stdout: "", stderr: "", code: 0 });
  });
});
