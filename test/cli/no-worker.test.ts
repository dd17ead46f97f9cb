import { expect, test } from "bun:test";
import { initialized } from "./source-relay.ts";

const ID = `job_${"0".repeat(32)}`;
const NOBODY = "error: no worker is running for local [worker_not_running]\nhint: clio-relay worker start --cluster local\n";

test("where no worker runs, commands say so, with the command to run", async () => {
  await using relay = await initialized();
  for (const args of [
    ["job", "list"],
    ["job", "list", "--cluster", "local"],
    ["job", "status", ID],
    ["job", "watch", ID],
    ["job", "wait", ID],
    ["job", "read-log", ID, "-f"],
    ["job", "submit", "--", "true"],
    ["queue", "list"],
    ["worker", "status"],
    ["endpoint", "status", "--cluster", "local"],
  ]) {
    const result = await relay.run(args);
    expect([args, result]).toEqual([args, { code: 5, stdout: "", stderr: NOBODY }]);
  }
  const far = await relay.run(["job", "list", "--cluster", "far"]);
  expect([far.code, far.stderr]).toEqual([3, 'error: there is no cluster "far" [cluster_not_found]\nhint: clusters: local\n']);
  expect((await relay.run(["cluster", "show", "far"])).code).toBe(3);
  expect(await relay.json("cluster", "list")).toMatchObject({ clusters: [{ name: "local", mode: "local" }] });
  expect(await relay.json("cluster", "show", "local")).toMatchObject({ name: "local" });
  expect(relay.daemons().length).toBe(1);
});
