import { describe, expect, test } from "bun:test";
import { endProcesses } from "../../src/execution/end-processes.ts";
import type { ProcessStat } from "../../src/lib/system/process-identity.ts";

/** A machine with processes that react to signals as told, on a clock of its own. */
class Machine {
  now = 0;
  readonly sent: [at: number, pid: number, signal: string][] = [];
  readonly later: { at: number; happen: () => void }[] = [];
  readonly running = new Map<number, (signal: string) => "ends" | "stays" | "refuses">();

  readonly clock = { now: () => this.now, monotonic: () => this.now };

  find = (): ProcessStat[] =>
    [...this.running.keys()].map((pid) => ({ pid, state: "S", ppid: 1, pgrp: pid, session: pid, threads: 1, start_time: 1 }));

  pause = (ms: number): Promise<void> => {
    this.now += ms;
    for (const { at, happen } of this.later.splice(0)) {
      if (at <= this.now) happen();
      else this.later.push({ at, happen });
    }
    return Promise.resolve();
  };

  kill = (pid: number, signal: string): void => {
    const reaction = this.running.get(pid);
    if (reaction === undefined) throw Object.assign(new Error("no such process"), { code: "ESRCH" });
    const does = reaction(signal);
    if (does === "refuses") throw Object.assign(new Error("not permitted"), { code: "EPERM" });
    this.sent.push([this.now, pid, signal]);
    if (does === "ends") this.running.delete(pid);
  };

  end = (graceMs: number, onForced?: () => void) =>
    endProcesses({
      find: this.find,
      graceMs,
      clock: this.clock,
      pause: this.pause,
      kill: this.kill,
      ...(onForced === undefined ? {} : { onForced }),
    });
}

const obeys = (signal: string) => (signal === "SIGTERM" || signal === "SIGKILL" ? "ends" : "stays");
const ignoresTerm = (signal: string) => (signal === "SIGKILL" ? "ends" : "stays");

describe("endProcesses", () => {
  test("does nothing where nothing runs", async () => {
    const machine = new Machine();
    expect(await machine.end(1_000)).toEqual({ signaled: new Set(), residual: [] });
    expect(machine.sent).toEqual([]);
    expect(machine.now).toBe(0);
  });

  test("sends TERM once, then CONT, and KILL only after the grace period", async () => {
    const machine = new Machine();
    machine.running.set(10, ignoresTerm);
    let forcedAt: number | null = null;
    expect(
      await machine.end(1_000, () => {
        forcedAt = machine.now;
      }),
    ).toEqual({ signaled: new Set([10]), residual: [] });
    expect(machine.sent.map(([, , signal]) => signal)).toEqual(["SIGTERM", "SIGCONT", "SIGKILL"]);
    expect(machine.sent[2]![0]).toBeGreaterThanOrEqual(1_000);
    expect(forcedAt!).toBe(machine.sent[2]![0]);
  });

  test("leaves those alone that a handler starts, until the grace period is over", async () => {
    const machine = new Machine();
    machine.running.set(10, (signal) => {
      if (signal === "SIGCONT") machine.later.push({ at: 50, happen: () => machine.running.set(11, obeys) });
      return ignoresTerm(signal);
    });
    await machine.end(1_000);
    expect(machine.sent.filter(([, pid]) => pid === 11).map(([, , signal]) => signal)).toEqual(["SIGKILL"]);
  });

  test("ends what appears between the first two looks", async () => {
    const machine = new Machine();
    machine.running.set(10, (signal) => {
      if (signal === "SIGTERM") machine.running.set(11, obeys);
      return obeys(signal);
    });
    expect(await machine.end(1_000)).toEqual({ signaled: new Set([10, 11]), residual: [] });
    expect(machine.now).toBeLessThan(1_000);
  });

  test("names what survives everything, after 30 s of KILL", async () => {
    const machine = new Machine();
    machine.running.set(10, () => "stays");
    machine.running.set(11, obeys);
    expect(await machine.end(2_000)).toEqual({ signaled: new Set([10, 11]), residual: [10] });
    expect(machine.now).toBeGreaterThanOrEqual(32_000);
    expect(machine.now).toBeLessThan(33_000);
    expect(machine.sent.filter(([, , signal]) => signal === "SIGKILL").length).toBeGreaterThan(100);
  });

  test("does not wait for what it may not signal", async () => {
    const machine = new Machine();
    machine.running.set(10, () => "refuses");
    machine.running.set(11, obeys);
    expect(await machine.end(2_000)).toEqual({ signaled: new Set([11]), residual: [10] });
    expect(machine.now).toBe(0);
  });

  test("without a grace period kills at once", async () => {
    const machine = new Machine();
    machine.running.set(10, obeys);
    await machine.end(0);
    expect(machine.sent).toEqual([[0, 10, "SIGKILL"]]);
  });
});
