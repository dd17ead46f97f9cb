import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { LinkInfo } from "../../../src/domain/link.ts";
import { WorkerRecord } from "../../../src/domain/worker-record.ts";
import { bootId } from "../../../src/lib/system/process-identity.ts";
import { WorkerHarness } from "./harness.ts";

test("a worker that serves says who it is and where, keeps its id, and leaves no record when it drains", async () => {
  await using worker = new WorkerHarness();
  const info = (): Promise<LinkInfo> => worker.client.http.json("/link", async () => LinkInfo);
  const file = path.join(worker.coreDir, "worker.json");
  const record = (): WorkerRecord => v.parse(WorkerRecord, JSON.parse(fs.readFileSync(file, "utf8")));
  await worker.start();
  const first = await info();
  expect(first).toMatchObject({ cluster: "local", host: { boot_id: bootId() }, host_key: null });
  expect(record()).toMatchObject({ worker_id: first.worker_id, version: first.version, process: { pid: worker.pid } });
  expect(fs.statSync(record().socket).isSocket()).toBe(true);
  expect(fs.statSync(file).mode & 0o777).toBe(0o600);
  await worker.kill();
  expect(record().process.pid).toBe(worker.pid);
  await worker.start();
  expect((await info()).worker_id).toBe(first.worker_id);
  expect(record().process.pid).toBe(worker.pid);
  expect(await worker.drain()).toBe(0);
  expect(fs.existsSync(file)).toBe(false);
});
