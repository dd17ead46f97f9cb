import { prepareRunDirectory } from "../../config/run-directory.ts";
import { EXIT } from "../../domain/errors.ts";
import { runBridge } from "../../roles/worker/bridge.ts";
import { CLUSTER } from "../cluster-option.ts";
import type { Reader } from "../values.ts";
import { defineVerb, required } from "../verb.ts";
import { localCluster } from "./local-worker.ts";

const nonce: Reader<string> = {
  label: "HEX",
  form: "32 hexadecimal digits",
  read: (given) => (/^[0-9a-f]{32}$/.test(given) ? given : undefined),
};

export const verb = defineVerb({
  summary: "Carry a link between standard input and output and the worker",
  details:
    "What a desktop runs where sshd forwards no sockets. The session inside is answered by the worker, with the keys that bootstrap exchanged.",
  positionals: {},
  flags: { cluster: CLUSTER, nonce: required(nonce, "Said before the first byte, so that it can be told from what a profile prints") },
  examples: [["worker bridge --cluster local --nonce 00112233445566778899aabbccddeeff", "what a desktop runs"]],
  async run({ flags, io, relay }) {
    const { name } = await localCluster(io, relay, flags.cluster);
    prepareRunDirectory(relay.paths, io.env);
    await runBridge(relay.paths.workerLinkSocket(name), flags.nonce, process.stdin, process.stdout);
    return EXIT.ok;
  },
});
