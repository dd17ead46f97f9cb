import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { SchedulerRequest, SchedulerStatus } from "../../../src/domain/scheduler.ts";
import { type BatchJob, type NativeJob, nativeKey, type SchedulerProvider } from "../../../src/scheduler/provider.ts";
import { eventually } from "../../runner/wait.ts";

/** A site that a provider works with. */
export interface SchedulerSite extends AsyncDisposable {
  readonly provider: SchedulerProvider;
  /** Where nodes and this process see the same files. */
  readonly directory: string;
  /** A provider of the same site, which lacks some of its commands. */
  without(...programs: readonly string[]): SchedulerProvider;
}

export interface Promises {
  /** Whether what has ended can be asked for after the scheduler has forgotten it; null where nothing has ended yet that would show it. */
  readonly accounting: boolean | null;
  /** Whether it says of a job that it was canceled, and by `terminate` sends the script a signal. */
  readonly tellsCanceled: boolean;
  /** What a request names that no site has. */
  readonly refusedRequest: v.InferInput<typeof SchedulerRequest>;
  /** A job's number that was never given. */
  readonly unknownId: string;
  /** The command that says what is active. */
  readonly activeSource: string;
  /** How many jobs of one task run at once. */
  readonly slots: number;
}

/** What every provider promises, as tests on one site. `more` may add tests of what only this one can. */
export function schedulerContract<Site extends SchedulerSite>(
  title: string,
  start: () => Promise<Site>,
  promises: Promises,
  more: (site: () => Site) => void = () => undefined,
): void {
  describe(`a scheduler: ${title}`, () => {
    let site: Site;
    let count = 0;
    const marker = (): string => `clio-${crypto.randomUUID().replaceAll("-", "")}-${++count}`;

    beforeAll(async () => {
      site = await start();
    });
    afterAll(() => site[Symbol.asyncDispose]());

    const batch = (name: string, lines: readonly string[], request: v.InferInput<typeof SchedulerRequest> = {}): BatchJob => {
      const directory = path.join(site.directory, name);
      fs.mkdirSync(directory);
      const parsed = v.parse(SchedulerRequest, request);
      const script = path.join(directory, "batch.sh");
      fs.writeFileSync(script, site.provider.script(parsed, null, lines).text, { mode: 0o700 });
      return { request: parsed, marker: name, script, output: path.join(directory, "scheduler.log"), workdir: directory };
    };
    const submitted = async (job: BatchJob): Promise<NativeJob> => {
      const outcome = await site.provider.submit(job);
      expect(outcome.kind, outcome.said).toBe("accepted");
      return (outcome as Extract<typeof outcome, { kind: "accepted" }>).native;
    };
    const status = async (native: NativeJob, provider = site.provider): Promise<SchedulerStatus> => {
      const { statuses } = await provider.observe([native], { positions: true });
      return v.parse(SchedulerStatus, statuses.get(nativeKey(native)));
    };
    const reached = (native: NativeJob, ...phases: readonly string[]): Promise<SchedulerStatus> =>
      eventually(
        async () => {
          const seen = await status(native);
          return phases.includes(seen.phase) ? seen : null;
        },
        { what: `${native.id} in ${phases.join(", ")}`, everyMs: 200 },
      );
    const ended = (native: NativeJob): Promise<SchedulerStatus> => reached(native, "completed", "failed", "canceled");
    const said = (name: string, file = "said"): string => {
      const at = path.join(site.directory, name, file);
      return fs.existsSync(at) ? fs.readFileSync(at, "utf8") : "";
    };

    test("says what the site has", async () => {
      const capabilities = await site.provider.probe();
      expect(capabilities).toMatchObject({ submits: true, accounting: promises.accounting, version: expect.stringMatching(/^\d+\.\d+/) });
      expect(capabilities.sources[0]).toBe(promises.activeSource);
    });

    test("a job is accepted once, is found by its name, runs in its directory, and ends with its code", async () => {
      const good = batch(marker(), ["pwd > said", "echo out", "echo err >&2", "until [ -e go ]; do sleep 0.1; done"]);
      const bad = batch(marker(), ["exit 7"]);
      const natives = [await submitted(good), await submitted(bad)] as const;
      expect(await site.provider.find(good.marker)).toMatchObject({ found: [natives[0]], complete: true });
      fs.writeFileSync(path.join(good.workdir, "go"), "");
      const [first, second] = [await ended(natives[0]), await ended(natives[1])];
      expect(first).toMatchObject({ phase: "completed", record_found: true, active_record_found: false, name: good.marker });
      expect(second).toMatchObject({ phase: "failed", record_found: true, active_record_found: false, name: bad.marker });
      const code = await eventually(async () => (await status(natives[1])).exit_code, { what: "the exit code", everyMs: 200 });
      expect(code).toBe(7);
      expect(first.end_time! >= first.submit_time!).toBe(true);
      expect(fs.realpathSync(said(good.marker).trim())).toBe(fs.realpathSync(good.workdir));
      expect(said(good.marker, "scheduler.log")).toBe("out\nerr\n");
      expect(said(good.marker, "scheduler.log")).not.toContain(good.marker);
    });

    test("what is refused is in no source, and a name that nobody has is found nowhere", async () => {
      const job = batch(marker(), ["exit 0"], promises.refusedRequest);
      const outcome = await site.provider.submit(job);
      expect(outcome.kind, outcome.said).toBe("refused");
      expect(outcome.said).not.toBe("");
      expect(await site.provider.find(job.marker)).toEqual({ found: [], complete: true, reached: true, said: null });
    });

    test("two jobs of one name are both found", async () => {
      const job = batch(marker(), ["sleep 600"]);
      const natives = [await submitted(job), await submitted(job)];
      const { found, complete } = await site.provider.find(job.marker);
      expect(complete).toBe(true);
      expect(found.map(({ id }) => id).sort()).toEqual(natives.map(({ id }) => id).sort());
      for (const native of natives) await site.provider.cancel(native, job.marker);
    });

    test("a number that was never given is not found, and each of many is looked at on its own", async () => {
      const job = batch(marker(), ["sleep 600"]);
      const native = await submitted(job);
      const unknown = { id: promises.unknownId, cluster: null };
      const { statuses, failures } = await site.provider.observe([unknown, native, unknown]);
      expect(failures.size).toBe(0);
      expect(statuses.get(nativeKey(unknown))).toMatchObject({ phase: "unknown", record_found: false, active_record_found: false });
      expect(statuses.get(nativeKey(native))).toMatchObject({ record_found: true, active_record_found: true, name: job.marker });
      await site.provider.cancel(native, job.marker);
    });

    test("a cancel ends exactly the job that has the name", async () => {
      const job = batch(marker(), ["sleep 30"]);
      const other = batch(marker(), ["sleep 30"]);
      const [native, neighbour] = [await submitted(job), await submitted(other)];
      await reached(native, "running");
      expect((await site.provider.cancel(native, other.marker)).kind).toBe("refused");
      expect((await site.provider.terminate(native, other.marker)).kind).toBe("refused");
      expect((await site.provider.cancel({ id: promises.unknownId, cluster: null }, job.marker)).kind).toBe("refused");
      expect(await status(native)).toMatchObject({ phase: "running" });
      expect((await site.provider.cancel(native, job.marker)).kind).toBe("asked");
      const end = await ended(native);
      expect(end.phase).toBe(promises.tellsCanceled ? "canceled" : "failed");
      expect((await site.provider.cancel(native, job.marker)).kind).toBe("refused");
      expect((await reached(neighbour, "pending", "allocated", "running")).active_record_found).toBe(true);
      await site.provider.cancel(neighbour, other.marker);
    });

    test("whoever waits has a place, which is said to be approximate", async () => {
      const busy = batch(marker(), ["sleep 60"]);
      const natives: NativeJob[] = [];
      for (let index = 0; index < promises.slots + 3; index++) natives.push(await submitted(busy));
      const waiting = await eventually(
        async () => {
          const { statuses } = await site.provider.observe(natives, { positions: true });
          const pending = natives.map((native) => statuses.get(nativeKey(native))!).filter(({ phase }) => phase === "pending");
          return pending.length >= 2 && statuses.get(nativeKey(natives[0]!))?.phase === "running" ? pending : null;
        },
        { what: "jobs that wait", everyMs: 200 },
      );
      for (const one of waiting) {
        expect(one.queue_position).toBe(one.jobs_ahead! + 1);
        expect(one.queue_position_note).toContain("approximate");
      }
      expect(new Set(waiting.map(({ queue_position }) => queue_position)).size).toBe(waiting.length);
      for (const native of natives.toReversed()) await site.provider.cancel(native, busy.marker);
    });

    test("a source that is not there, or not to be asked, is no answer", async () => {
      const unknown = { id: promises.unknownId, cluster: null };
      const { statuses, failures } = await site.provider.observe([unknown], { without: new Set([promises.activeSource, "scontrol"]) });
      expect(statuses.size).toBe(0);
      expect(failures.size).toBe(0);
      const cut = site.without(promises.activeSource, "scontrol");
      expect(await cut.find(marker())).toMatchObject({ found: [], complete: false });
      expect((await cut.cancel(unknown, marker())).kind).toBe("doubt");
    });

    test("a host that has none of the commands is no site of it", async () => {
      const none = site.without("squeue", "sacct", "scontrol", "qstat", "qacct", "sbatch", "qsub");
      expect(await none.probe().catch((error) => error.code)).toBe("scheduler_unavailable");
      const job = batch(marker(), ["exit 0"]);
      expect((await none.submit(job)).kind).toBe("refused");
    });

    more(() => site);

    if (!promises.tellsCanceled) {
      test("a signal for the batch script is refused, and the job goes on", async () => {
        const job = batch(marker(), ["sleep 30"]);
        const native = await submitted(job);
        expect((await site.provider.terminate(native, job.marker)).kind).toBe("refused");
        expect((await status(native)).active_record_found).toBe(true);
        await site.provider.cancel(native, job.marker);
      });
      return;
    }

    test("TERM reaches the batch script itself", async () => {
      const job = batch(marker(), ["trap 'echo term > said; exit 9' TERM", "touch ready", "while true; do sleep 0.1; done"]);
      const native = await submitted(job);
      await eventually(() => fs.existsSync(path.join(job.workdir, "ready")), { what: "the script" });
      const outcome = await eventually(
        async () => {
          const one = await site.provider.terminate(native, job.marker);
          return one.kind === "asked" ? one : null;
        },
        { what: "a signal that is taken" },
      );
      expect(outcome.kind).toBe("asked");
      await eventually(() => said(job.marker) !== "", { what: "the signal" });
      expect(said(job.marker)).toBe("term\n");
      expect((await ended(native)).phase).toBe("failed");
    });
  });
}
