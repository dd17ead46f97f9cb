import type { Capabilities } from "../provider.ts";
import { lastWords, type RunSiteCommand, type SiteCommandEnd } from "../site-command.ts";
import { CONFIG_COMMAND, configValue, keepsAccounts } from "./scontrol.ts";
import type { SubmitWays } from "./submission.ts";

/** What the sources are called, in the order in which they are asked. */
export const SOURCES = ["squeue", "sacct", "scontrol"] as const;
export type Source = (typeof SOURCES)[number];

const QUERY_MS = 30_000;
const SUBMIT_MS = 60_000;
/** How soon the configuration is read again where it could not be. */
const AGAIN_MS = 60_000;
/** How long the list of all jobs is not asked for where it was too long. */
const CROWDED_MS = 600_000;

export interface SiteOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly run: RunSiteCommand;
  /** Milliseconds that never go backwards. */
  readonly monotonic: () => number;
}

/** A source's answer, or why there is none; `cut` where there was more than is read. */
export type Answer = { readonly text: string } | { readonly failure: string; readonly cut?: boolean };

/** What a site's SLURM has, and its commands. */
export class Site {
  #configuration: string | null = null;
  #configurationAt = Number.NEGATIVE_INFINITY;
  #crowdedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: SiteOptions) {}

  has(program: string): boolean {
    return Bun.which(program, { PATH: this.options.environment["PATH"] ?? "" }) !== null;
  }

  sources(): readonly Source[] {
    return SOURCES.filter((source) => this.has(source));
  }

  /** Ask; times in the answer are UTC. */
  async ask(argv: readonly [string, ...string[]]): Promise<Answer> {
    const environment = { ...this.options.environment, TZ: "UTC" };
    const end = await this.options.run({ argv, environment, deadlineMs: QUERY_MS });
    if (end.kind !== "ended" || end.code !== 0) return { failure: `${argv[0]} ${lastWords(end)}` };
    return end.cut ? { failure: `${argv[0]} said more than is read`, cut: true } : { text: end.stdout };
  }

  /** Whether there were more jobs than can be listed, a while ago. */
  get crowded(): boolean {
    return this.options.monotonic() - this.#crowdedAt < CROWDED_MS;
  }

  tooMany(): void {
    this.#crowdedAt = this.options.monotonic();
  }

  /** Have something done. The job gets the environment of a submission: without a time zone that is not the site's. */
  order(argv: readonly [string, ...string[]]): Promise<SiteCommandEnd> {
    return this.options.run({ argv, environment: this.options.environment, deadlineMs: argv[0] === "sbatch" ? SUBMIT_MS : QUERY_MS });
  }

  /** The controller's configuration; null where nobody says. Read once, and again after a minute where that failed. */
  async #config(): Promise<string | null> {
    if (this.#configuration !== null || this.options.monotonic() - this.#configurationAt < AGAIN_MS) return this.#configuration;
    this.#configurationAt = this.options.monotonic();
    const answer = this.has("scontrol") ? await this.ask(CONFIG_COMMAND) : { failure: "" };
    // A configuration without its version was printed without the controller.
    this.#configuration = "text" in answer && configValue(answer.text, "SLURM_VERSION") !== null ? answer.text : null;
    return this.#configuration;
  }

  /** Whether what has ended can be asked for; null where nobody says. */
  async accounting(): Promise<boolean | null> {
    if (!this.has("sacct")) return false;
    const configuration = await this.#config();
    return configuration === null ? null : keepsAccounts(configuration);
  }

  async ways(): Promise<SubmitWays> {
    const configuration = await this.#config();
    const select = configuration === null ? null : configValue(configuration, "SelectType");
    return { gpusPerJob: select === null || select === "select/cons_tres" };
  }

  async capabilities(): Promise<Capabilities> {
    const configuration = await this.#config();
    const accounting = await this.accounting();
    return {
      version: configuration === null ? await this.#commandVersion() : configValue(configuration, "SLURM_VERSION"),
      submits: this.has("sbatch"),
      clusterName: configuration === null ? null : configValue(configuration, "ClusterName"),
      accounting,
      sources: this.sources().filter((source) => source !== "sacct" || accounting !== false),
    };
  }

  async #commandVersion(): Promise<string | null> {
    const [first] = this.sources();
    const answer = first === undefined ? null : await this.ask([first, "--version"]);
    return answer !== null && "text" in answer ? (/\d+\.\d+(?:\.\d+)?\S*/.exec(answer.text)?.[0] ?? null) : null;
  }
}
