import type { ClusterClient } from "../../api/client.ts";
import { type ClusterEntry, DEFAULT_CAPACITY } from "../../config/clusters.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import type { CliIo } from "../io.ts";
import { readLocalText } from "../local-file.ts";
import { NO_SCHEDULER } from "../no-engine.ts";
import { printJson } from "../print/table.ts";
import { oneOf, text, whole } from "../values.ts";
import { defineVerb, ignored, list, option, optionOr, refused, toggle } from "../verb.ts";
import { capacityWith, kindLimit } from "../worker/capacity-options.ts";
import { localWorker, restartCommand, runningWorker } from "../worker/local-worker.ts";
import { NAMED, nameOf } from "./named.ts";

const SETUP_MAX_BYTES = 64 * 1024;
const HERE = new Set(["", "localhost", "127.0.0.1", "::1"]);
const LATER = "this version reaches workers on the same machine only";

export const verb = defineVerb({
  summary: "Register a cluster, or change one",
  details:
    "What is not given stays as it was. A worker that runs takes a change when it is restarted. The name is a label of this installation.",
  positionals: NAMED.positionals,
  flags: {
    ...NAMED.flags,
    mode: optionOr(oneOf("local"), "local" as const, "How its worker is reached"),
    "env-setup": option(text("SHELL"), "Shell text that runs before every job, or @FILE with it"),
    "env-setup-file": option(text("FILE"), "The same, from a file"),
    "clear-env-setup": toggle("No such text any more"),
    "worker-concurrency": option(whole(2, 10_000), "Jobs at a time, control queries included"),
    "worker-control-query-concurrency": option(whole(1, 10_000), "How many of them are kept for control queries"),
    "worker-kind-concurrency": list(kindLimit, "Jobs of one kind at a time"),
    "clear-kind-concurrency": toggle("No limits by kind any more"),
    "ssh-host": option(text("HOST"), "Only localhost, as another way to say --mode local"),
    "scheduler-provider": option(oneOf("external"), `Scheduler of the cluster (${NO_SCHEDULER})`),
    "agent-adapter": refused("this version has no engine for agents"),
    "agent-bin": refused("this version has no engine for agents"),
    "agent-npm-package": refused("this version has no engine for agents"),
    "agent-npm-bin": refused("this version has no engine for agents"),
    "jarvis-bin": refused("this version has no engine for JARVIS-CD"),
    "jarvis-resource-graph-profile": refused("this version has no engine for JARVIS-CD"),
    "allow-jarvis-resource-graph-build": refused("this version has no engine for JARVIS-CD", false),
    "no-allow-jarvis-resource-graph-build": ignored("this version has no engine for JARVIS-CD", false),
    "spack-executable": refused("this version has no engine for JARVIS-CD"),
    "bootstrap-profile": refused(LATER),
    "core-dir": refused("set CLIO_RELAY_CORE_DIR for the worker"),
    "spool-dir": refused("set CLIO_RELAY_SPOOL_DIR for the worker"),
    "frpc-bin": refused(LATER),
    "frp-server-addr": refused(LATER),
    "frp-server-port": refused(LATER),
    "frp-protocol": refused(LATER),
    "frp-token-env": refused(LATER),
    "stcp-secret-env": refused(LATER),
    "direct-transport": refused(LATER, false),
    "no-direct-transport": ignored(LATER, false),
    "direct-transport-mode": refused(LATER),
    "direct-transport-fallback": refused(LATER),
    "target-hostname": refused(LATER),
    "ssh-host-key-sha256": refused(LATER),
    "scheduler-cluster-name": refused(LATER),
    "site-marker-sha256": refused(LATER),
    "dev-mode": refused("there is no such mode", false),
    "no-dev-mode": ignored("there is no such mode", false),
  },
  examples: [
    ["cluster add local --worker-concurrency 8", "let the worker run eight jobs at a time"],
    ["cluster add local --env-setup 'module load python'", "prepare the environment of every job"],
  ],
  async run({ flags, args, io, json, relay }) {
    const name = nameOf(args, flags);
    if (flags["ssh-host"] !== undefined && !HERE.has(flags["ssh-host"])) {
      throw new RelayError("configuration_error", `--ssh-host cannot be honoured: ${LATER}`, { option: "ssh-host" });
    }
    const setup = setupOf(io, flags);
    const { before: known, after: entry } = await relay.desktop.changeCluster(name, (before) => {
      const capacity = before?.worker_capacity ?? DEFAULT_CAPACITY;
      return {
        name,
        mode: flags.mode,
        env_setup: setup ?? (flags["clear-env-setup"] ? null : (before?.env_setup ?? null)),
        worker_capacity: capacityWith(flags["clear-kind-concurrency"] ? { ...capacity, kind_concurrency: {} } : capacity, {
          concurrency: flags["worker-concurrency"],
          control: flags["worker-control-query-concurrency"],
          kinds: flags["worker-kind-concurrency"],
        }),
      };
    });
    if (json) await printJson(io.stdout, entry);
    else await io.stdout.write(`${known === null ? "added" : "changed"} ${entry.name}\n`);
    if (await runsOtherwise(localWorker(io, relay, entry.name), known, entry)) {
      await io.stderr.write(
        `notice: a worker of ${entry.name} runs; this takes effect when it is restarted: ${restartCommand(entry.name)}\n`,
      );
    }
    return EXIT.ok;
  },
});

/** Whether a worker runs that began with another entry than the one there is now. */
async function runsOtherwise(worker: ClusterClient, before: ClusterEntry | null, now: ClusterEntry): Promise<boolean> {
  if (before !== null && before.env_setup === now.env_setup && Bun.deepEquals(before.worker_capacity, now.worker_capacity)) return false;
  return (await runningWorker(worker)) !== null;
}

function setupOf(
  io: CliIo,
  flags: { readonly "env-setup": string | undefined; readonly "env-setup-file": string | undefined; readonly "clear-env-setup": boolean },
): string | undefined {
  const given = flags["env-setup"];
  const file = flags["env-setup-file"] ?? (given?.startsWith("@") ? given.slice(1) : undefined);
  const sources = [given, flags["env-setup-file"], flags["clear-env-setup"] ? "" : undefined].filter((source) => source !== undefined);
  if (sources.length > 1) throw new RelayError("usage", "--env-setup, --env-setup-file and --clear-env-setup exclude each other");
  if (file === undefined) return given;
  return readLocalText(io, given === undefined ? `--env-setup-file ${file}` : `--env-setup ${given}`, file, SETUP_MAX_BYTES);
}
