import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type Paths, resolvePaths } from "../../src/config/paths.ts";
import { checkRunDirectory, prepareRunDirectory } from "../../src/config/run-directory.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { environment } from "./environments.ts";

const directory = temporaryDirectories();

/** Paths of an installation whose sockets lie in a directory that everybody may write to, as /tmp is. */
function inPublicPlace(): { paths: Paths; env: ReturnType<typeof environment>; own: string } {
  const temporary = directory();
  fs.chmodSync(temporary, 0o1777);
  const env = environment({ CLIO_RELAY_HOME: `/nowhere/${"x".repeat(100)}` }, { temporary });
  const paths = resolvePaths(env);
  return { paths, env, own: path.dirname(paths.runDir) };
}

const mode = (file: string): number => fs.statSync(file).mode & 0o777;

test("it is made with all its parents, for the user alone", () => {
  const home = path.join(directory(), "not", "yet");
  const env = environment({ CLIO_RELAY_HOME: home });
  const paths = resolvePaths(env);
  prepareRunDirectory(paths, env);
  prepareRunDirectory(paths, env);
  expect(paths.runDir).toBe(path.join(home, "run"));
  expect(mode(paths.runDir)).toBe(0o700);
});

describe("in a public place", () => {
  test("both directories are private", () => {
    const { paths, env, own } = inPublicPlace();
    prepareRunDirectory(paths, env);
    expect([mode(own), mode(paths.runDir)]).toEqual([0o700, 0o700]);
  });

  test("looking makes nothing", () => {
    const { paths, env, own } = inPublicPlace();
    checkRunDirectory(paths, env);
    expect(fs.existsSync(own)).toBe(false);
  });

  test.each<[string, (own: string, other: string) => void, RegExp]>([
    ["a link", (own, other) => fs.symlinkSync(other, own), /is not a directory/],
    ["a link to nowhere", (own) => fs.symlinkSync("/nowhere/at/all", own), /is not a directory/],
    ["a file", (own) => fs.writeFileSync(own, ""), /is not a directory/],
    [
      "open to others",
      (own) => {
        fs.mkdirSync(own);
        fs.chmodSync(own, 0o777);
      },
      /is open to other users/,
    ],
  ])("%s in its place is refused, by who makes it and by who only connects", (_what, spoil, message) => {
    const { paths, env, own } = inPublicPlace();
    const other = directory();
    spoil(own, other);
    for (const action of [prepareRunDirectory, checkRunDirectory]) {
      let failure: unknown;
      try {
        action(paths, env);
      } catch (error) {
        failure = error;
      }
      expect(failure).toMatchObject({ code: "resource_ownership_refused", message: expect.stringMatching(message), data: { path: own } });
    }
    expect(fs.readdirSync(other)).toEqual([]);
  });
});

describeWith("root", "a directory of somebody else", () => {
  test("is refused, naming the owner", () => {
    const { paths, env, own } = inPublicPlace();
    fs.mkdirSync(own, { mode: 0o700 });
    fs.chownSync(own, 65_534, 65_534);
    expect(() => prepareRunDirectory(paths, env)).toThrow(/is owned by user 65534, not by you/);
    expect(() => checkRunDirectory(paths, env)).toThrow(/is owned by user 65534, not by you/);
  });
});
