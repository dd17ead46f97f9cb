import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { InputFile, openAndCompare } from "../../../src/api/staging/input-file.ts";
import { type ErrorCode, isRelayError } from "../../../src/domain/errors.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { requireComponent } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const directory = temporaryDirectories();

/** A root with a file of its own, and a neighbour that is none of its business. */
function place(): { root: string; outside: string } {
  const base = directory();
  const root = path.join(base, "root");
  fs.mkdirSync(path.join(root, "sub"), { recursive: true });
  fs.writeFileSync(path.join(root, "sub", "in.lj"), "units lj\n");
  fs.writeFileSync(path.join(base, "secret"), "secret");
  return { root, outside: path.join(base, "secret") };
}

const at = (root: string, file: string, platform: NodeJS.Platform = "linux") =>
  InputFile.at({ where: "--input deck=x", path: path.resolve(root, file), root, platform });

async function refused(promise: Promise<unknown>, code: ErrorCode, words: string): Promise<void> {
  const failure = await promise.then(
    () => "nothing was refused",
    (error: unknown) => error,
  );
  expect(isRelayError(failure) ? failure.code : failure).toBe(code);
  expect((failure as Error).message).toContain(words);
}

test.skipIf(!requireComponent("linux"))("a file that has more than the system says is no empty one", async () => {
  const file = await at("/", "/proc/self/status");
  expect(file.size).toBe(0);
  await refused(
    file.digest(() => undefined),
    "local_file_unusable",
    "more bytes than the system says",
  );
});

describe.each(["linux", "darwin"] as const)("on %s", (platform) => {
  test("a file below the root is read as it is, through links that stay below it", async () => {
    const { root } = place();
    fs.symlinkSync("sub", path.join(root, "link"));
    fs.symlinkSync("link/in.lj", path.join(root, "latest.lj"));
    for (const name of ["sub/in.lj", "link/in.lj", "latest.lj", "sub/../sub/in.lj"]) {
      const file = await at(root, name, platform);
      expect(file.size).toBe(9);
      expect(await file.digest(() => undefined)).toBe(sha256Hex("units lj\n"));
      expect(Buffer.from(await file.bytes(sha256Hex("units lj\n"))).toString()).toBe("units lj\n");
    }
  });

  test("the root itself may be reached through a link", async () => {
    const { root } = place();
    const alias = path.join(directory(), "alias");
    fs.symlinkSync(root, alias);
    expect((await at(alias, "sub/in.lj", platform)).size).toBe(9);
  });

  test("what lies outside is refused, by whatever way it is named", async () => {
    const { root, outside } = place();
    fs.symlinkSync(outside, path.join(root, "absolute"));
    fs.symlinkSync("../secret", path.join(root, "relative"));
    fs.symlinkSync("..", path.join(root, "up"));
    for (const name of ["../secret", outside, "absolute", "relative", "up/secret", "sub/../../secret"])
      await refused(at(root, name, platform), "path_escapes_root", "outside of");
    for (const name of [".", "sub/..", root]) await refused(at(root, name, platform), "local_file_unusable", "it is no regular file");
  });

  test("a directory swapped for a link after the look leads nowhere", async () => {
    const { root } = place();
    const file = await at(root, "sub/in.lj", platform);
    fs.mkdirSync(path.join(path.dirname(root), "elsewhere"));
    fs.writeFileSync(path.join(path.dirname(root), "elsewhere", "in.lj"), "secrets!\n");
    fs.renameSync(path.join(root, "sub"), path.join(root, "old"));
    fs.symlinkSync("../elsewhere", path.join(root, "sub"));
    await refused(
      file.digest(() => undefined),
      "path_escapes_root",
      "leads out of",
    );
  });

  test("what is no regular file, or is not there, is refused in words", async () => {
    const { root } = place();
    Bun.spawnSync(["mkfifo", path.join(root, "pipe")]);
    fs.symlinkSync("nowhere", path.join(root, "dangling"));
    await refused(at(root, "none", platform), "local_file_missing", "--input deck=x: there is no such file");
    await refused(at(root, "dangling", platform), "local_file_missing", "there is no such file");
    await refused(at(root, "sub/in.lj/x", platform), "local_file_missing", "there is no such file");
    await refused(at(root, "sub", platform), "local_file_unusable", "no regular file");
    await refused(at(root, "pipe", platform), "local_file_unusable", "no regular file");
  });
});

describe("a file that changes is refused", () => {
  const changes: readonly (readonly [string, (file: string) => void])[] = [
    ["is written over", (file) => fs.writeFileSync(file, "units si\n")],
    ["grows", (file) => fs.appendFileSync(file, "more")],
    ["shrinks", (file) => fs.truncateSync(file, 3)],
    ["is replaced by one with the same bytes", (file) => replace(file, "units lj\n")],
    ["vanishes", (file) => fs.rmSync(file)],
  ];
  test.each(changes)("between look and reading: it %s", async (_, change) => {
    const { root } = place();
    const file = await at(root, "sub/in.lj");
    change(path.join(root, "sub", "in.lj"));
    await refused(
      file.digest(() => undefined),
      "input_changed",
      "--input deck=x: it changed",
    );
    await refused(file.open(), "input_changed", "it changed");
  });

  test.each(changes.slice(0, 3))("while it is read: it %s", async (_, change) => {
    const { root } = place();
    const file = await at(root, "sub/in.lj");
    const name = path.join(root, "sub", "in.lj");
    await refused(
      file.digest(() => change(name)),
      "input_changed",
      "it changed",
    );
    const again = await at(root, "sub/in.lj");
    await using open = await again.open();
    change(name);
    await refused(
      open.read(0, Buffer.alloc(again.size)).then(() => open.assertUnchanged()),
      "input_changed",
      "it changed",
    );
  });

  test("and so is one that kept its times, when its bytes are wanted", async () => {
    const { root } = place();
    const file = await at(root, "sub/in.lj");
    await refused(file.bytes(sha256Hex("something else")), "input_changed", "it changed");
  });
});

test("an opened file that its name no longer leads to is refused where directories cannot be held", async () => {
  const { root } = place();
  await refused(openAndCompare(root, "../secret"), "path_escapes_root", "another file");
  const { handle, stat } = await openAndCompare(root, "sub/in.lj");
  await handle.close();
  expect(stat.size).toBe(9n);
});

function replace(file: string, text: string): void {
  fs.writeFileSync(`${file}.new`, text);
  fs.renameSync(`${file}.new`, file);
}
