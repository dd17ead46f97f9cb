import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { initialized } from "../source-relay.ts";

const KEY = `SHA256:${"a".repeat(43)}`;

test("a port is no part of a host, and an address of IPv6 has none", async () => {
  await using relay = await initialized();
  for (const given of ["user@127.0.0.1:47922", "login:22", "user@[::1]:22"]) {
    const refused = await relay.run(["cluster", "add", "bad", "--ssh-host", given]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("hint: a port belongs into ~/.ssh/config")]);
  }
  for (const given of ["user@2001:db8::22", "fe80::1%eth0", "[2001:db8::1]"]) {
    await relay.ok("cluster", "add", "good", "--ssh-host", given);
    expect(await relay.json("cluster", "show", "good")).toMatchObject({ ssh_host: given });
  }
});

test("a cluster that is reached by ssh: added, changed by what is named, pinned; a new way is said", async () => {
  await using relay = await initialized();
  const add = (...options: string[]) => relay.run(["cluster", "add", "--name", "far", ...options]);
  const show = () => relay.json("cluster", "show", "far");
  expect(await add("--ssh-host", "me@login", "--core-dir", "$HOME/relay", "--env-setup", "module load x")).toEqual({
    code: 0,
    stdout: "added far\n",
    stderr: "",
  });
  const entry = {
    name: "far",
    mode: "ssh",
    ssh_host: "me@login",
    ssh_client: "builtin",
    core_dir: "~/relay",
    spool_dir: null,
    env_setup: "module load x",
    target_identity: { hostnames: [], ssh_host_key_sha256: [], scheduler_cluster_name: null, site_marker_sha256: null },
  };
  expect(await show()).toMatchObject(entry);
  const capacity = await add("--worker-concurrency", "9");
  expect([capacity.code, capacity.stderr]).toEqual([0, ""]);
  expect(await show()).toMatchObject({ ...entry, worker_capacity: { concurrency: 9 } });
  const client = await add("--ssh-client", "openssh");
  expect(client.stderr).toMatch(
    /^warning: the way to far has changed \(route revision [0-9a-f]{12}, now [0-9a-f]{12}\); .* && clio-relay connect far$/m,
  );
  expect(await show()).toMatchObject({ ...entry, ssh_client: "openssh", worker_capacity: { concurrency: 9 } });
  const pinned = await relay.run(["cluster", "pin-target", "far", "--target-hostname", "login1", "--ssh-host-key-sha256", KEY.slice(7)]);
  expect([pinned.code, pinned.stdout]).toEqual([0, "changed far\n"]);
  expect(pinned.stderr).toStartWith("warning: ");
  expect(await show()).toMatchObject({ ssh_client: "openssh", target_identity: { hostnames: ["login1"], ssh_host_key_sha256: [KEY] } });
  await relay.ok("cluster", "pin-target", "far", "--clear", "--target-hostname", "login2");
  expect(await show()).toMatchObject({ target_identity: { hostnames: ["login2"], ssh_host_key_sha256: [] } });
  expect(await relay.ok("cluster", "show", "far")).toContain("login2");
  const site = await relay.run([
    "cluster",
    "pin-target",
    "far",
    "--scheduler-cluster-name",
    "hpc",
    "--site-marker-sha256",
    "AB".repeat(32),
  ]);
  expect(site.stderr).toStartWith("warning: the way to far has changed");
  expect(await show()).toMatchObject({
    target_identity: { hostnames: ["login2"], scheduler_cluster_name: "hpc", site_marker_sha256: "ab".repeat(32) },
  });
  await relay.ok("cluster", "pin-target", "far", "--clear", "--target-hostname", "login2");
  expect(await show()).toMatchObject({
    target_identity: { hostnames: ["login2"], scheduler_cluster_name: null, site_marker_sha256: null },
  });
  expect(await relay.ok("cluster", "list")).toBe("local\tlocal\t3\t2\nfar\tssh\t9\t8");
  // What a host on this machine has is not what a host elsewhere has.
  expect((await add("--ssh-host", "localhost")).code).toBe(0);
  expect(await show()).toEqual({
    name: "far",
    mode: "local",
    env_setup: "module load x",
    worker_capacity: expect.objectContaining({ concurrency: 9 }),
    route_revision: expect.any(String),
  });
});

test("what does not go together is refused, and nothing of it is kept", async () => {
  await using relay = await initialized();
  for (const args of [
    ["--mode", "ssh"],
    ["--mode", "local", "--ssh-host", "login"],
    ["--mode", "ssh", "--ssh-host", "localhost"],
    ["--core-dir", "/x"],
    ["--target-hostname", "x"],
    ["--ssh-host", "-oProxyCommand=x"],
    // What a variable that is not set leaves.
    ["--ssh-host", ""],
    ["--ssh-host", "a b"],
    ["--frp-server-addr", ""],
    ["--frp-server-addr", "frps.example.edu", "--frp-stun-server", "stun"],
    ["--ssh-host", "login", "--target-hostname", ""],
    ["--ssh-host", "login", "--core-dir", "x"],
    ["--ssh-host", "login", "--ssh-host-key-sha256", "short"],
    ["--ssh-host", "login", "--site-marker-sha256", "short"],
    ["--scheduler-cluster-name", "x"],
    ["--ssh-host", "login", "--env-setup", "x", "--clear-env-setup"],
  ]) {
    const result = await relay.run(["cluster", "add", "--name", "far", ...args]);
    expect([args, result.code, result.stdout]).toEqual([args, 2, ""]);
    // By what was typed, not by where it would have been kept.
    expect([args, result.stderr]).toEqual([args, expect.stringMatching(/^error: (?!body )/)]);
  }
  expect(await relay.ok("cluster", "list")).toBe("local\tlocal\t3\t2");
  expect((await relay.run(["cluster", "pin-target", "far", "--clear"])).code).toBe(3);
  expect((await relay.run(["cluster", "pin-target", "local", "--clear"])).code).toBe(2);
  expect((await relay.run(["cluster", "pin-target", "local"])).code).toBe(2);
  await relay.ok("cluster", "add", "--name", "far", "--ssh-host", "login");
  const start = await relay.run(["worker", "run", "--cluster", "far"]);
  expect([start.code, start.stderr]).toEqual([2, "error: the worker of far does not run on this machine [configuration_error]\n"]);
});

test("what is done on a login node is done wherever one is known, whatever way the link has", async () => {
  await using relay = await initialized();
  fs.writeFileSync(path.join(relay.directory, "token"), "a".repeat(32), { mode: 0o600 });
  const met = ["--relay-host", "wss://relay.invalid", "--relay-token-file", "token"];
  await relay.ok("cluster", "add", "far", "--ssh-host", "login.invalid", ...met);
  await relay.ok("cluster", "add", "paired", ...met);
  const verbs = [["install-endpoint-service"], ["pin-target", "--target-hostname", "login1"]];
  for (const [verb, ...args] of verbs) {
    const refused = async (name: string) => {
      const { code, stderr } = await relay.run(["cluster", verb!, name, ...args]);
      return [verb, code, stderr];
    };
    expect(await refused("paired")).toEqual([
      verb,
      2,
      "error: of paired no login node is known, and this needs one [configuration_error]\nhint: clio-relay cluster add --name paired --ssh-host HOST\n",
    ]);
    expect(await refused("local")).toEqual([verb, 2, expect.stringContaining("local is on this machine")]);
  }
  await relay.ok("cluster", "pin-target", "far", "--target-hostname", "login1");
  expect(await relay.json("cluster", "show", "far")).toMatchObject({ mode: "relay", target_identity: { hostnames: ["login1"] } });
  // It dials, and what it was told besides is not kept where that fails.
  const service = await relay.run(["cluster", "install-endpoint-service", "far", "--concurrency", "4", "--no-input"]);
  expect(service.stderr).toContain("login.invalid");
  expect(await relay.json("cluster", "show", "far")).toMatchObject({ worker_capacity: { concurrency: 3 } });
});
