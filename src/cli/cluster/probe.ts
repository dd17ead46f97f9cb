import { sshView } from "../../config/cluster-entry.ts";
import { EXIT, isRelayError } from "../../domain/errors.ts";
import { printFields, printJson } from "../print/table.ts";
import { defineVerb } from "../verb.ts";
import { NAMED, nameOf } from "./named.ts";
import { onHost } from "./on-host.ts";

/** clio-relay.cluster-probe.v1, as far as a person reads it. */
interface Probe {
  readonly cluster: string;
  readonly ssh_host: string;
  readonly ssh_reachable: boolean;
  readonly state: "ready" | "relay_executable_missing" | "relay_not_installed" | "ssh_unreachable";
  readonly detail: string;
  readonly repair: string | null;
}

export const verb = defineVerb({
  summary: "Look at a cluster's host: platform, room, installation, worker",
  details:
    "Changes nothing there. What is not there is an answer, and so is a host that cannot be reached; one that answers and lets nobody in is a failure. --json has all that was found.",
  ...NAMED,
  examples: [["cluster probe my-cluster", "what there is, and what would put it right"]],
  async run(call) {
    const { flags, args, io, json, relay } = call;
    const name = nameOf(args, flags);
    const probe = await onHost<"probe", Probe>(call, name, { task: "probe", command: "cluster probe", options: {} }).catch(
      async (error: unknown): Promise<Probe> => {
        // Of the way to the host, and not of what is on it, nor of who answered there.
        if (!isRelayError(error, "host_unreachable")) throw error;
        const entry = await relay.clusterEntry(name);
        return {
          ...{ schema_version: "clio-relay.cluster-probe.v1", cluster: name, ssh_host: sshView(entry)?.ssh_host ?? "" },
          ...{ ssh_reachable: false, state: "ssh_unreachable", detail: error.message, repair: error.hint ?? null },
          ...{ relay_executable: null, host: null },
        };
      },
    );
    if (json) await printJson(io.stdout, probe);
    else {
      await printFields(io.stdout, [
        ["cluster", probe.cluster],
        ["login node", probe.ssh_host],
        ["state", probe.state.replaceAll("_", " ")],
        ["detail", probe.detail],
        ["repair", probe.repair],
      ]);
    }
    return EXIT.ok;
  },
});
