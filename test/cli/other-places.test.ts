import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { initialized, withWorker } from "./source-relay.ts";

test("a registry that is not the daemon's is neither read nor written through it", async () => {
  await using relay = await initialized();
  await relay.ok("desktop", "start");
  const clusters = path.join(relay.home, "config", "clusters.json");
  const before = fs.readFileSync(clusters, "utf8");
  const other = path.join(relay.directory, "é other.json");
  const env = { CLIO_RELAY_CLUSTER_REGISTRY: other };
  const stderr =
    `error: the desktop daemon that runs keeps its clusters in ${clusters}, and this command means ${other} [configuration_error]\n` +
    "hint: clio-relay desktop stop, and repeat it; or CLIO_RELAY_HOME=DIR for an installation with a daemon of its own\n";
  for (const args of [
    ["cluster", "add", "foo", "--mode", "local"],
    ["desktop", "start"],
  ]) {
    expect([args, await relay.run(args, { env })]).toEqual([args, { code: 2, stdout: "", stderr }]);
  }
  expect(fs.existsSync(other)).toBe(false);
  expect(fs.readFileSync(clusters, "utf8")).toBe(before);
  fs.copyFileSync(clusters, other);
  fs.chmodSync(other, 0o600);
  expect(await relay.run(["cluster", "list"], { env })).toEqual({ code: 2, stdout: "", stderr });
  // By another name it is the same file.
  fs.symlinkSync(path.dirname(clusters), path.join(relay.directory, "alias"));
  const alias = { CLIO_RELAY_CLUSTER_REGISTRY: path.join(relay.directory, "alias", "clusters.json") };
  expect((await relay.run(["cluster", "list"], { env: alias })).stdout).toBe("local\tlocal\t3\t2\n");
  // The daemon says which one it has, and goes when it is told to.
  expect((await relay.run(["desktop", "status"], { env })).stdout).toContain(`clusters in  ${clusters}\n`);
  expect((await relay.run(["desktop", "stop"], { env })).code).toBe(0);
  expect((await relay.run(["cluster", "add", "foo", "--mode", "local"], { env })).stdout).toBe("added foo\n");
  expect(fs.readFileSync(other, "utf8")).toContain('"foo"');
  expect(fs.readFileSync(clusters, "utf8")).toBe(before);
});

test("a worker with other directories than the ones that are named is not taken for the one that is meant", async () => {
  await using relay = await withWorker();
  const state = path.join(relay.directory, "state");
  const env = { CLIO_RELAY_CORE_DIR: state };
  for (const args of [
    ["worker", "start"],
    ["queue", "audit"],
    ["queue", "repair", "--yes"],
  ]) {
    const { code, stdout, stderr } = await relay.run(args, { env });
    expect([args, code, stdout]).toEqual([args, 2, ""]);
    expect(stderr).toContain(
      `its state is in ${relay.home}/core/local, not in ${state}/local [configuration_error]\nhint: clio-relay worker stop`,
    );
  }
  expect((await relay.run(["worker", "start"], { env: { CLIO_RELAY_SPOOL_DIR: `${relay.home}/./spool/` } })).stderr).toBe("");
  // Whoever names nothing is told where the one that runs keeps its things.
  await relay.ok("worker", "stop");
  expect((await relay.run(["worker", "start"], { env })).code).toBe(0);
  const { code, stdout, stderr } = await relay.run(["worker", "start"]);
  expect([code, stderr]).toEqual([0, `notice: its state is in ${state}/local, not in ${relay.home}/core/local\n`]);
  expect(stdout).toStartWith("worker of local runs already");
});

test("where there is no queue, none is checked, and none is made", async () => {
  await using relay = await initialized();
  const directory = path.join(relay.home, "core", "local");
  for (const args of [
    ["queue", "audit"],
    ["queue", "repair", "--yes"],
  ]) {
    const stderr = `error: there is no queue in ${directory} [not_found]\nhint: the first start of its worker makes it\n`;
    expect([args, await relay.run(args)]).toEqual([args, { code: 3, stdout: "", stderr }]);
  }
  expect(fs.existsSync(directory)).toBe(false);
});

test("a relative place is refused, and nothing is made", async () => {
  await using relay = await initialized();
  const result = await relay.run(["worker", "start"], { env: { CLIO_RELAY_CORE_DIR: "here" } });
  expect(result).toEqual({
    code: 2,
    stdout: "",
    stderr:
      'error: CLIO_RELAY_CORE_DIR is "here", but must be an absolute path [configuration_error]\n' +
      `hint: CLIO_RELAY_CORE_DIR=${relay.directory}/here\n`,
  });
  expect(fs.existsSync(path.join(relay.directory, "here"))).toBe(false);
});
