import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { crateFiles, METADATA_FILE, PROV_FILE } from "../../../src/api/provenance/crate-files.ts";
import type { History } from "../../../src/api/provenance/history.ts";
import { provDocument } from "../../../src/api/provenance/prov-json.ts";
import { type CrateWords, crateMetadata, scriptOf } from "../../../src/api/provenance/ro-crate.ts";
import { artifact, commandJob, history, transform } from "../../api/history.ts";
import { readProv, validateCrates } from "../../rigs/ro-crate/validator.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { type TwoJobs, twoJobs } from "./two-jobs.ts";

const NOBODY: CrateWords = { license: null, author: null };
const MiB64 = 64 * 1024 * 1024;
const PUBLISHED = "2026-02-03T05:00:00.000Z";

/** Unpacks an archive below a directory and returns the names that it has. */
function unzip(archive: string, into: string): string[] {
  const code =
    "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1]) as z:\n    z.extractall(sys.argv[2])\n    print('\\n'.join(z.namelist()))";
  const python = spawnSync("python3", ["-c", code, archive, into], { encoding: "utf8" });
  expect([python.status, python.stderr]).toEqual([0, ""]);
  return python.stdout.trimEnd().split("\n");
}

describeWith(["ro-crate", "python3"], "a crate of a real job", () => {
  let jobs: TwoJobs;
  beforeAll(async () => {
    jobs = await twoJobs();
  });
  afterAll(() => jobs[Symbol.asyncDispose]());

  test("holds what ran, what it used and what it left, and validators take it", async () => {
    const { relay, consumer } = jobs;
    const file = await relay.ok(
      "job",
      "provenance",
      consumer,
      "--format",
      "ro-crate",
      "-o",
      "crate.zip",
      "--license",
      "MIT",
      "--author",
      "Ada Lovelace",
    );
    const into = path.join(relay.directory, "crate");
    const names = unzip(file, into);
    expect(names.toSorted()).toEqual(
      [
        "ro-crate-metadata.json",
        "inputs/mesh.dat",
        "logs/stderr.log",
        "logs/stdout.log",
        "outputs/field.bin",
        "outputs/result one.txt",
        "records/log-capture.json",
        "records/prov.json",
        "records/provenance.json",
        "script/solve.sh",
      ].toSorted(),
    );
    expect(fs.readFileSync(path.join(into, "inputs/mesh.dat"), "utf8")).toBe("a mesh");
    expect(fs.readFileSync(path.join(into, "outputs/result one.txt"), "utf8")).toBe("solved");
    expect(fs.readFileSync(path.join(into, "outputs/field.bin")).equals(Buffer.alloc(300_000))).toBe(true);
    expect(fs.readFileSync(path.join(into, "script/solve.sh"), "utf8")).toStartWith("#!/bin/sh\nprintf");
    const found = await validateCrates([file]);
    expect(found[file]!.filter(({ severity }) => severity === "REQUIRED")).toEqual([]);
    expect(await readProv([path.join(into, "records/prov.json")])).toMatchObject({
      [path.join(into, "records/prov.json")]: { usage: 1 },
    });
  });

  test("names what is not put into it", async () => {
    const { relay, consumer } = jobs;
    const made = await relay.run(["job", "provenance", consumer, "--format", "ro-crate", "-o", "named.zip", "--include", "100KiB"]);
    expect([made.code, made.stderr]).toEqual([0, "notice: 1 of 7 files are named, and not in the crate (--include)\n"]);
    const into = path.join(relay.directory, "named");
    expect(unzip(path.join(relay.directory, "named.zip"), into)).not.toContain("outputs/field.bin");
    const { "@graph": graph } = JSON.parse(fs.readFileSync(path.join(into, "ro-crate-metadata.json"), "utf8")) as {
      "@graph": { name?: string }[];
    };
    expect(graph.find(({ name }) => name === "field.bin")).toMatchObject({ contentSize: "300000" });
  });

  test("is not made of a file that was altered by one byte", async () => {
    const { relay, producer, consumer, mesh } = jobs;
    const spool = path.join(relay.home, "spool");
    const stored = [...new Bun.Glob(`*/${producer}/artifacts/${mesh.artifact_id}`).scanSync({ cwd: spool, absolute: true })];
    expect(stored).toHaveLength(1);
    fs.chmodSync(stored[0]!, 0o600);
    const before = fs.readFileSync(stored[0]!);
    fs.writeFileSync(stored[0]!, "a mash");
    const refused = await relay.run(["job", "provenance", consumer, "--format", "ro-crate", "-o", "altered.zip"]);
    fs.writeFileSync(stored[0]!, before);
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toMatch(/"mesh.dat" cannot be put into the crate: .*\[artifact_changed\]\nhint: --include none/);
    expect(fs.readdirSync(relay.directory).filter((name) => name.includes("altered"))).toEqual([]);
  });
});

/** Lay out a crate as it is unpacked; files have as many bytes as their records say, or none where they are large. */
function unpacked(directory: string, h: History, includeUpTo: number, words: CrateWords = NOBODY): string {
  const files = crateFiles(h, includeUpTo);
  const put = (name: string, content: string | Uint8Array): void => {
    fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    fs.writeFileSync(path.join(directory, name), content);
  };
  put(METADATA_FILE, crateMetadata(h, files, words, PUBLISHED));
  put(PROV_FILE, JSON.stringify(provDocument(h)));
  const script = scriptOf(h.job);
  if (script !== null) put(script.path, script.text);
  for (const file of files) if (file.path !== null) put(file.path, new Uint8Array(file.artifact.size_bytes));
  return directory;
}

describeWith("ro-crate", "to other programs", () => {
  const script = commandJob({
    state: "failed",
    spec: { ...commandJob().spec, argv: undefined, script: "#!/bin/sh\nexit 3\n" } as never,
    metadata: { script_name: "prepare it.sh", title: "Prepare" },
    outcome: { reason: "exit_nonzero", exit_code: 3, signal: null, message: "it exited with 3", residual: [] },
  });
  const canceled = commandJob({
    state: "canceled",
    attempts: 0,
    outcome: { reason: "canceled", exit_code: null, signal: null, message: "canceled in the queue", residual: [] },
  });
  const VARIANTS: readonly (readonly [name: string, history: History, includeUpTo: number, words: CrateWords])[] = [
    ["a job with everything", history({ transform }), MiB64, { license: "CC-BY-4.0", author: "Ada Lovelace" }],
    ["a crate that names all files", history(), -1, NOBODY],
    [
      "a script that failed",
      history({
        job: script,
        transform: { ...transform, environment: { tier: "declared", description: "as on my machine", platform: "linux" } },
      }),
      MiB64,
      NOBODY,
    ],
    ["a job that never ran", history({ job: canceled, attempts: [], artifacts: [], inputs: [] }), MiB64, NOBODY],
    [
      "odd names",
      history({ artifacts: ["it's é ☃.bin", "a b/c%d#e?.txt", "../x", "\ud800"].map((name, i) => artifact(`artifact_${i}`, name)) }),
      MiB64,
      NOBODY,
    ],
  ];

  test("crates are RO-Crate 1.1 and Process Run Crate 0.5, and their history is PROV", async () => {
    using base = temporaryDirectory();
    const crates = VARIANTS.map(([, h, includeUpTo, words], at) => unpacked(path.join(base.path, String(at)), h, includeUpTo, words));
    const found = await validateCrates(crates);
    for (const [at, [name]] of VARIANTS.entries()) {
      const required = found[crates[at]!]!.filter(({ severity }) => severity === "REQUIRED");
      expect([name, required]).toEqual([name, []]);
    }
    const read = await readProv(crates.map((crate) => path.join(crate, PROV_FILE)));
    expect(read[path.join(crates[0]!, PROV_FILE)]).toEqual({ activity: 2, agent: 1, entity: 7, usage: 2, generation: 5, association: 1 });
  });
});
