import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { processesMarked } from "../runner/leftovers.ts";
import { EXECUTABLE, Relay } from "../runner/relay.ts";

const daemons = (relay: Relay): string[] =>
  processesMarked("CLIO_RELAY_HOME", relay.home)
    .map(({ command }) => command)
    .filter((command) => command.includes("desktop run"));

test("twenty commands at once and no daemon: one daemon, which is the executable itself", async () => {
  await using relay = new Relay();
  expect((await relay.run(["init"])).code).toBe(0);
  const results = await Promise.all(Array.from({ length: 20 }, () => relay.run(["cluster", "list"])));
  for (const { code, stdout, stderr } of results) expect([code, stdout, stderr]).toEqual([0, "local\tlocal\t3\t2\n", ""]);
  expect(daemons(relay)).toEqual([`${EXECUTABLE} desktop run --background`]);
});

test("a worker in the background, a job that reports through the executable, and an installation with a long name", async () => {
  const base = new Relay();
  await using _base = base;
  const runtime = path.join(base.directory, "runtime");
  fs.mkdirSync(runtime, { mode: 0o700 });
  await using relay = new Relay({ directory: path.join(base.directory, "d".repeat(120)), env: { XDG_RUNTIME_DIR: runtime } });
  expect((await base.run(["init"])).code).toBe(0);
  const run = (args: readonly string[]) => relay.run(args, { cwd: base.directory });
  expect((await run(["init"])).code).toBe(0);
  expect(await run(["worker", "start"])).toMatchObject({ code: 0, stderr: "" });
  const script = `${EXECUTABLE} emit progress --label step --current 1 --total 2`;
  const submitted = await run(["job", "submit", "--wait", "--", "sh", "-c", script]);
  expect(submitted).toMatchObject({ code: 0, stderr: "succeeded: exited with code 0\n" });
  const status = (await run(["job", "status", "--json", submitted.stdout.trim()])).json<{ progress: object[] }>();
  expect(status.progress).toMatchObject([{ label: "step", current: 1, total: 2 }]);
  expect((await run(["desktop", "status", "--json"])).json<{ socket: string }>().socket).toStartWith(runtime);
  expect((await run(["worker", "stop"])).code).toBe(0);
  expect((await run(["desktop", "stop"])).code).toBe(0);
  expect(daemons(relay)).toEqual([]);
});
