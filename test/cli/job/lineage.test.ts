import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { type TwoJobs, twoJobs } from "./two-jobs.ts";

let jobs: TwoJobs;
beforeAll(async () => {
  jobs = await twoJobs();
});
afterAll(() => jobs[Symbol.asyncDispose]());

describe("lineage", () => {
  test("is listed in both directions", async () => {
    const { relay, producer, consumer, mesh } = jobs;
    expect(await relay.ok("job", "used-artifacts", consumer)).toBe(
      [mesh.artifact_id, producer, mesh.sha256, "assertion", "mesh"].join("\t"),
    );
    const by = await relay.json<{ used_by: { consumer_job_id: string; created_at: string }[] }>("job", "used-by", mesh.artifact_id);
    expect(by.used_by).toMatchObject([{ consumer_job_id: consumer, producer_job_id: producer }]);
    expect(await relay.ok("job", "used-by", mesh.artifact_id)).toBe([consumer, by.used_by[0]!.created_at, "assertion", "mesh"].join("\t"));
    const again = await relay.submit("--used-artifact", `${mesh.artifact_id}=${mesh.sha256}`, "--", "true");
    const first = await relay.run(["job", "used-by", mesh.artifact_id, "--limit", "1"]);
    const cursor = /^1 more: --cursor (edge_\d{20})\n$/.exec(first.stderr)?.[1];
    expect(await relay.ok("job", "used-by", mesh.artifact_id, "--cursor", String(cursor))).toStartWith(again);
  });

  test("what does not hold refuses the job", async () => {
    const { relay, mesh } = jobs;
    const wrong = await relay.run(["job", "submit", "--used-artifact", `${mesh.artifact_id}=${"0".repeat(64)}`, "--", "true"]);
    expect([wrong.code, wrong.stdout]).toEqual([2, ""]);
    expect(wrong.stderr).toContain("[job_submission_refused]");
    const none = await relay.run(["job", "submit", "--used-artifact", `artifact_none=${mesh.sha256}`, "--", "true"]);
    expect([none.code, none.stderr]).toEqual([3, "error: there is no artifact artifact_none [artifact_not_found]\n"]);
    const typed = await relay.run(["job", "submit", "--used-artifact", `${mesh.artifact_id}=abc`, "--", "true"]);
    expect(typed.code).toBe(2);
    expect(typed.stderr).toContain("ARTIFACT=SHA256");
  });
});

describe("provenance", () => {
  test("is PROV-JSON, printed or saved", async () => {
    const { relay, consumer, mesh } = jobs;
    const printed = await relay.ok("job", "provenance", consumer);
    expect(JSON.parse(printed)).toMatchObject({ used: { "_:u1": { "prov:entity": `relay:${mesh.artifact_id}`, "prov:role": "mesh" } } });
    const file = await relay.ok("job", "provenance", consumer, "-o", "prov.json");
    expect(fs.readFileSync(file, "utf8").trimEnd()).toBe(printed);
    fs.writeFileSync(file, "mine");
    const occupied = await relay.run(["job", "provenance", consumer, "-o", "prov.json"]);
    expect([occupied.code, occupied.stderr]).toEqual([
      7,
      expect.stringContaining(`another file is there already: ${file} [state_conflict]`),
    ]);
    expect(fs.readFileSync(file, "utf8")).toBe("mine");
    expect(await relay.ok("job", "provenance", consumer, "-o", "prov.json", "--overwrite")).toBe(file);
    expect(JSON.parse(fs.readFileSync(file, "utf8"))).toMatchObject({ activity: { [`relay:${consumer}`]: {} } });
    const misplaced = await relay.run(["job", "provenance", consumer, "--include", "all"]);
    expect([misplaced.code, misplaced.stdout]).toEqual([2, ""]);
  });

  test("of a job that runs has no crate, and says what to wait for", async () => {
    const { relay } = jobs;
    const running = await relay.submit("--", "sleep", "600");
    const refused = await relay.run(["job", "provenance", running, "--format", "ro-crate", "-o", "running.zip"]);
    expect(refused.code).toBe(7);
    expect(refused.stderr).toContain(`clio-relay job wait ${running}`);
    expect(JSON.parse(await relay.ok("job", "provenance", running))).toMatchObject({ activity: { [`relay:${running}`]: {} } });
    expect(fs.existsSync(path.join(relay.directory, "running.zip"))).toBe(false);
    await relay.ok("job", "cancel", running, "--yes");
  });
});
