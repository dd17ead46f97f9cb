import { crateFiles } from "../../api/provenance/crate-files.ts";
import { type History, historyOf } from "../../api/provenance/history.ts";
import { provDocument } from "../../api/provenance/prov-json.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { CLUSTER } from "../cluster-option.ts";
import { findJob } from "../find-record.ts";
import { interruptible } from "../follow/interrupt.ts";
import type { CliIo } from "../io.ts";
import { isOccupied, OVERWRITE, refuseOthers } from "../overwrite.ts";
import { jsonText, oneLine } from "../print/safe-text.ts";
import { printJson } from "../print/table.ts";
import { byteCount, jobId, oneOf, type Reader, text } from "../values.ts";
import { defineVerb, option, optionOr } from "../verb.ts";
import { once, writeCrate } from "./crate.ts";
import { save } from "./fetched-file.ts";
import { targetFile } from "./target-file.ts";

const NOTHING = -1;
const included: Reader<number> = {
  label: "SIZE|all|none",
  form: "a size such as 64MiB, all, or none",
  read: (given) => (given === "all" ? Number.MAX_SAFE_INTEGER : given === "none" ? NOTHING : byteCount.read(given)),
  suggests: ["all", "none"],
};

const SILENT = { show: () => Promise.resolve(), clear: () => Promise.resolve() };

export const verb = defineVerb({
  summary: "Say what a job used, did and left, as PROV or RO-Crate",
  details:
    "--format json is PROV-JSON (W3C): the job, what it used and which jobs left that, what was to be run, and every file that it left. --format ro-crate is a ZIP archive that is an RO-Crate 1.1 with the profile " +
    "Process Run Crate: the same, and the files themselves. Files of up to 64 MiB are put into it, each verified by its SHA-256; larger ones are named, with size and SHA-256. --include moves that bound. Of several " +
    "attempts that left a file of one name, the last one's is in the crate.\n\nA crate has to state a license; where --license says none, it says that nobody has stated one. A file that is there already is replaced with --overwrite only.",
  positionals: { job: jobId },
  flags: {
    cluster: CLUSTER,
    format: optionOr(oneOf("json", "ro-crate"), "json", "What to make"),
    output: option(text("FILE"), "Where to put it: a file, a directory, or - for standard output", "o"),
    include: option(included, "Files of up to this size are put into the crate; 64MiB unless given"),
    ...OVERWRITE,
    license: option(text("LICENSE"), "License of the crate: an SPDX identifier, a URL, or a sentence"),
    author: option(text("NAME|URL"), "Who had the job run: a name, or a URL such as an ORCID"),
  },
  examples: [
    ["job provenance job_0123456789abcdef0123456789abcdef", "PROV-JSON, on standard output"],
    ["job provenance last --format ro-crate -o crate.zip --license CC-BY-4.0", "a crate with its files"],
    ["job provenance last --format ro-crate -o crate.zip --include none", "a crate that only names them"],
  ],
  async run({ flags, args, io, json, relay }) {
    const { format, output, include } = flags;
    if (format === "json" && (include ?? flags.license ?? flags.author) !== undefined) {
      throw new RelayError("usage", "--include, --license and --author are for --format ro-crate");
    }
    if (format === "ro-crate" && output === undefined) throw new RelayError("usage", "a crate is a file: where to?", {}, "-o crate.zip");
    if (output === "-" && json) throw new RelayError("usage", "--json and -o - exclude each other");
    const { cluster, id } = await findJob({ io, relay }, flags.cluster, args.job);
    const name = format === "json" ? `${id}.prov.json` : `${id}.crate.zip`;
    const target = output === undefined || output === "-" ? null : targetFile(io, output, name);
    // Two documents of one job differ by the time of their making, if by nothing else.
    if (target !== null && !flags.overwrite && isOccupied(target)) refuseOthers([target], "another -o");
    await interruptible(
      io,
      () => (target === null ? null : `interrupted; ${target} was not touched`),
      async (signal) => {
        const history = await historyOf(cluster, id, signal);
        if (format === "json") {
          await writeProv(io, history, target, `-o ${output}`);
          if (json && target !== null) await printJson(io.stdout, { job_id: id, format, path: target });
        } else {
          const files = crateFiles(endedOnly(history), include ?? LIMITS.artifactStoreBytes);
          const words = { license: flags.license ?? null, author: flags.author ?? null };
          await writeCrate(io, cluster, { history, files, words }, target, `-o ${output}`, signal);
          const shown = files.map(({ artifact, path, role }) => ({
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            role,
            path_in_crate: path,
          }));
          if (json) await printJson(io.stdout, { job_id: id, format, path: target, files: shown });
          const named = files.filter(({ path }) => path === null).length;
          if (named > 0) await io.stderr.write(`notice: ${named} of ${files.length} files are named, and not in the crate (--include)\n`);
        }
        if (target !== null && !json) await io.stdout.write(`${io.stdout.isTerminal ? oneLine(target) : target}\n`);
      },
    );
    return EXIT.ok;
  },
});

async function writeProv(io: CliIo, history: History, target: string | null, where: string): Promise<void> {
  const document = provDocument(history);
  if (target === null) return printJson(io.stdout, document);
  const bytes = new TextEncoder().encode(`${jsonText(document, 2)}\n`);
  await save(once(bytes), target, SILENT, where);
}

/** What a job will leave is not known before it has ended. */
function endedOnly(history: History): History {
  const { job } = history;
  if (job.outcome !== null) return history;
  throw new RelayError(
    "state_conflict",
    `${job.job_id} has not ended, and a crate is about what a job left`,
    { job_id: job.job_id, state: job.state },
    `clio-relay job wait ${job.job_id}`,
  );
}
