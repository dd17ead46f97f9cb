import type { ClusterClient } from "../../api/client.ts";
import type { ClusterEntry } from "../../config/cluster-entry.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { programsOf } from "../../domain/worker-programs.ts";
import type { CliIo } from "../io.ts";
import { readLocalText } from "../local-file.ts";
import { printJson } from "../print/table.ts";
import { oneOf, text } from "../values.ts";
import { defineVerb, ignored, option, refused, toggle } from "../verb.ts";
import { localWorker, restartCommand, runningWorker } from "../worker/local-worker.ts";
import { ENTRY, entryWith } from "./entry-options.ts";
import { keepRoom } from "./frp-options.ts";
import { NAMED, nameOf } from "./named.ts";
import { forgetToken, keptCa, keptToken } from "./relay-token.ts";
import { warnOfRoute } from "./route-change.ts";
import { forgetsToken } from "./unset-options.ts";

const SETUP_MAX_BYTES = 64 * 1024;

export const verb = defineVerb({
  summary: "Register a cluster, or change one",
  details:
    "What is not given stays as it was; --unset takes it back. A worker that runs takes a change when it is restarted. The name is a label of this installation.",
  positionals: NAMED.positionals,
  flags: {
    ...NAMED.flags,
    ...ENTRY,
    pair: toggle(
      "Have this desktop let in by the code that worker pair prints on the cluster; it is asked for, or read from standard input",
    ),
    "env-setup": option(
      text("SHELL"),
      "Text that /bin/sh, or the login shell of a job with --login, reads before the job's command, or @FILE with it; a command in it that fails does not end the job, unless --env-setup-strict is given",
    ),
    "env-setup-file": option(text("FILE"), "The same, from a file"),
    "clear-env-setup": toggle("No such text any more"),
    "agent-npm-package": refused("no agent is installed from here: npm install, there, and --agent-bin"),
    "agent-npm-bin": refused("no agent is installed from here: npm install, there, and --agent-bin"),
    "jarvis-resource-graph-profile": refused("it is part of JARVIS-CD's own configuration there: jarvis rg"),
    "allow-jarvis-resource-graph-build": refused("nothing of JARVIS-CD is built: jarvis rg build, there", false),
    "no-allow-jarvis-resource-graph-build": ignored("nothing of JARVIS-CD is built anyway", false),
    "spack-executable": refused("JARVIS-CD finds it on the PATH that --env-setup makes, with module load spack for example"),
    "bootstrap-profile": option(oneOf("linux-user"), "How it is installed there: below the user's home, without root"),
    "dev-mode": refused("there is no such mode", false),
    "no-dev-mode": ignored("there is no such mode", false),
  },
  examples: [
    ["cluster add --name my-cluster --pair", "one whose worker has printed a pairing code; it is asked for"],
    ["cluster add --name my-cluster --ssh-host my-cluster-login", "a cluster behind a login node of ssh_config(5)"],
    ["cluster add --name my-cluster --relay-host wss://relay.example.edu", "one that is met at a relay-host, to which both sides dial out"],
    [
      "cluster add --name other --ssh-host other-login --frp-server-addr relay.example.edu --frp-protocol wss --direct-transport",
      "one that is met through a frps, from peer to peer where that can be",
    ],
    ["cluster add my-cluster --scheduler-provider slurm", "its jobs may ask for an allocation: job submit --scheduler slurm"],
    ["cluster add my-cluster --agent-bin '~/bin/codex' --agent-adapter codex", "it has an agent, for agent run"],
    ["cluster add local --worker-concurrency 9", "let the worker run eight jobs at a time"],
    [
      "cluster add local --env-setup '. /etc/profile.d/modules.sh; module load python'",
      "prepare every job; with job submit --login, `module` is there by itself",
    ],
  ],
  async run(call) {
    const { flags, args, io, json, relay } = call;
    const name = nameOf(
      args,
      flags,
      "clio-relay cluster add --name NAME --ssh-host HOST makes one; clio-relay cluster list shows which there are",
    );
    if (flags.pair) return (await import("./pair.ts")).pairedWith(call, name, flags);
    const setup = setupOf(io, flags);
    const token = await keptToken(io, relay, { cluster: name, given: flags["relay-token-file"], named: flags["relay-host"] !== undefined });
    const ca = keptCa(io, flags["relay-ca-file"]);
    const forget = await keepRoom(io, relay, name, flags);
    const change = (before: ClusterEntry | null) => entryWith(name, before, flags, setup, { token, ca });
    const { before: known, after: entry } = await relay.desktop.changeCluster(name, change).catch((error: unknown) => {
      forget();
      throw error;
    });
    if (forgetsToken(flags)) forgetToken(relay, name);
    if (json) await printJson(io.stdout, entry);
    else await io.stdout.write(`${known === null ? "added" : "changed"} ${entry.name}\n`);
    await warnOfRoute(io, known, entry);
    if (known === null && entry.mode === "local" && entry.name !== "local" && !json) {
      await io.stderr.write(
        `notice: ${entry.name} is a cluster of this machine; elsewhere it is with --ssh-host HOST, --relay-host URL or --frp-server-addr HOST\n`,
      );
    }
    const here = entry.mode === "local" ? localWorker(io, relay, entry.name) : relay.desktop.cluster(entry.name);
    if (await runsOtherwise(here, known, entry)) {
      const service =
        entry.mode === "local" ? "" : `clio-relay cluster restart-endpoint-service ${entry.name} where a service keeps it, else `;
      await io.stderr.write(
        `notice: a worker of ${entry.name} runs; this takes effect when it is restarted: ${service}${restartCommand(entry.name)}\n`,
      );
    }
    return EXIT.ok;
  },
});

/** Whether a worker runs that began with another entry than the one there is now. */
async function runsOtherwise(worker: ClusterClient, before: ClusterEntry | null, now: ClusterEntry): Promise<boolean> {
  const sameSetup =
    before?.env_setup === now.env_setup &&
    before?.env_setup_strict === now.env_setup_strict &&
    before?.scheduler_provider === now.scheduler_provider &&
    Bun.deepEquals(programsOf(before ?? {}), programsOf(now));
  if (before !== null && sameSetup && Bun.deepEquals(before.worker_capacity, now.worker_capacity)) return false;
  return (await runningWorker(worker)) !== null;
}

function setupOf(
  io: CliIo,
  flags: { readonly "env-setup": string | undefined; readonly "env-setup-file": string | undefined; readonly "clear-env-setup": boolean },
): string | null | undefined {
  const given = flags["env-setup"];
  const file = flags["env-setup-file"] ?? (given?.startsWith("@") ? given.slice(1) : undefined);
  const sources = [given, flags["env-setup-file"], flags["clear-env-setup"] ? "" : undefined].filter((source) => source !== undefined);
  if (sources.length > 1) throw new RelayError("usage", "--env-setup, --env-setup-file and --clear-env-setup exclude each other");
  if (flags["clear-env-setup"]) return null;
  if (file === undefined) return given;
  return readLocalText(io, given === undefined ? `--env-setup-file ${file}` : `--env-setup ${given}`, file, SETUP_MAX_BYTES);
}
