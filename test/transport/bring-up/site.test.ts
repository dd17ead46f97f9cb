import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { findWorker, type Site } from "../../../src/transport/bring-up/find-worker.ts";
import { requireComponent } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { remoteAt } from "../bootstrap/host.ts";
import { SHELLS, type ShellHost } from "../script/shells.ts";

const directories = temporaryDirectories();
const signal = new AbortController().signal;
const PATH = "/usr/local/bin:/usr/bin:/bin";

async function siteOf(home: string, host: Partial<ShellHost> = {}): Promise<Site | null> {
  return (await findWorker(remoteAt(home, host), { cluster: "c", coreDir: null, site: true }, signal)).site;
}

function put(home: string, name: string, text: string, mode = 0o644): string {
  const file = path.join(home, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text, { mode });
  return file;
}

test("a host without a marker and without a scheduler says nothing of its site, and is asked only where it matters", async () => {
  const home = directories();
  expect(await siteOf(home)).toEqual({ markerSha256: null, schedulerCluster: null });
  expect((await findWorker(remoteAt(home), { cluster: "c", coreDir: null, site: false }, signal)).site).toBeNull();
});

for (const [name, shell] of Object.entries(SHELLS)) {
  const there = name === "dash" || name === "bash" || requireComponent(name as "busybox" | "ksh" | "mksh" | "zsh");
  test.skipIf(!there)(`the marker and what SLURM calls its cluster, with ${name}`, async () => {
    const home = directories();
    put(home, ".config/clio-relay/site-marker", "here\n");
    const slurm = put(home, "slurm.conf", "# ClusterName=not-this\nSlurmctldHost=a\n clustername = from-file # of the site\n");
    const env = { SLURM_CONF: slurm };
    expect(await siteOf(home, { shell, env })).toEqual({ markerSha256: sha256Hex(Buffer.from("here\n")), schedulerCluster: "from-file" });
    // The scheduler itself is asked first; one that has nothing to say is passed over.
    const scontrol = put(
      home,
      "bin/scontrol",
      "#!/bin/sh\nprintf 'Configuration data\\nClusterName             = from-scheduler\\n'\n",
      0o755,
    );
    const withTool = { shell, env, path: `${home}/bin:${PATH}` };
    expect(await siteOf(home, withTool)).toMatchObject({ schedulerCluster: "from-scheduler" });
    fs.writeFileSync(scontrol, "#!/bin/sh\necho 'slurm_load_ctl_conf error' >&2\nexit 1\n");
    expect(await siteOf(home, withTool)).toMatchObject({ schedulerCluster: "from-file" });
  });
}

test("what Grid Engine calls its cluster", async () => {
  const home = directories();
  put(home, "sge/default/common/cluster_name", "p6444 \n");
  put(home, "sge/other/common/cluster_name", "second\n");
  const env = { SGE_ROOT: `${home}/sge` };
  expect(await siteOf(home, { env })).toMatchObject({ schedulerCluster: "p6444" });
  expect(await siteOf(home, { env: { ...env, SGE_CELL: "other" } })).toMatchObject({ schedulerCluster: "second" });
});
