import { createHash } from "node:crypto";
import type { Artifact } from "../../src/domain/artifact.ts";
import type { Event } from "../../src/domain/event.ts";
import { historyFaults } from "../roles/worker/harness.ts";
import type { Relay } from "../runner/relay.ts";
import { eventually } from "../runner/wait.ts";
import type { Campaign } from "./campaign.ts";

/** Exit codes of a command that came while there was no link, and said nothing else. */
const NO_LINK = [4, 5];

/** What a follower got, over however many tries before its first byte. */
interface Followed {
  readonly code: number;
  readonly bytes: Buffer;
  readonly stderr: string;
}

export interface LinkLoadOptions {
  readonly campaign: Campaign;
  /** The users' installation. */
  readonly desk: Relay;
  readonly rounds: number;
  readonly jobs: number;
}

/** What users do over a link while it is cut: they submit, follow events and logs of every third job, and read what jobs left. */
export class LinkLoad {
  /** The round that the faults are in. */
  round = 0;
  #over = false;
  contents = 0;
  /** Followers that said that they went on after an outage; known after `wrong`. */
  outages = 0;
  readonly #altered: string[] = [];
  readonly #watches: { jobId: string; key: string; events: Promise<Followed>; log: Promise<Followed> }[] = [];
  readonly #done: Promise<unknown>;

  constructor(private readonly options: LinkLoadOptions) {
    this.#done = Promise.all([this.#submitting(), this.#reading()]);
  }

  get watched(): number {
    return this.#watches.length;
  }

  /** No further round comes; resolves when all that was begun is done. */
  async over(): Promise<void> {
    this.#over = true;
    await this.#done;
    await this.options.campaign.ended();
  }

  /** One that finds no link has said nothing yet, and is started again; one that has begun goes on by itself. */
  async #follow(...args: string[]): Promise<Followed> {
    return eventually(
      async () => {
        const child = this.options.desk.start(args);
        const [bytes, stderr, code] = await Promise.all([child.stdout.bytes(), child.stderr.text(), child.exited]);
        return bytes.length === 0 && NO_LINK.includes(code) ? false : { code, bytes: Buffer.from(bytes), stderr };
      },
      { timeoutMs: 900_000, everyMs: 200, what: args.slice(0, 3).join(" ") },
    );
  }

  async #submitting(): Promise<void> {
    const { campaign, rounds, jobs } = this.options;
    const { submitted } = campaign;
    for (let i = 0; i < jobs; i++) {
      await eventually(() => this.#over || i * rounds <= this.round * jobs, { timeoutMs: 600_000, what: "the round of a job" });
      const before = submitted.length;
      await campaign.submit(1);
      if (submitted.length === before || i % 3 !== 0) continue;
      const { jobId, job } = submitted.at(-1)!;
      const events = this.#follow("job", "watch", jobId, "--json");
      const log = this.#follow("job", "read-log", jobId, "--stream", "stdout", "--raw", "-f");
      this.#watches.push({ jobId, key: job.work.key, events, log });
    }
  }

  /** Reads what jobs have left so far, all the time. */
  async #reading(): Promise<void> {
    const { desk, campaign } = this.options;
    const { submitted, faults } = campaign;
    while (!this.#over) {
      const one = submitted.at(faults.below(submitted.length));
      const list = one === undefined ? null : await desk.run(["job", "list-artifacts", one.jobId, "--json"]);
      const { artifacts } = JSON.parse(list?.code === 0 ? list.stdout : '{"artifacts":[]}') as { artifacts: Artifact[] };
      const artifact = artifacts.toSorted((a, b) => b.size_bytes - a.size_bytes)[0];
      if (artifact === undefined || artifact.size_bytes === 0) {
        await Bun.sleep(50);
        continue;
      }
      const { code, bytes, stderr } = await this.#follow("job", "read-artifact", artifact.artifact_id, "-o", "-");
      const digest = createHash("sha256").update(bytes).digest("hex");
      this.contents++;
      if (code !== 0 || digest !== artifact.sha256)
        this.#altered.push(`${artifact.artifact_id}: ${code}, ${bytes.length} bytes, ${stderr}`);
    }
  }

  /** What was lost, doubled or altered on the way, of all that was followed and read. */
  async wrong(): Promise<string[]> {
    const wrong = [...this.#altered];
    for (const { jobId, key, events, log } of this.#watches) {
      const [watched, followed] = await Promise.all([events, log]);
      this.outages += [watched, followed].filter(({ stderr }) => stderr.includes("connected again")).length;
      const all = watched.bytes
        .toString()
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Event);
      wrong.push(...historyFaults(all).map((one) => `${jobId} ${key}, as watched: ${one}`));
      const whole = await this.options.desk.bytes("job", "read-log", jobId, "--stream", "stdout", "--raw");
      if (!whole.equals(followed.bytes)) wrong.push(`${jobId} ${key}: followed ${followed.bytes.length} bytes of ${whole.length}`);
      if (followed.code !== 0 || ![0, 10].includes(watched.code))
        wrong.push(
          `${jobId} ${key}: watch ended with ${watched.code}, read-log with ${followed.code}: ${followed.stderr}${watched.stderr}`,
        );
    }
    return wrong;
  }
}
