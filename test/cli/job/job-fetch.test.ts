import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { placeBelow } from "../../../src/cli/job/place-below.ts";
import { RelayError } from "../../../src/domain/errors.ts";
import { type SourceRelay, withWorker } from "../source-relay.ts";

let relay: SourceRelay;
let id: string;
beforeAll(async () => {
  relay = await withWorker();
  fs.mkdirSync(path.join(relay.directory, "work"));
  // Its first attempt leaves a file, too, and fails.
  const script =
    "mkdir -p out/deep; echo $CLIO_RELAY_ATTEMPT | sed 's/.*[^0-9]//' > out/n; echo deep > out/deep/é; [ -e again ] || { touch again; exit 1; }";
  id = (
    await relay.run(["job", "submit", "--wait", "--workdir", "work", "--retries", "1", "--output", "out/**", "--", "sh", "-c", script])
  ).stdout.trim();
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

const at = (...parts: string[]) => path.join(relay.directory, ...parts);
const read = (...parts: string[]) => fs.readFileSync(at(...parts), "utf8");

test("all files come by their names, and what is there is not written over unless that is asked for", async () => {
  const paths = [at("results", "out", "deep", "é"), at("results", "out", "n")];
  const first = await relay.run(["job", "fetch", id, "-o", "results"]);
  expect(first.stderr).toBe("notice: 2 of earlier attempts are left out: job list-artifacts shows them\n");
  expect([first.code, first.stdout.trim().split("\n").sort()]).toEqual([0, paths]);
  expect([read("results/out/deep/é"), read("results/out/n")]).toEqual(["deep\n", "2\n"]);

  fs.rmSync(at("results/out/n"));
  const again = await relay.json<{ directory: string; files: { name: string; path: string; fetched: boolean }[] }>(
    "job",
    "fetch",
    "last",
    "-o",
    "results",
  );
  expect(again.directory).toBe(at("results"));
  expect(again.files.map(({ name, fetched }) => [name, fetched]).sort()).toEqual([
    ["out/deep/é", false],
    ["out/n", true],
  ]);

  fs.rmSync(at("results/out/deep/é"));
  fs.writeFileSync(at("results/out/n"), "3\n");
  const refused = await relay.run(["job", "fetch", id, "-o", "results"]);
  expect([refused.code, refused.stdout]).toEqual([7, ""]);
  expect(refused.stderr).toContain(
    `error: another file is there already: ${at("results", "out", "n")} [state_conflict]\nhint: -o DIR, or --overwrite\n`,
  );
  expect([read("results/out/n"), fs.existsSync(at("results/out/deep/é"))]).toEqual(["3\n", false]);
  expect((await relay.run(["job", "fetch", id, "-o", "results", "--overwrite"])).code).toBe(0);
  expect(read("results/out/n")).toBe("2\n");
});

test("nothing is written through a link, or in place of what is no file", async () => {
  fs.mkdirSync(at("outside"));
  fs.mkdirSync(at("trap"));
  fs.symlinkSync(at("outside"), at("trap", "out"));
  const link = await relay.run(["job", "fetch", id, "-o", "trap"]);
  expect([link.code, link.stderr]).toEqual([1, expect.stringContaining("[path_escapes_root]")]);
  expect(fs.readdirSync(at("outside"))).toEqual([]);
  fs.mkdirSync(at("odd", "out", "n"), { recursive: true });
  const odd = await relay.run(["job", "fetch", id, "-o", "odd", "--overwrite"]);
  fs.writeFileSync(path.join(relay.directory, "plain"), "");
  for (const directory of ["plain", "plain/below"]) {
    const plain = await relay.run(["job", "fetch", id, "-o", directory]);
    expect([plain.code, plain.stderr]).toEqual([
      1,
      expect.stringContaining(`error: -o ${directory}: that is not a directory [local_file_unusable]\n`),
    ]);
  }
  expect([odd.code, odd.stderr]).toEqual([1, expect.stringContaining("is no regular file [local_file_unusable]")]);
  expect(fs.existsSync(at("odd", "out", "deep"))).toBe(false);
});

test("one file by the name of the job and its own", async () => {
  expect(await relay.ok("job", "read-artifact", id, "out/n", "-o", "-")).toBe("2");
  expect(await relay.json("job", "read-artifact", id, "out/n")).toMatchObject({ name: "out/n", job_id: id });
  const none = await relay.run(["job", "read-artifact", id, "n"]);
  expect([none.code, none.stderr]).toEqual([
    3,
    `error: ${id} left no file "n" [artifact_not_found]\nhint: clio-relay job list-artifacts ${id}\n`,
  ]);
  const which = await relay.run(["job", "read-artifact", id]);
  expect([which.code, which.stderr]).toEqual([
    2,
    `error: which file of ${id}? [usage]\nhint: clio-relay job read-artifact ${id} NAME, or job fetch ${id} for all\n`,
  ]);
  const empty = await relay.submit("--wait", "--", "true");
  expect(await relay.run(["job", "fetch", empty])).toEqual({ code: 0, stdout: "", stderr: `notice: ${empty} left no files\n` });
});

test("no name leads out of the directory", () => {
  const code = (name: string, platform: NodeJS.Platform = "linux") => {
    try {
      return placeBelow("/nowhere/at/all", name, platform);
    } catch (error) {
      return error instanceof RelayError ? error.code : error;
    }
  };
  expect(code("a/b c/..d")).toBe("/nowhere/at/all/a/b c/..d");
  for (const name of ["../x", "a/../../x", "/etc/passwd", "a//b", "a/", "", ".", "a/./b", "a\0b"])
    expect([name, code(name)]).toEqual([name, "path_escapes_root"]);
  for (const name of ["a\\..\\b", "C:x", "nul", "a/CON.txt", "dot.", "a:stream"]) {
    expect([name, code(name, "win32")]).toEqual([name, "path_escapes_root"]);
    expect(code(name)).not.toBe("path_escapes_root");
  }
});

test("a file of an earlier attempt that is in the way of a later one's is left out", async () => {
  const script = "[ -e once ] || { touch once; echo file > x; exit 1; }; rm x; mkdir x; echo later > x/y";
  const given = ["--workdir", "work", "--retries", "1", "--output", "x", "--output", "x/*"];
  const { stdout } = await relay.run(["job", "submit", "--wait", ...given, "--", "sh", "-c", script]);
  const fetched = await relay.run(["job", "fetch", stdout.trim(), "-o", "side"]);
  expect(fetched).toMatchObject({
    code: 0,
    stdout: `${at("side", "x", "y")}\n`,
    stderr: "notice: 1 of earlier attempts are left out: job list-artifacts shows them\n",
  });
  expect(read("side/x/y")).toBe("later\n");
});
