import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { eventually } from "../../runner/wait.ts";
import { initialized, type Result, type SourceRelay, withWorker } from "../source-relay.ts";

/** Where the worker is; and another installation, whose worker is what stands between: the worker itself would take its socket's name back. */
let site: SourceRelay;
let relay: SourceRelay;
let job: string;
let between: ReturnType<typeof Bun.serve>;
/** What goes through besides reads. */
let through = /^$/;
/** Requests that change something, and are kept without an answer. */
let held = 0;

/** Between the worker and whoever asks it: reads go through, everything else is sent on or kept, and never answered. */
function keepAnswers(socket: string, behind: string): ReturnType<typeof Bun.serve> {
  return Bun.serve({
    unix: socket,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const send = (init: RequestInit): Promise<Response> => fetch(`http://worker${pathname}${search}`, { unix: behind, ...init });
      const { method, headers } = request;
      const all = { method, headers, ...(method === "GET" ? {} : { body: await request.arrayBuffer() }) };
      if (method === "GET" || through.test(pathname)) return send(all);
      if (pathname === "/jobs") await send(all);
      held += 1;
      return new Promise<Response>(() => undefined);
    },
  });
}

beforeAll(async () => {
  [site, relay] = await Promise.all([withWorker(), initialized()]);
  job = await site.submit("--wait", "--", "true");
  const socketOf = ({ home }: SourceRelay): string => path.join(home, "run", "worker-local.sock");
  between = keepAnswers(socketOf(relay), socketOf(site));
});
afterAll(async () => {
  await between.stop(true);
  for (const one of [relay, site]) await one[Symbol.asyncDispose]();
});

/** Interrupt a command when its request is with the worker. */
async function interrupted(signal: "SIGINT" | "SIGTERM", ...args: string[]): Promise<Result> {
  const before = held;
  const child = relay.start(args);
  await eventually(() => held > before);
  child.kill(signal);
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, stdout, stderr };
}

test("a submission that is interrupted before its answer says so, and under which key it is the same job", async () => {
  const marker = path.join(relay.directory, "ran");
  const submission = ["job", "submit", "--", "sh", "-c", `echo x >> '${marker}'`];
  const { code, stdout, stderr } = await interrupted("SIGINT", ...submission);
  expect({ code, stdout }).toEqual({ code: 130, stdout: "" });
  expect(stderr).toContain("whether the request was taken on is not known [request_interrupted]");
  const [, key] = /^hint: repeat it with --idempotency-key (cli_[0-9a-f]{32})$/m.exec(stderr)!;
  await eventually(() => fs.existsSync(marker));
  const again = await interrupted("SIGTERM", "job", "submit", "--idempotency-key", key!, "--json", ...submission.slice(2));
  expect(again.code).toBe(130);
  expect(JSON.parse(again.stderr)).toMatchObject({ reason: "request_interrupted", idempotency_key: key });
  const jobs = await relay.json<{ jobs: { job_id: string }[] }>("job", "list");
  // The one of the beginning, and this.
  expect(jobs.jobs).toHaveLength(2);
});

test("so does whatever else changes something, and says what a repetition does", async () => {
  const twice = "the same command again does nothing twice";
  const look = "look at what is there before it is done again";
  for (const [hint, ...args] of [
    [twice, "job", "cancel", job],
    [look, "job", "record-progress", job, "--label", "a", "--current", "1"],
    [twice, "queue", "repair", "--yes"],
    [look, "worker", "keys", "rotate"],
  ]) {
    const { code, stderr } = await interrupted("SIGINT", ...args);
    expect({ args, code, stderr }).toMatchObject({
      code: 130,
      stderr: `error: interrupted before the answer came; whether the request was taken on is not known [request_interrupted]\nhint: ${hint}\n`,
    });
  }
});

test("a submission with an input says whether it was on its way, or only the input", async () => {
  fs.writeFileSync(path.join(relay.directory, "in"), "x");
  const args = ["job", "submit", "--input", "a=in", "--", "true"];
  // Its first request that changes something brings the file.
  expect(await interrupted("SIGINT", ...args)).toEqual({
    code: 130,
    stdout: "",
    stderr: "interrupted before the job was submitted; what was sent is kept for a day, and the same command goes on from there\n",
  });
  through = /^\/input-/;
  const { code, stderr } = await interrupted("SIGINT", ...args);
  expect(code).toBe(130);
  expect(stderr).toMatch(/\[request_interrupted\]\nhint: repeat it with --idempotency-key cli_[0-9a-f]{32}\n$/);
});
