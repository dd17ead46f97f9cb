import { describe, expect, test } from "bun:test";
import type { SchedulerStatus } from "../../src/domain/scheduler.ts";
import type { Timers } from "../../src/lib/waiting/timers.ts";
import { SchedulerObserver } from "../../src/scheduler/observer.ts";
import { type Look, type NativeJob, nativeKey, type Observation, type SchedulerProvider } from "../../src/scheduler/provider.ts";
import { blankStatus } from "../../src/scheduler/status.ts";
import { ManualClock } from "../contract/queue-store/manual-clock.ts";

/** Timers of a clock that moves when it is told to. */
class ManualTimers implements Timers {
  readonly #due = new Set<{ at: number; run: () => void }>();

  constructor(private readonly clock: ManualClock) {}

  after(ms: number, run: () => void): () => void {
    const one = { at: this.clock.monotonic() + ms, run };
    this.#due.add(one);
    return () => this.#due.delete(one);
  }

  get waiting(): number {
    return this.#due.size;
  }

  /** Time passes, second by second; whatever is due runs to its end. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left >= 0; left -= 500) {
      for (const one of [...this.#due]) {
        if (one.at > this.clock.monotonic() || !this.#due.delete(one)) continue;
        one.run();
        for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      }
      if (left > 0) this.clock.advance(Math.min(500, left));
    }
  }
}

const job = (id: string, cluster: string | null = null): NativeJob => ({ id, cluster });

class Scene {
  readonly clock = new ManualClock();
  readonly timers = new ManualTimers(this.clock);
  readonly calls: { at: number; ids: string[]; look: Look }[] = [];
  readonly troubles: string[] = [];
  /** What there is to see, by key; a source that fails, with what it says. */
  readonly phases = new Map<string, Partial<SchedulerStatus>>();
  failing: Record<string, string> = {};
  broken = false;
  /** Called while a look is under way. */
  during: () => void = () => undefined;
  readonly observer: SchedulerObserver;

  constructor() {
    const provider = { name: "slurm", observe: (jobs: readonly NativeJob[], look: Look) => this.#observe(jobs, look) };
    this.observer = new SchedulerObserver({
      provider: provider as unknown as SchedulerProvider,
      clock: this.clock,
      timers: this.timers,
      onTrouble: (message) => this.troubles.push(message),
    });
    this.observer.start();
  }

  async #observe(jobs: readonly NativeJob[], look: Look): Promise<Observation> {
    this.calls.push({ at: this.clock.monotonic() - 1_000_000, ids: jobs.map(nativeKey), look });
    this.during();
    if (this.broken) throw new Error("broken");
    const asked = Object.entries(this.failing).filter(([source]) => look.without?.has(source) !== true);
    const failed = Object.keys(this.failing).length > 0;
    const statuses = jobs.flatMap((one): [string, SchedulerStatus][] => {
      const seen = this.phases.get(nativeKey(one));
      if (seen === undefined && failed) return [];
      const absent: Partial<SchedulerStatus> = { record_found: false, active_record_found: false };
      return [[nativeKey(one), { ...blankStatus("slurm", one.id, one.cluster, `${this.clock.now()}`), ...(seen ?? absent) }]];
    });
    return { statuses: new Map(statuses), failures: new Map(asked) };
  }
}

const RUNNING: Partial<SchedulerStatus> = { phase: "running", record_found: true, active_record_found: true };

describe("the observer", () => {
  test("asks about all that is watched at once, every 5 s, and about nothing when nothing is", async () => {
    const { observer, timers, calls, phases } = new Scene();
    await timers.pass(60_000);
    expect(calls).toEqual([]);
    const ends = Array.from({ length: 500 }, (_, index) => observer.watch(job(String(index + 1)), () => undefined));
    await timers.pass(20_000);
    expect(calls.map(({ at }) => at)).toEqual([60_000, 65_000, 70_000, 75_000, 80_000]);
    expect(calls.every(({ ids }) => ids.length === 500)).toBe(true);
    for (const end of ends) end();
    expect(timers.waiting).toBe(0);
    await timers.pass(60_000);
    expect(calls.length).toBe(5);
    expect(phases.size).toBe(0);
  });

  test("tells of every answer, and whether it says more than that time has passed", async () => {
    const { observer, timers, phases } = new Scene();
    const heard: [string, boolean][] = [];
    phases.set("7", { ...RUNNING, phase: "pending", queue_position: 2 });
    const end = observer.watch(job("7"), ({ phase }, changed) => heard.push([phase, changed]));
    await timers.pass(0);
    phases.set("7", { ...RUNNING, elapsed_seconds: 1 });
    await timers.pass(5_000);
    phases.set("7", { ...RUNNING, elapsed_seconds: 6 });
    await timers.pass(5_000);
    expect(heard).toEqual([
      ["pending", true],
      ["running", true],
      ["running", false],
    ]);
    end();
    await timers.pass(30_000);
    expect(heard.length).toBe(3);
  });

  test("places are asked for while something waits, or is not known", async () => {
    const { observer, timers, calls, phases } = new Scene();
    phases.set("7", RUNNING);
    observer.watch(job("7"), () => undefined);
    await timers.pass(5_000);
    expect(calls.map(({ look }) => look.positions)).toEqual([true, false]);
  });

  test("a source that fails rests for longer and longer, and the others do not", async () => {
    const scene = new Scene();
    scene.failing = { sacct: "refused" };
    scene.phases.set("7", RUNNING);
    scene.observer.watch(job("7"), () => undefined);
    await scene.timers.pass(300_000);
    const asked = scene.calls.filter(({ look }) => look.without?.has("sacct") !== true).map(({ at }) => at / 1_000);
    expect(asked).toEqual([0, 5, 15, 35, 75, 135, 195, 255]);
    expect(scene.calls.length).toBe(61);
    expect([...scene.observer.failures()]).toEqual([["sacct", "refused"]]);
    scene.failing = {};
    await scene.timers.pass(60_000);
    expect(scene.observer.failures().size).toBe(0);
    expect(scene.calls.at(-1)!.look.without?.size).toBe(0);
  });

  test("one look that has not a job which was active is not believed, two are", async () => {
    const { observer, timers, phases } = new Scene();
    const heard: string[] = [];
    phases.set("7", RUNNING);
    observer.watch(job("7"), ({ phase }) => heard.push(phase));
    await timers.pass(0);
    phases.delete("7");
    await timers.pass(5_000);
    expect(heard).toEqual(["running"]);
    phases.set("7", RUNNING);
    await timers.pass(5_000);
    phases.delete("7");
    await timers.pass(10_000);
    expect(heard).toEqual(["running", "running", "unknown"]);
  });

  test("a job that nobody watches is asked about once, and the answer counts for 5 s", async () => {
    const { observer, timers, calls, phases } = new Scene();
    phases.set("7", RUNNING);
    const asked = [observer.once(job("7")), observer.once(job("7")), observer.once(job("7", "alpha"))];
    await timers.pass(0);
    const answers = await Promise.all(asked);
    expect(answers.map(({ phase, record_found, cluster }) => [phase, record_found, cluster])).toEqual([
      ["running", true, null],
      ["running", true, null],
      ["unknown", false, "alpha"],
    ]);
    expect(calls).toMatchObject([{ ids: ["7", "7;alpha"] }]);
    await timers.pass(4_000);
    expect((await observer.once(job("7"))).phase).toBe("running");
    const other = observer.once(job("8"));
    await timers.pass(500);
    expect(calls.length).toBe(1);
    await timers.pass(1_000);
    expect((await other).record_found).toBe(false);
    expect(calls.map(({ at }) => at)).toEqual([0, 5_000]);
    await timers.pass(60_000);
    expect(calls.length).toBe(2);
    expect(timers.waiting).toBe(0);
  });

  test("who asks while a look is under way has its answer, where it is about the same job", async () => {
    const scene = new Scene();
    scene.phases.set("7", RUNNING);
    const answered: string[] = [];
    scene.during = () => {
      scene.during = () => undefined;
      for (const id of ["7", "8"]) void scene.observer.once(job(id)).then(({ phase }) => answered.push(`${id} ${phase}`));
    };
    scene.observer.watch(job("7"), () => undefined);
    await scene.timers.pass(0);
    expect(answered).toEqual(["7 running"]);
    await scene.timers.pass(5_000);
    expect(answered).toEqual(["7 running", "8 unknown"]);
    expect(scene.calls.length).toBe(2);
  });

  test("where a source does not answer, nothing is invented", async () => {
    const scene = new Scene();
    scene.failing = { squeue: "timed out" };
    const asked = scene.observer.once(job("9"));
    await scene.timers.pass(0);
    expect(await asked).toMatchObject({ phase: "unknown", record_found: null, active_record_found: null });
  });

  test("a fault is said, harms nobody, and is not the end", async () => {
    const scene = new Scene();
    scene.phases.set("7", RUNNING);
    const heard: string[] = [];
    scene.observer.watch(job("7"), () => {
      throw new Error("listener");
    });
    scene.observer.watch(job("7"), ({ phase }) => heard.push(phase));
    scene.broken = true;
    await scene.timers.pass(0);
    scene.broken = false;
    await scene.timers.pass(5_000);
    expect(heard).toEqual(["running"]);
    expect(scene.troubles).toEqual(["a look at the scheduler's jobs failed", "whoever watches 7 failed"]);
  });

  test("stopped, it asks nothing more, and leaves nobody waiting", async () => {
    const { observer, timers, calls } = new Scene();
    await timers.pass(0);
    const waiting = observer.once(job("7"));
    await observer.stop();
    expect((await waiting).record_found).toBe(null);
    expect((await observer.once(job("8"))).record_found).toBe(null);
    observer.watch(job("9"), () => undefined);
    await timers.pass(60_000);
    expect(calls).toEqual([]);
  });
});
