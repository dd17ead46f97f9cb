import { expect, test } from "bun:test";
import { HttpPeer } from "../../../src/api/client/http-peer.ts";
import { readExposition, sampleValue } from "../../lib/text/exposition-reader.ts";
import { eventually } from "../../runner/wait.ts";
import { WorkerHarness } from "./harness.ts";

const PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

test("a worker counts what it does, and keeps the trace of what it is given", async () => {
  await using worker = await new WorkerHarness().start();
  const peer = new HttpPeer({ kind: "unix", path: `${worker.directory}/run/worker.sock` });
  const scrape = async () => {
    const response = await peer.send("/metrics");
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    return readExposition(await response.text());
  };
  const before = await scrape();
  expect(sampleValue(before, "clio_relay_worker_submissions_total", { result: "accepted" })).toBe(0);
  expect(sampleValue(before, "clio_relay_worker_jobs", { state: "queued" })).toBe(0);

  const spec = { argv: ["/bin/sh", "-c", 'printf "%s %s" "$TRACEPARENT" "$TRACESTATE"'] };
  const submission = { cluster: "local", kind: "command" as const, spec, idempotency_key: "traced" };
  const traced = await worker.client.submit(submission, { traceparent: PARENT, tracestate: "a=1" });
  expect(traced.trace).toEqual({ traceparent: PARENT, tracestate: "a=1" });
  // Who tries again does so in another span, and gets the job that there is.
  const again = await worker.client.submit(submission, { traceparent: PARENT.replace("00f0", "11f0"), tracestate: null });
  expect([again.existing, again.job_id, again.trace]).toEqual([true, traced.job_id, traced.trace]);
  const none = await peer.send("/jobs", {
    method: "POST",
    body: { cluster: "local", kind: "command", spec },
    headers: { traceparent: "nonsense" },
  });
  const untraced = (await none.json()) as { job_id: string; trace: unknown };
  expect(untraced.trace).toBeNull();
  const failing = await worker.shell("echo lost >&2; exit 3");
  for (const { job_id } of [traced, untraced, failing]) await worker.ended(job_id);
  expect(await worker.stdout(traced.job_id)).toBe(`${PARENT} a=1`);
  expect(await worker.stdout(untraced.job_id)).toBe(" ");
  expect((await worker.client.job(traced.job_id)).trace).toEqual(traced.trace);
  const refused = worker.client.submit({ ...submission, spec: { argv: ["true"] } });
  await expect(refused).rejects.toMatchObject({ code: "job_submission_conflict" });

  const waiting = worker.shell("sleep 30");
  const waiter = new AbortController();
  const wait = worker.client.wait((await waiting).job_id, { timeout_seconds: 60, signal: waiter.signal }).catch(() => undefined);
  await eventually(async () => sampleValue(await scrape(), "clio_relay_worker_followers") === 1);
  await worker.running((await waiting).job_id);
  const after = await scrape();
  const value = (name: string, labels?: Record<string, string>) => sampleValue(after, `clio_relay_worker_${name}`, labels);
  expect(value("submissions_total", { result: "accepted" })).toBe(4);
  expect(value("submissions_total", { result: "existing" })).toBe(1);
  expect(value("submissions_total", { result: "job_submission_conflict" })).toBe(1);
  expect(value("jobs_ended_total", { state: "succeeded" })).toBe(2);
  expect(value("jobs_ended_total", { state: "failed" })).toBe(1);
  expect(value("attempts_ended_total", { reason: "exit_nonzero" })).toBe(1);
  expect(value("jobs", { state: "running" })).toBe(1);
  expect(value("slots_used", { lane: "workload" })).toBe(1);
  expect(value("output_kept_bytes_total", { stream: "stderr" })).toBe(5);
  expect(value("output_kept_bytes_total", { stream: "stdout" })).toBe(`${PARENT} a=1`.length + 1);
  expect(value("commit_duration_seconds_count")).toBeGreaterThan(4);
  expect(value("commit_writes_total")).toBeGreaterThanOrEqual(value("commit_duration_seconds_count")!);
  expect(value("spool_free_bytes")).toBeGreaterThan(0);
  expect(sampleValue(after, "process_resident_memory_bytes")).toBeGreaterThan(1e7);
  expect(sampleValue(after, "process_start_time_seconds")).toBeGreaterThan(Date.now() / 1_000 - 120);
  const labels = new Set(after.flatMap((sample) => Object.keys(sample.labels)));
  expect([...labels].sort()).toEqual(["cluster", "kind", "lane", "le", "reason", "result", "state", "stream", "version"]);
  expect(after.some(({ labels }) => Object.values(labels).includes(traced.job_id))).toBe(false);
  waiter.abort();
  await wait;
  await eventually(async () => sampleValue(await scrape(), "clio_relay_worker_followers") === 0);
  await worker.client.cancel((await waiting).job_id);
});
