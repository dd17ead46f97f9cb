import { VERSION } from "../../config/version.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import type { BootstrapReport } from "../../transport/bootstrap/report.ts";
import type { CliIo } from "../io.ts";
import { existing } from "../local-file.ts";
import { bytesText, durationText } from "../print/quantities.ts";
import { printFields, printJson } from "../print/table.ts";
import { keyTtl, sha256, text } from "../values.ts";
import { defineVerb, option, refused, toggle } from "../verb.ts";
import { NAMED, nameOf } from "./named.ts";
import { onHost } from "./on-host.ts";

export const verb = defineVerb({
  summary: "Install clio-relay on a cluster's host, and have its worker run",
  details:
    "Over one SSH connection, which the daemon keeps for 15 minutes: connect goes on with it. What is there already is left as it is, and a run that was cut is taken up where it " +
    "stopped. This executable is sent, unless --artifact names one for another platform.",
  positionals: NAMED.positionals,
  flags: {
    ...NAMED.flags,
    artifact: option(text("FILE"), "Executable to send in place of this one, as a release has it for that platform"),
    "relay-artifact-sha256": option(sha256, "SHA-256 that the executable has to have"),
    "allow-downgrade": toggle("Also when a newer version is there"),
    "key-ttl": option(
      keyTtl,
      "How long this desktop's key is let in from now on, such as 12h or 30d; none: until it is revoked. When left out, it is as long as before",
    ),
    "jarvis-from": option(
      { ...text("FILE|DIR"), suggests: "file" },
      "Bring JARVIS-CD: its source tree, an archive of that (tar, zip) or a wheel; the worker runs pipelines with it",
    ),
    "jarvis-sha256": option(sha256, "SHA-256 that the archive has to have"),
    "pyyaml-wheel": option(text("FILE"), "A wheel of PyYAML for it, where the cluster's Python has none"),
    "ssh-host": refused("it is part of the cluster's entry: clio-relay cluster add NAME --ssh-host HOST"),
    "relay-wheel": refused("there are no wheels: --artifact FILE"),
  },
  examples: [
    ["cluster bootstrap --cluster my-cluster", "install this executable there"],
    ["cluster bootstrap my-cluster --key-ttl 12h", "let this desktop's key in for half a day; the same again begins anew"],
    ["cluster bootstrap my-cluster --jarvis-from ./jarvis-cd", "bring JARVIS-CD from its source tree, for job submit --jarvis-yaml"],
    ["cluster bootstrap my-cluster --artifact ./clio-relay-linux-arm64", "one for another platform"],
  ],
  async run(call) {
    const { flags, args, io, json } = call;
    const name = nameOf(args, flags);
    const jarvis = jarvisOf(io, flags);
    const own = io.self.length === 1 ? io.self[0]! : null;
    const given = flags.artifact === undefined ? null : existing(io, `--artifact ${flags.artifact}`, flags.artifact);
    if (given === null && own === null) {
      throw new RelayError(
        "artifact_unfit",
        "this clio-relay runs from its source, and is no executable that could be sent",
        {},
        "--artifact FILE",
      );
    }
    const report = await onHost<"bootstrap", BootstrapReport>(call, name, {
      task: "bootstrap",
      command: "cluster bootstrap",
      givenUp: `what was sent stays, and clio-relay cluster bootstrap --cluster ${name} goes on from there`,
      options: {
        artifacts: [given ?? own!],
        expected_digest: flags["relay-artifact-sha256"] ?? null,
        version: given === null ? VERSION : null,
        allow_downgrade: flags["allow-downgrade"],
        ...(flags["key-ttl"] === undefined ? {} : { key_ttl_seconds: flags["key-ttl"] }),
        ...jarvis,
      },
    });
    if (json) await printJson(io.stdout, report);
    else await printFields(io.stdout, fieldsOf(report));
    for (const notice of report.notices) await io.stderr.write(`notice: ${notice}\n`);
    return EXIT.ok;
  },
});

/** @throws RelayError usage where there is nothing that an option could be of; local_file_missing */
function jarvisOf(
  io: CliIo,
  {
    "jarvis-from": from,
    "jarvis-sha256": digest,
    "pyyaml-wheel": wheel,
  }: { readonly [K in "jarvis-from" | "jarvis-sha256" | "pyyaml-wheel"]: string | undefined },
) {
  if (from === undefined) {
    if (digest === undefined && wheel === undefined) return {};
    throw new RelayError("usage", `--${digest === undefined ? "pyyaml-wheel" : "jarvis-sha256"} needs --jarvis-from`);
  }
  const jarvis = {
    source: existing(io, `--jarvis-from ${from}`, from),
    expected_digest: digest ?? null,
    wheel: wheel === undefined ? null : existing(io, `--pyyaml-wheel ${wheel}`, wheel),
  };
  return { jarvis };
}

const fieldsOf = ({ cluster, host, artifact, installation, worker, jarvis, sent_bytes, steps }: BootstrapReport) =>
  [
    ["cluster", cluster],
    ["host", `${host.user}@${host.hostname}`],
    ["version", `${artifact.version} (${artifact.digest.slice(0, 12)})`],
    ["installed in", installation.root],
    ["JARVIS-CD", jarvis === undefined ? null : `${jarvis.program} (SHA-256 of the source ${jarvis.digest.slice(0, 12)})`],
    ["sent", sent_bytes === 0 ? "nothing, it was there" : bytesText(sent_bytes)],
    [
      "worker",
      `${worker.state}${worker.pid === null ? "" : `, process ${worker.pid}`}${worker.supervised_by === null ? "" : ` (${worker.supervised_by})`}`,
    ],
    ["took", durationText(steps.reduce((sum, { took_ms }) => sum + took_ms, 0) / 1_000)],
  ] as const;
