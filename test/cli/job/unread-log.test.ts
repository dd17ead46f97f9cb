import { expect, test } from "bun:test";
import fs from "node:fs";
import { pipe } from "../../../src/lib/system/libc.ts";
import { freePort } from "../../rigs/free-port.ts";
import { TOKEN } from "../../roles/relay-host/place.ts";
import { eventually } from "../../runner/wait.ts";
import { MAIN, SourceRelay } from "../source-relay.ts";

const ON_LINUX = process.platform === "linux";

/** A pipe that is full. */
async function fullPipe(): Promise<readonly [read: number, write: number]> {
  const [read, write] = pipe();
  const filler = Bun.spawn(["/bin/sh", "-c", "yes filling | dd bs=1 count=65536 iflag=fullblock 2>/dev/null"], { stdout: write });
  expect(await filler.exited).toBe(0);
  return [read, write];
}

const said = async (relay: SourceRelay, args: readonly string[]): Promise<boolean> => (await relay.run(args)).code === 0;

test.skipIf(!ON_LINUX).each<[string, (port: number) => string[], (relay: SourceRelay, port: number) => Promise<boolean>, RegExp]>([
  [
    "a relay-host",
    (port) => ["relay-host", "serve", "--listen-ws", `127.0.0.1:${port}`],
    async (_, port) => (await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null))?.status === 200,
    /"event":"omitted","lines":1\}\n.*"event":"draining"/,
  ],
  [
    "a worker",
    () => ["worker", "run", "--cluster", "local"],
    (relay) => said(relay, ["worker", "status", "--cluster", "local"]),
    /left out/,
  ],
  ["a desktop daemon", () => ["desktop", "run"], (relay) => said(relay, ["desktop", "status"]), /left out/],
])("%s whose log nobody reads serves all the same, and ends when it is told to", async (_, args, serves, tells) => {
  await using relay = new SourceRelay();
  await relay.ok("init");
  await relay.run(["worker", "stop", "--cluster", "local"]);
  await relay.run(["desktop", "stop", "--yes"]);
  const port = await freePort();
  const [read, write] = await fullPipe();
  const child = Bun.spawn([process.execPath, MAIN, ...args(port)], {
    env: { ...relay.environment, CLIO_RELAY_HOST_TOKEN: TOKEN },
    cwd: relay.directory,
    stdin: "ignore",
    stdout: "ignore",
    stderr: write,
  });
  fs.closeSync(write);
  await eventually(() => serves(relay, port));
  const held = Buffer.alloc(65_536);
  for (let at = 0; at < held.length; ) at += fs.readSync(read, held, at, held.length - at, null);
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  const rest = Buffer.alloc(65_536);
  expect(rest.toString("latin1", 0, fs.readSync(read, rest))).toMatch(tells);
  fs.closeSync(read);
});
