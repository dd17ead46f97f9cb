import { afterAll, beforeAll, expect, test } from "bun:test";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { userFile } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { FarSite } from "../ssh-desk.ts";

describeWith(["sshd", "ssh"], "a site that is pinned", () => {
  let site: FarSite;

  beforeAll(async () => {
    site = await FarSite.start();
    userFile(site.user, ".config/clio-relay/site-marker", "the site of the rig\n");
    userFile(site.user, "slurm.conf", "ClusterName=rig\n");
    userFile(site.user, ".bashrc", 'export SLURM_CONF="$HOME/slurm.conf"\n');
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
  });

  test("is told by probe, and another one is refused before anything is done there", async () => {
    await using relay = await site.desk();
    const { host } = await relay.json<{ host: { site: { marker_sha256: string; scheduler_cluster_name: string } } }>(
      "cluster",
      "probe",
      "far",
    );
    expect(host.site).toEqual({ marker_sha256: sha256Hex(Buffer.from("the site of the rig\n")), scheduler_cluster_name: "rig" });
    const pin = (...flags: string[]) => relay.ok("cluster", "pin-target", "far", "--clear", ...flags);
    await pin("--site-marker-sha256", host.site.marker_sha256, "--scheduler-cluster-name", "rig");
    await relay.ok("cluster", "probe", "far");

    await pin("--scheduler-cluster-name", "another");
    for (const args of [
      ["connect", "far"],
      ["cluster", "probe", "far"],
      ["cluster", "bootstrap", "far", "--artifact", EXECUTABLE],
      ["worker", "start"],
    ]) {
      const refused = await relay.run([...args, "--no-input"]);
      expect([args, refused.code, refused.stderr]).toEqual([args, 1, expect.stringContaining("[wrong_site]")]);
      expect(refused.stderr).toContain("hint: clio-relay cluster pin-target far --scheduler-cluster-name rig takes this one");
    }
    await pin("--site-marker-sha256", "0".repeat(64));
    const marker = await relay.run(["cluster", "probe", "far", "--no-input"]);
    expect([marker.code, marker.stderr]).toEqual([1, expect.stringContaining(`--site-marker-sha256 ${host.site.marker_sha256} takes`)]);
    userFile(site.user, ".config/clio-relay/site-marker", "moved\n");
    userFile(site.user, "slurm.conf", "SlurmctldHost=a\n");
    await pin("--scheduler-cluster-name", "rig");
    const unknown = await relay.run(["cluster", "probe", "far", "--no-input"]);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("the scheduler's cluster is unknown on ")]);
    await pin();
    await relay.ok("cluster", "probe", "far");
  });
});
