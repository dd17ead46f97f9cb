import path from "node:path";
import { InputClient } from "../api/client/input-client.ts";
import { inputTooLarge } from "../api/staging/input-too-large.ts";
import { type Pins, pinsOf } from "../api/staging/pins.ts";
import { type Candidate, type Snapshot, snapshots, stage } from "../api/staging/stage.ts";
import type { Settings } from "../config/settings.ts";
import { RelayError } from "../domain/errors.ts";
import { inputNameProblem, logicalNameOf } from "../domain/input-name.ts";
import { isBeneath } from "../execution/beneath.ts";
import { asked } from "./asked.ts";
import type { Place } from "./clusters.ts";

/** Where files of this machine are that may come along with a job, and how many. */
export interface LocalFiles extends Pick<Settings, "input_file_max_bytes" | "input_total_max_bytes" | "input_file_max_count"> {
  /** Absolute. */
  readonly root: string;
  readonly platform: NodeJS.Platform;
}

/** How long files may take to a worker, in milliseconds. */
const STAGE_MS = 120_000;

/** What a submission says of files that came along. */
export interface Staged {
  readonly inputs: Readonly<Record<string, string>>;
  readonly pins: Pins;
  /** Where the copies lie on the cluster, by name. */
  readonly paths: ReadonlyMap<string, string>;
}

/** Whether a path may be one of these files: one that is relative, or absolute below the root. Another one is a path of the cluster's. */
export const mayBeLocal = (files: LocalFiles | null, file: string): boolean =>
  !path.posix.isAbsolute(file) || (files !== null && isBeneath(files.root, file));

/**
 * Bring files to a cluster, each under a name. Repeated, it finds what is there.
 *
 * @param given names, and paths below the root; relative ones begin there
 * @throws RelayError path_escapes_root, local_file_unusable, payload_too_large, input_changed, request_validation_failed, observation_timeout, and as any operation
 */
export async function stagedFiles(
  files: LocalFiles | null,
  place: Place,
  given: readonly (readonly [name: string, file: string])[],
  signal: AbortSignal,
): Promise<Staged> {
  if (files === null) throw new RelayError("configuration_error", "there is no directory whose files may come along", {}, ROOT_HINT);
  const problem = inputNameProblem(given.map(([name]) => name));
  if (problem !== null) throw new RelayError("request_validation_failed", `inputs: ${problem}`);
  const candidates = await found(files, given);
  const work = async (bounded: AbortSignal): Promise<Staged> => {
    const options = { persist: <T>(one: () => Promise<T>) => one(), onProgress: () => undefined, signal: bounded };
    const client = new InputClient(place.entry.name, place.client.http, bounded);
    const taken = (await snapshots(candidates, options, client)) as (Snapshot & { readonly name: string })[];
    const records = await stage(client, taken, () => 1, options);
    const uses = taken.map(({ name, key: { sha256 } }, at) => ({ name, sha256, artifact_id: records[at]!.artifact.artifact_id }));
    const paths = new Map(uses.flatMap(({ name }, at) => (records[at]!.path === undefined ? [] : [[name, records[at]!.path]])));
    return { inputs: Object.fromEntries(uses.map(({ name, artifact_id }) => [name, artifact_id])), pins: pinsOf(uses), paths };
  };
  return asked(`the worker of ${place.entry.name}`, signal, work, STAGE_MS);
}

const ROOT_HINT = "CLIO_RELAY_INPUT_WORKSPACE_ROOT names it, in the environment of mcp-server";

async function found(files: LocalFiles, given: readonly (readonly [name: string, file: string])[]) {
  const { input_file_max_count: most, input_file_max_bytes: each, input_total_max_bytes: all, root, platform } = files;
  if (given.length > most)
    throw new RelayError("payload_too_large", `${given.length} inputs, and ${most} are allowed`, { max_count: most });
  const { InputFile } = await import("../api/staging/input-file.ts");
  const candidates: (Candidate & { readonly name: string })[] = [];
  let total = 0;
  for (const [name, file] of given) {
    const where = `${name}=${file}`;
    const input = await InputFile.at({ where, path: path.resolve(root, file), root, platform });
    total += input.size;
    if (input.size > each) throw inputTooLarge(where, input.size, each, "CLIO_RELAY_INPUT_FILE_MAX_BYTES allows more");
    candidates.push({ name, logicalName: logicalNameOf(path.basename(file)), file: input });
  }
  if (total > all) throw inputTooLarge("all inputs together", total, all, "CLIO_RELAY_INPUT_TOTAL_MAX_BYTES allows more");
  return candidates;
}
