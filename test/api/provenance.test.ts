import { describe, expect, test } from "bun:test";
import { type CrateFile, crateFiles } from "../../src/api/provenance/crate-files.ts";
import type { History } from "../../src/api/provenance/history.ts";
import { provDocument } from "../../src/api/provenance/prov-json.ts";
import { type CrateWords, crateMetadata } from "../../src/api/provenance/ro-crate.ts";
import { FilePaths } from "../../src/lib/files/file-paths.ts";
import { artifact, commandJob, history, transform } from "./history.ts";

const NOBODY: CrateWords = { license: null, author: null };
const MiB64 = 64 * 1024 * 1024;
const PUBLISHED = "2026-02-03T05:00:00.000Z";

type Entity = Record<string, unknown>;
function graphOf(h: History, files: readonly CrateFile[], words: CrateWords = NOBODY): Map<string, Entity> {
  const { "@graph": graph } = JSON.parse(crateMetadata(h, files, words, PUBLISHED)) as { "@graph": Entity[] };
  return new Map(graph.map((entity) => [String(entity["@id"]), entity]));
}

describe("PROV-JSON", () => {
  test("says what was used, by what, and what came of it", () => {
    const document = provDocument(history({ transform })) as Record<string, Record<string, Entity>>;
    expect(document["activity"]!["relay:job_c"]).toMatchObject({
      "prov:startTime": "2026-02-03T04:05:02.678Z",
      "prov:endTime": "2026-02-03T04:05:05.678Z",
      "prov:location": "node-7",
      "term:state": "succeeded",
      "term:exit_code": 0,
      "term:mechanism": "tool-schema",
    });
    expect(document["activity"]).toHaveProperty("relay:job_p");
    expect(document["entity"]!["relay:artifact_mesh"]).toMatchObject({ "prov:label": "mesh.h5", "term:sha256": "ab".repeat(32) });
    expect(document["used"]!["_:u1"]).toMatchObject({
      "prov:activity": "relay:job_c",
      "prov:entity": "relay:artifact_mesh",
      "prov:role": "mesh",
    });
    expect(document["entity"]!["relay:job_c.environment"]).toMatchObject({ "term:tier": "image-digest", "term:image": "solver:3" });
    const generated = Object.values(document["wasGeneratedBy"]!).map((g) => [g["prov:entity"], g["prov:activity"], g["term:attempt"]]);
    expect(generated).toEqual([
      ["relay:artifact_1", "relay:job_c", 1],
      ["relay:artifact_2", "relay:job_c", 2],
      ["relay:artifact_3", "relay:job_c", 1],
      ["relay:artifact_4", "relay:job_c", 1],
      ["relay:artifact_mesh", "relay:job_p", 1],
    ]);
  });

  test("of variables has the names only", () => {
    const text = JSON.stringify(provDocument(history()));
    expect(text).toContain("API_KEY");
    expect(text).not.toContain("hunter2");
  });
});

describe("the files of a crate", () => {
  test("are the last of each name, up to the size that was asked for", () => {
    const placed = (upTo: number) =>
      crateFiles(history(), upTo).map(({ artifact: { artifact_id }, role, path: place }) => [artifact_id, role, place]);
    expect(placed(MiB64)).toEqual([
      ["artifact_mesh", "object", "inputs/mesh.h5"],
      ["artifact_2", "result", "outputs/out/result.csv"],
      ["artifact_3", "result", null],
      ["artifact_4", "result", "logs/stdout.log"],
    ]);
    expect(placed(Number.MAX_SAFE_INTEGER)[2]).toEqual(["artifact_3", "result", "outputs/big.nc"]);
    expect(placed(-1).map(([, , place]) => place)).toEqual([null, null, null, null]);
  });

  test.each([
    ["../../etc/passwd", "outputs/artifact_9/passwd"],
    ["/etc/passwd", "outputs/artifact_9/passwd"],
    ["a/../b", "outputs/artifact_9/b"],
    ["a//b", "outputs/artifact_9/b"],
    ["..", "outputs/artifact_9"],
    ["a\\b", "outputs/artifact_9"],
    ["C:x", "outputs/artifact_9"],
    ["line\nbreak", "outputs/artifact_9"],
    ["trailing.", "outputs/artifact_9"],
    ["it's é ☃.bin", "outputs/it's é ☃.bin"],
  ])("%j lies at %s, and nowhere outside", (name, place) => {
    const h = history({ inputs: [], artifacts: [artifact("artifact_9", name)] });
    const files = crateFiles(h, MiB64);
    expect(files.map((file) => file.path)).toEqual([place]);
    const [id] = files.map((file) => file.path!.split("/").map(encodeURIComponent).join("/"));
    expect(graphOf(h, files).get(id!)).toMatchObject({ name, ...(place.endsWith(`/${name}`) ? {} : { alternateName: name }) });
  });

  test("have names that no file system takes for the same", () => {
    const artifacts = ["A.txt", "a.txt", "a.TXT"].map((name, i) => artifact(`artifact_${i}`, name));
    const places = crateFiles({ inputs: [], artifacts }, MiB64).map((file) => file.path);
    expect(places).toEqual(["outputs/artifact_0/A.txt", "outputs/artifact_1/a.txt", "outputs/a.TXT"]);
  });

  test("lie side by side, whatever earlier attempts have left in their way", () => {
    const names = ["a", "x/y/z", "artifact_4", "c", "a/b", "x", "..", "C/d"];
    const artifacts = names.map((name, i) => artifact(`artifact_${i}`, name));
    const placed = crateFiles({ inputs: [], artifacts }, MiB64).map((file) => file.path);
    expect(placed).toEqual([
      "outputs/artifact_0/a",
      "outputs/artifact_1/z",
      "outputs/artifact_4",
      "outputs/artifact_3/c",
      "outputs/a/b",
      "outputs/x",
      "outputs/artifact_6",
      "outputs/C/d",
    ]);
    const taken = new FilePaths((place) => place.toLowerCase());
    expect(placed.map((place) => taken.take(place!))).toEqual(placed.map(() => true));
  });

  test("find a place where somebody has given a file another one's id for a name", () => {
    const artifacts = ["..", "artifact_0"].map((name, i) => artifact(`artifact_${i}`, name));
    expect(crateFiles({ inputs: [], artifacts }, MiB64).map((file) => file.path)).toEqual(["outputs/artifact_0-2", "outputs/artifact_0"]);
    const own = [artifact("artifact_9", "prov.json", { kind: "provenance" })];
    expect(crateFiles({ inputs: [], artifacts: own }, MiB64).map((file) => file.path)).toEqual(["records/artifact_9/prov.json"]);
  });
});

describe("the description of a crate", () => {
  test("says what ran, on what, and what came of it", () => {
    const graph = graphOf(history(), crateFiles(history(), MiB64), {
      license: "CC-BY-4.0",
      author: "https://orcid.org/0000-0002-1825-0097",
    });
    expect(graph.get("#job_c")).toMatchObject({
      "@type": "CreateAction",
      startTime: "2026-02-03T04:05:02.678+00:00",
      endTime: "2026-02-03T04:05:05.678+00:00",
      instrument: { "@id": "#program" },
      object: { "@id": "inputs/mesh.h5" },
      result: [{ "@id": "outputs/out/result.csv" }, { "@id": "urn:clio-relay:artifact_3" }, { "@id": "logs/stdout.log" }],
      actionStatus: "http://schema.org/CompletedActionStatus",
      agent: { "@id": "https://orcid.org/0000-0002-1825-0097" },
    });
    expect(graph.get("#program")).toMatchObject({ "@type": "SoftwareApplication", name: "simulate" });
    expect(graph.get("urn:clio-relay:artifact_3")).toMatchObject({
      contentSize: "5000000000",
      sha256: "ab".repeat(32),
      contentUrl: "file:///scratch/big.nc",
    });
    expect(graph.get("outputs/out/result.csv")).toMatchObject({ encodingFormat: "text/csv", identifier: "urn:clio-relay:artifact_2" });
    expect(graph.get("./")).toMatchObject({ license: { "@id": "https://spdx.org/licenses/CC-BY-4.0" }, mentions: { "@id": "#job_c" } });
    expect(JSON.stringify([...graph])).not.toContain("hunter2");
  });

  test("makes up no license", () => {
    expect(graphOf(history(), []).get("./")!["license"]).toMatch(/^Nobody has stated a license/);
    expect(graphOf(history(), [], { license: "For the group only.", author: null }).get("./")!["license"]).toBe("For the group only.");
  });

  test("of a failed job says so", () => {
    const job = commandJob({
      state: "failed",
      outcome: { reason: "exit_nonzero", exit_code: 3, signal: null, message: "it exited with 3", residual: [] },
    });
    expect(graphOf(history({ job }), []).get("#job_c")).toMatchObject({
      "@type": "ActivateAction",
      actionStatus: "http://schema.org/FailedActionStatus",
      error: "it exited with 3",
    });
  });
});
