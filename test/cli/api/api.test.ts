import { expect, test } from "bun:test";
import fs from "node:fs";
import type { ListenerStatus } from "../../../src/api/desktop/listener-views.ts";
import type { JobReceipt } from "../../../src/domain/job.ts";
import { initialized, withWorker } from "../source-relay.ts";

const SECRET = "a-token-of-ours-0123456789abcdef";

test("the API on TCP from the command line: start, status, another daemon, rotation, stop", async () => {
  await using relay = await initialized();
  const api = async (verb: string, ...args: string[]) => relay.json<ListenerStatus>("api", verb, ...args);
  const before = await relay.run(["api", "status"]);
  expect([before.code, before.stderr]).toEqual([5, expect.stringContaining("hint: clio-relay api start")]);

  const file = `${relay.home}/config/api-token`;
  const started = await relay.run(["api", "start", "--port", "0", "--require-token", "--json"], { env: { CLIO_RELAY_API_TOKEN: SECRET } });
  expect([started.code, started.stderr]).toEqual([0, expect.stringContaining("--require-token")]);
  const { url, token_file } = JSON.parse(started.stdout) as ListenerStatus;
  expect([token_file, fs.readFileSync(file, "utf8"), fs.statSync(file).mode & 0o777]).toEqual([file, `${SECRET}\n`, 0o600]);
  const status = async (token: string) => (await fetch(`${url}/status`, { headers: { authorization: `Bearer ${token}` } })).status;
  expect([await status(SECRET), await status("x".repeat(32))]).toEqual([200, 401]);
  // In no argument, variable, log or answer of a process of ours.
  const [daemon] = relay.daemons();
  for (const what of ["cmdline", "environ"]) expect(fs.readFileSync(`/proc/${daemon}/${what}`, "utf8")).not.toContain(SECRET);
  expect(await relay.ok("desktop", "logs")).not.toContain(SECRET);
  expect(started.stdout + started.stderr + (await relay.ok("api", "status"))).not.toContain(SECRET);
  expect(await relay.ok("api", "status")).toContain(url!);

  await relay.ok("desktop", "stop");
  const down = await relay.run(["api", "status"]);
  expect([down.code, down.stderr]).toEqual([5, expect.stringContaining("clio-relay desktop start")]);
  await relay.ok("desktop", "start");
  expect(await api("status")).toMatchObject({ state: "listening", url });
  expect(await status(SECRET)).toBe(200);

  expect(await relay.ok("api", "rotate-token", "--yes")).toBe(`${file} has another token`);
  expect([await status(SECRET), await status(fs.readFileSync(file, "utf8").trim())]).toEqual([401, 200]);
  expect(await api("stop")).toMatchObject({ state: "stopped", url: null });
  expect(await api("status")).toMatchObject({ state: "stopped" });

  for (const args of [
    ["--tls-cert", "cert.pem"],
    ["--host", "a b"],
    ["--allow-origin", "null"],
    ["--allow-origin", "https://app.example.edu/path"],
    ["--allow-host", "http://x"],
    ["--port", "70000"],
    ["--token", SECRET],
  ]) {
    const refused = await relay.run(["api", "start", ...args]);
    expect([args, refused.code, refused.stdout]).toEqual([args, 2, ""]);
  }
  const open = await relay.run(["api", "start", "--port", "0", "--host", "0.0.0.0"]);
  expect([open.code, open.stderr]).toEqual([2, expect.stringContaining("--behind-proxy")]);
  const short = await relay.run(["api", "start", "--port", "0"], { env: { CLIO_RELAY_API_TOKEN: "short" } });
  expect([short.code, short.stderr]).toEqual([2, expect.stringContaining("CLIO_RELAY_API_TOKEN")]);
  expect(await api("status")).toMatchObject({ state: "stopped" });
});

test("a job belongs to the trace that its command belongs to", async () => {
  await using relay = await withWorker();
  const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const submit = async (env: Record<string, string>) => {
    const { stdout, stderr } = await relay.run(["job", "submit", "--json", "--", "sh", "-c", 'echo "$TRACEPARENT/$TRACESTATE"'], { env });
    return { receipt: JSON.parse(stdout) as JobReceipt, stderr };
  };
  const traced = await submit({ TRACEPARENT: parent, TRACESTATE: "a=1, b=2" });
  expect([traced.receipt.trace, traced.stderr]).toEqual([{ traceparent: parent, tracestate: "a=1,b=2" }, ""]);
  await relay.ok("job", "wait", traced.receipt.job_id);
  expect(await relay.ok("job", "read-log", traced.receipt.job_id)).toBe(`${parent}/a=1,b=2`);
  const odd = await submit({ TRACEPARENT: "nonsense", TRACESTATE: "a=1" });
  expect([odd.receipt.trace, odd.stderr]).toEqual([null, "notice: TRACEPARENT is no traceparent, and is left out\n"]);
});
