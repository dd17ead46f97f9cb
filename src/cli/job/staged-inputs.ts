import path from "node:path";
import { InputClient } from "../../api/client/input-client.ts";
import type { ClusterClient } from "../../api/client.ts";
import { InputFile } from "../../api/staging/input-file.ts";
import { inputTooLarge } from "../../api/staging/input-too-large.ts";
import { type Pins, pinsOf } from "../../api/staging/pins.ts";
import { type Candidate, type Snapshot, type StagingOptions, snapshots, stage } from "../../api/staging/stage.ts";
import type { Settings } from "../../config/settings.ts";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { InputRecord } from "../../domain/input.ts";
import { inputNameProblem, inputVariable, logicalNameOf } from "../../domain/input-name.ts";
import type { JobReceipt, JobSubmissionInput, Owner } from "../../domain/job.ts";
import { LIMITS } from "../../domain/limits.ts";
import { interruptible } from "../follow/interrupt.ts";
import { Reconnect } from "../follow/reconnect.ts";
import type { CliIo } from "../io.ts";
import { resolveLocal } from "../local-path.ts";
import { bytesText } from "../print/quantities.ts";
import { overwrites } from "../print/style.ts";

type Limits = Pick<Settings, "input_file_max_bytes" | "input_total_max_bytes" | "input_file_max_count">;
export type InputSettings = Limits & Pick<Settings, "input_workspace_root">;

/** `NAME=PATH` of each `--input`, as they were given, or what another option brings along. */
export type GivenInputs = readonly (readonly [name: string, file: string, of?: OtherOption])[];

/** An option of its own for one file. */
export interface OtherOption {
  readonly option: string;
  /** More than this is of no use, whatever may be sent. */
  readonly maxBytes: number;
}

interface Named extends Candidate {
  readonly name: string;
}

/**
 * Find the files, and see that they may go; nothing is read yet.
 *
 * @param maxBytes what `--max-input-bytes` says
 * @throws RelayError usage, path_escapes_root, local_file_unusable, payload_too_large
 */
export async function findInputs(io: CliIo, given: GivenInputs, settings: InputSettings, maxBytes: number | undefined): Promise<Named[]> {
  const problem = inputNameProblem(given.map(([name]) => name));
  if (problem !== null) throw new RelayError("usage", `--input: ${problem}`);
  const { input_file_max_count: most } = settings;
  if (given.length > most) {
    const more = most < LIMITS.inputFilesMax ? `CLIO_RELAY_INPUT_FILE_MAX_COUNT allows up to ${LIMITS.inputFilesMax}` : undefined;
    throw new RelayError("payload_too_large", `${given.length} inputs, and ${most} are allowed`, { max_count: most }, more);
  }
  const root = settings.input_workspace_root ?? io.env.cwd;
  const found: Named[] = [];
  for (const [name, file, other] of given) {
    const option = other === undefined ? `--input ${name}=` : `${other.option} `;
    if (file === "") throw new RelayError("usage", `${option.trim()} names no file`);
    const where = `${option}${file}`;
    const input = await InputFile.at({ where, path: resolveLocal(io, file), root, platform: io.env.platform });
    if (other !== undefined && input.size > other.maxBytes) throw inputTooLarge(where, input.size, other.maxBytes);
    checkSize(where, input.size, maxBytes ?? settings.input_file_max_bytes);
    found.push({ name, logicalName: logicalNameOf(path.basename(file)), file: input });
  }
  const total = found.reduce((sum, { file }) => sum + file.size, 0);
  checkSize("all inputs together", total, maxBytes ?? settings.input_total_max_bytes);
  return found;
}

function checkSize(what: string, size: number, max: number): void {
  if (size > max) throw inputTooLarge(what, size, max, `--max-input-bytes ${roundedUp(size)} lets them go`);
}

const UNITS = ["", "KiB", "MiB", "GiB", "TiB"] as const;

/** A size that is easy to type, and large enough. */
function roundedUp(bytes: number): string {
  let unit = 0;
  let value = bytes;
  while (value > 1_024 && unit < UNITS.length - 1) {
    value = Math.ceil(value / 1_024);
    unit += 1;
  }
  return `${value}${UNITS[unit]}`;
}

export interface Wanted {
  readonly io: CliIo;
  readonly settings: InputSettings;
  readonly given: GivenInputs;
  readonly maxBytes: number | undefined;
  readonly cluster: ClusterClient;
}

/** How many artifacts of the same content are tried where each has as many consumers as it may have. */
const GENERATIONS = 100;

/**
 * Bring files along with a submission. Ctrl-C ends it before the job is submitted; what was sent is kept for a day.
 *
 * @param submit sends the submission once it says which artifacts its inputs are
 */
export async function submitWithInputs(
  { io, settings, given, maxBytes, cluster }: Wanted,
  submission: JobSubmissionInput,
  submit: (complete: JobSubmissionInput) => Promise<JobReceipt>,
): Promise<JobReceipt> {
  const env = "env" in submission.spec ? (submission.spec.env ?? {}) : {};
  const taken = given.map(([name]) => inputVariable(name)).find((variable) => Object.hasOwn(env, variable));
  if (taken !== undefined) throw new RelayError("usage", `--env ${taken}: that variable is to hold the path of an input`);
  const files = await findInputs(io, given, settings, maxBytes);
  return interruptible(
    io,
    () => "interrupted before the job was submitted; what was sent is kept for a day, and the same command goes on from there",
    async (signal) => {
      const { owner_session_id = null, owner_session_generation_id = null } = submission;
      const staging = new Staging(io, cluster, files, { owner_session_id, owner_session_generation_id }, signal);
      for (let left = GENERATIONS; ; left--) {
        const { inputs, pins } = await staging.staged();
        const refs = [...(submission.used_artifact_refs ?? []), ...pins];
        try {
          return await submit({ ...submission, spec: { ...submission.spec, inputs }, used_artifact_refs: refs } as JobSubmissionInput);
        } catch (error) {
          if (left === 0 || !isRelayError(error, "job_submission_refused") || error.data["cause"] !== "artifact_consumers") throw error;
          // One that was pinned besides is what was asked for.
          if (!staging.another(error.data["artifact_id"])) throw error;
        }
      }
    },
  );
}

/** What a submission says of its inputs. */
export interface StagedInputs {
  readonly inputs: Readonly<Record<string, string>>;
  readonly pins: Pins;
}

/** Files that are on their way to a job. */
export class Staging {
  readonly #options: StagingOptions;
  readonly #line: ProgressLine;
  readonly #generations = new Map<string, number>();
  #snapshots: (Snapshot & Named)[] | null = null;
  #records: readonly InputRecord[] = [];

  constructor(
    io: Pick<CliIo, "stderr" | "clock" | "env">,
    private readonly cluster: ClusterClient,
    private readonly files: readonly Named[],
    owner: Owner,
    private readonly signal: AbortSignal,
  ) {
    const reconnect = new Reconnect(io.stderr, io.clock, signal, () => this.#line.end());
    this.#line = new ProgressLine(io);
    this.#options = {
      persist: (work) => reconnect.persist(work),
      onProgress: ({ doing, bytes, total }) =>
        this.#line.show(
          `${doing === "reading" ? "reading inputs" : "sending inputs"}: ${bytesText(bytes)} of ${bytesText(total)}`,
          bytes >= total,
        ),
      owner,
      signal,
    };
  }

  /** Bring what is missing to the worker. Repeated, it finds what is there. @throws as `stage` */
  async staged(): Promise<StagedInputs> {
    try {
      const client = new InputClient(this.cluster.name, this.cluster.http, this.signal);
      this.#snapshots ??= (await snapshots(this.files, this.#options, client)) as (Snapshot & Named)[];
      const taken = this.#snapshots;
      const records = await stage(client, taken, (file) => this.#generationOf(file), this.#options);
      this.#records = records;
      const uses = taken.map(({ name, key: { sha256 } }, index) => ({ name, sha256, artifact_id: records[index]!.artifact.artifact_id }));
      return { inputs: Object.fromEntries(uses.map(({ name, artifact_id }) => [name, artifact_id])), pins: pinsOf(uses) };
    } finally {
      this.#line.end();
    }
  }

  /** This artifact may have no more consumers: another one of its content is to be used. @returns false where it is none of these */
  another(artifactId: unknown): boolean {
    const index = this.#records.findIndex(({ artifact }) => artifact.artifact_id === artifactId);
    const file = this.#snapshots?.[index];
    if (file === undefined) return false;
    this.#generations.set(identityOf(file), this.#generationOf(file) + 1);
    return true;
  }

  #generationOf(file: Snapshot): number {
    return this.#generations.get(identityOf(file)) ?? 1;
  }
}

const identityOf = ({ key, logicalName }: Snapshot): string => `${key.sha256} ${logicalName}`;

/** How often the line changes at most, in milliseconds. */
const SHOWN_MS = 100;

/** One line of a terminal that says how far something is; nothing elsewhere. */
class ProgressLine {
  #open = false;
  #shownAt = Number.NEGATIVE_INFINITY;
  readonly #stderr: CliIo["stderr"];
  readonly #shows: boolean;

  constructor({ stderr, env }: Pick<CliIo, "stderr" | "env">) {
    this.#stderr = stderr;
    this.#shows = overwrites(stderr, env);
  }

  show(text: string, last: boolean): void {
    const now = performance.now();
    if (!this.#shows || (!last && now - this.#shownAt < SHOWN_MS)) return;
    this.#shownAt = now;
    this.#open = true;
    void this.#stderr.write(`\r\x1b[K${text}`).catch(() => undefined);
  }

  /** Whatever is written next begins on a line of its own. */
  end(): void {
    if (this.#open) void this.#stderr.write("\r\x1b[K").catch(() => undefined);
    this.#open = false;
  }
}
