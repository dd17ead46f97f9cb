import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { eventually } from "../runner/wait.ts";
import { initialized, SourceRelay } from "./source-relay.ts";

const FIRST = "clio-relay init makes one of this machine, clio-relay cluster add --name NAME --ssh-host HOST knows one elsewhere";
const NONE = `error: there is no cluster yet [usage]\nhint: ${FIRST}\n`;
const NOT_FOUND = `error: there is no cluster "local" [cluster_not_found]\nhint: ${FIRST}\n`;

test("where nothing was ever registered, commands say so and start no daemon", async () => {
  await using relay = new SourceRelay();
  const id = `job_${"0".repeat(32)}`;
  for (const [args, code, stderr] of [
    [["job", "list"], 2, NONE],
    [["job", "list", "--cluster", "local"], 3, NOT_FOUND],
    [["job", "status", id], 2, NONE],
    [["job", "submit", "--cluster", "local", "--", "true"], 3, NOT_FOUND],
    [["queue", "list"], 2, NONE],
    [["queue", "audit"], 2, NONE],
    [["worker", "status"], 2, NONE],
    [["worker", "start"], 2, NONE],
    [["worker", "run"], 2, NONE],
    [["worker", "stop"], 2, NONE],
    [["worker", "stop", "--cluster", "local"], 3, NOT_FOUND],
    [["cluster", "list"], 0, `there is no cluster yet: ${FIRST}\n`],
    [["cluster", "show", "local"], 3, NOT_FOUND],
    [["cluster", "remove", "local"], 3, NOT_FOUND],
  ] as const) {
    const result = await relay.run(args);
    expect([args, result]).toEqual([args, { code, stdout: "", stderr }]);
    expect([args, relay.daemons()]).toEqual([args, []]);
  }
  expect(fs.existsSync(relay.home)).toBe(false);
});

test("a limit of the address space that is too low is named", async () => {
  await using relay = new SourceRelay({}, ["/bin/sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh"]);
  const { code, stdout, stderr } = await relay.run(["init", "--json"]);
  expect([code, stdout]).toEqual([1, ""]);
  expect(JSON.parse(stderr)).toMatchObject({
    reason: "system_limit",
    detail: expect.stringContaining("address space is 2048000000 bytes"),
  });
});

describe("worker stop", () => {
  test("needs no daemon, and starts none", async () => {
    await using relay = await initialized();
    expect(await relay.ok("worker", "stop")).toBe("no worker is running for local");
    const { pid } = await relay.json<{ pid: number }>("worker", "start");
    // At the limit of the user's processes it has no thread to start.
    const environment = fs.readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    expect(environment).toContain("BUN_JSC_useConcurrentGC=0");
    expect(environment).toContainEqual(expect.stringMatching(/^GLIBC_TUNABLES=./));
    expect(await relay.ok("worker", "stop", "--cluster", "local")).toBe(`stopped process ${pid}`);
    expect(relay.daemons()).toEqual([]);
    expect((await relay.run(["worker", "stop", "--cluster", "nowhere"])).code).toBe(3);
  });

  test("ends the worker of a cluster that was forgotten", async () => {
    await using relay = await initialized();
    const { pid } = await relay.json<{ pid: number }>("worker", "start");
    await relay.ok("cluster", "remove", "local", "--yes");
    expect(await relay.ok("worker", "stop", "--cluster", "local")).toBe(`stopped process ${pid}`);
    await eventually(() => !fs.existsSync(path.join("/proc", String(pid))));
  });
});
