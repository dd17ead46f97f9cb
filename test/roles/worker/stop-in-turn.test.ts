import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { stopInTurn } from "../../../src/roles/worker/stop-in-turn.ts";
import { eventually } from "../../runner/wait.ts";
import { WorkerHarness } from "./harness.ts";

test("parts are stopped one after the other, the ones behind a part that fails or never ends, too", async () => {
  const said: string[] = [];
  const log = { info: () => undefined, warn: (text: string) => void said.push(text), error: (text: string) => void said.push(text) };
  const stopped: string[] = [];
  const steps = [
    ["a", async () => void stopped.push("a")],
    ["b", () => new Promise<void>(() => undefined)],
    ["c", () => Promise.reject(new Error("no"))],
    ["d", () => void stopped.push("d")],
  ] as const;
  await stopInTurn(steps, log, 20);
  expect(stopped).toEqual(["a", "d"]);
  expect(said).toEqual(["not waited for any longer: b", "could not stop c"]);
});

test("a worker whose attempt waits for what never comes drains, and the next one ends the job as it ended", async () => {
  await using worker = new WorkerHarness({ death: { call: "startAttempt", when: "never" }, stopStepMs: 300 });
  await worker.start();
  const { job_id } = await worker.shell("echo ran");
  await eventually(() => fs.existsSync(path.join(worker.attemptDir(job_id), "exit.json")));
  expect(await worker.drain()).toBe(0);
  expect(worker.messages).toContain("not waited for any longer: the attempts that are looked after");
  await using next = new WorkerHarness({}, worker.directory);
  await next.start();
  expect((await next.ended(job_id)).job).toMatchObject({ state: "succeeded", attempts: 1 });
  expect(await next.stdout(job_id)).toBe("ran\n");
});
