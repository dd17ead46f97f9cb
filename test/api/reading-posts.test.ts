import { expect, test } from "bun:test";
import { changesSomething, READING_POSTS } from "../../src/api/reading-posts.ts";
import { workerOperations } from "../../src/api/worker-app.ts";
import type { WorkerServices } from "../../src/api/worker-services.ts";

test("what only reads is told from what changes something, by what there is", () => {
  const posts = workerOperations({} as WorkerServices)
    .filter(({ method }) => method === "post")
    .map(({ path }) => path);
  expect(READING_POSTS.filter((path) => !posts.includes(path))).toEqual([]);
  const reading = posts.filter((path) => !changesSomething("POST", path.replaceAll(/:\w+/g, "job_1")));
  expect(reading.toSorted()).toEqual([...READING_POSTS].toSorted());
  expect(changesSomething("POST", "/jobs/job_1/wait?timeout_seconds=5")).toBe(false);
  for (const other of ["/jobs/job_1/wait/more", "/jobs/a/b/wait", "/jobs?/jobs/job_1/wait", "/x/queue/audit"])
    expect([other, changesSomething("POST", other)]).toEqual([other, true]);
  expect(["GET", "HEAD", "PUT", "DELETE"].map((method) => changesSomething(method, "/jobs/job_1/wait"))).toEqual([
    false,
    false,
    true,
    true,
  ]);
});
