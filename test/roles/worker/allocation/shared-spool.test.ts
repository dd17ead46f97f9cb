import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { InputRecord } from "../../../../src/domain/input.ts";
import { sha256Hex } from "../../../../src/lib/digest.ts";
import { temporaryDirectory } from "../../../runner/temporary.ts";
import { Site } from "./site.ts";

test("a job in an allocation has its directory, and its inputs, in the spool that compute nodes see, others in the cluster's", async () => {
  using shared = temporaryDirectory();
  const environment = { ...process.env, HOSTNAME: "login1", XDG_RUNTIME_DIR: "/run/user/1" };
  await using site = new Site({ sharedSpoolDir: path.join(shared.path, "local"), environment });
  await site.start();
  const { body } = await site.worker.call<InputRecord>(
    "POST",
    "/input-artifacts/ingest",
    JSON.stringify({
      schema_version: "clio-relay.input-artifact-ingest.v1",
      cluster: "local",
      logical_name: "in.lj",
      size_bytes: 5,
      sha256: sha256Hex("lj 1\n"),
      idempotency_key: "in",
      data_base64: Buffer.from("lj 1\n").toString("base64"),
    }),
  );
  const { artifact_id, sha256 } = body.artifact;
  const { job_id } = await site.submit(
    'cat "$CLIO_RELAY_INPUT_DECK"; echo "$CLIO_RELAY_INPUT_DECK" > where; env | grep -c "^\\(HOSTNAME\\|XDG_RUNTIME_DIR\\)="; true',
    { inputs: { deck: artifact_id }, outputs: ["where"] },
    { used_artifact_refs: [{ artifact_id, sha256 }] },
  );
  expect((await site.worker.ended(job_id)).job.outcome).toMatchObject({ reason: "completed" });
  expect(await site.worker.stdout(job_id)).toBe("lj 1\n0\n");
  const attempt = path.join(shared.path, "local", job_id, "attempt-1");
  expect(fs.readFileSync(path.join(site.directory, "where"), "utf8").trim()).toBe(path.join(attempt, "inputs", sha256, "in.lj"));
  expect(fs.existsSync(path.join(attempt, "exit.json"))).toBe(true);
  expect(fs.existsSync(path.join(site.worker.spoolDir, job_id))).toBe(false);
  const { artifacts } = await site.worker.client.artifacts(job_id);
  const document = artifacts.find(({ name }) => name === "provenance.json");
  expect(await (await site.worker.client.artifactContent(document?.artifact_id ?? "")).text()).toContain(job_id);

  const local = await site.worker.shell("echo here");
  expect((await site.worker.ended(local.job_id)).job.state).toBe("succeeded");
  expect(fs.existsSync(path.join(site.worker.spoolDir, local.job_id))).toBe(true);
}, 30_000);
