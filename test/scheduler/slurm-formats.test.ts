import { describe, expect, test } from "bun:test";
import { fits, jobsIn } from "../../src/scheduler/elements.ts";
import { Places } from "../../src/scheduler/position.ts";
import { Rows } from "../../src/scheduler/rows.ts";
import { newDelimiter } from "../../src/scheduler/slurm/fields.ts";
import { readNative } from "../../src/scheduler/slurm/ids.ts";
import { readSacct, sacctCommand } from "../../src/scheduler/slurm/sacct.ts";
import { configValue, keepsAccounts, readScontrol } from "../../src/scheduler/slurm/scontrol.ts";
import { readSqueue, squeueCommand } from "../../src/scheduler/slurm/squeue.ts";
import { phaseOf } from "../../src/scheduler/slurm/states.ts";
import { exitCode, instant, seconds } from "../../src/scheduler/slurm/values.ts";

const D = "|1f2e3d4c|";
/** Rows as squeue and sacct print them, written with bars for the delimiter. */
const rows = (...lines: readonly string[]): string => `${lines.map((line) => line.replaceAll(" | ", D)).join("\n")}\n`;

describe("states", () => {
  test("every one of squeue(1) and sacct(1), long and short", () => {
    const table: Record<string, string> = {
      pending: "PENDING PD REQUEUED RQ REQUEUE_FED RF REQUEUE_HOLD RH RESV_DEL_HOLD RD SPECIAL_EXIT SE EXPEDITING",
      allocated: "CONFIGURING CF COMPLETING CG RESIZING RS STAGE_OUT SO",
      running: "RUNNING R SUSPENDED S STOPPED ST SIGNALING SI",
      completed: "COMPLETED CD",
      canceled: "CANCELLED CA",
      failed: "BOOT_FAIL BF DEADLINE DL FAILED F NODE_FAIL NF OUT_OF_MEMORY OOM PREEMPTED PR TIMEOUT TO",
      unknown: "REVOKED RV SOMETHING_NEW",
    };
    for (const [phase, words] of Object.entries(table))
      for (const word of words.split(" ")) expect(`${word} ${phaseOf(word)}`).toBe(`${word} ${phase}`);
    expect(phaseOf("CANCELLED by 1000")).toBe("canceled");
    expect(phaseOf("")).toBe("unknown");
    expect(phaseOf("constructor")).toBe("unknown");
  });
});

describe("values", () => {
  test("instants", () => {
    expect(instant("2024-02-29T23:59:58")).toBe("2024-02-29T23:59:58.000Z");
    for (const none of ["N/A", "Unknown", "NONE", "", undefined, "2024-02-29", "2024-99-29T23:59:58"]) expect(instant(none)).toBe(null);
  });

  test("durations", () => {
    const table = {
      "0:07": 7,
      "12:34": 754,
      "1:02:03": 3_723,
      "2-03:04:05": 183_845,
      "2-03": 183_600,
      "1-00:30": 88_200,
      "00:00:01.250": 1,
    };
    for (const [text, total] of Object.entries(table)) expect(`${text} ${seconds(text)}`).toBe(`${text} ${total}`);
    for (const none of ["UNLIMITED", "NOT_SET", "INVALID", "Partition_Limit", "", undefined, "-1:00"]) expect(seconds(none)).toBe(null);
  });

  test("exit codes", () => {
    expect(exitCode("7:0")).toEqual({ exit_code: 7, signal: null });
    expect(exitCode("0:15")).toEqual({ exit_code: 0, signal: 15 });
    expect(exitCode("")).toEqual({ exit_code: null, signal: null });
  });
});

describe("ids", () => {
  test("of jobs, of elements of arrays, of parts, with their cluster; none of steps", () => {
    expect(readNative("4711")).toEqual({ id: "4711", cluster: null });
    expect(readNative("4711;alpha\n")).toEqual({ id: "4711", cluster: "alpha" });
    expect(readNative("12_3")?.id).toBe("12_3");
    expect(readNative("12_[1-9%2]")?.id).toBe("12_[1-9%2]");
    expect(readNative("12+1")?.id).toBe("12+1");
    for (const none of ["", "0", "12.batch", "12.0", "12_3.extern", "-1", "1e3", "12 13", "12;", "12;a b", "12_[1-9", "99999999999"]) {
      expect(readNative(none)).toBe(null);
    }
  });

  test("which row is whose", () => {
    const rate = (id: string, shown: string, raw = shown): number => fits(id, { raw, shown });
    expect(rate("12", "12")).toBe(3);
    expect(rate("13", "12")).toBe(0);
    expect(rate("12_3", "12_3", "15")).toBe(3);
    expect(rate("15", "12_3", "15")).toBe(3);
    expect(rate("12", "12_3", "15")).toBe(1);
    // The last element has the array's number.
    expect(rate("12", "12_9", "12")).toBe(1);
    expect(rate("12_9", "12_9", "12")).toBe(3);
    expect(rate("12_7", "12_[5-9%2]", "12")).toBe(2);
    expect(rate("12_3", "12_[5-9%2]", "12")).toBe(0);
    expect(rate("12_6", "12_[1-9:2]", "12")).toBe(0);
    expect(rate("12", "12_[5-9]", "12")).toBe(1);
    expect(rate("12_[1-3]", "12_2", "15")).toBe(1);
    expect(rate("12_[1-3]", "12_4", "15")).toBe(0);
    expect(rate("12+1", "12+1", "13")).toBe(3);
  });

  test("how many jobs wait in a row", () => {
    const many = (shown: string): number => jobsIn({ raw: "1", shown });
    expect([many("1"), many("1_[1-4,7%2]"), many("1_[0-9:3]"), many("1_[...]")]).toEqual([1, 5, 4, 1]);
  });
});

describe("squeue", () => {
  test("is asked for all states, for one id as for two, and for a cluster by its name", () => {
    const [program, ...args] = squeueCommand({ ids: ["7"] }, null, D);
    expect(program).toBe("squeue");
    expect(args).toContain("--jobs=7,7");
    expect(args).toContain("--sibling");
    expect(args).toContain("--states=all");
    expect(squeueCommand("all", "alpha", D)).toContain("--clusters=alpha");
    expect(squeueCommand({ name: "m" }, null, D)).toContain("--name=m");
    expect(newDelimiter()).not.toBe(newDelimiter());
  });

  test("a job of a federation is what the cluster says that has it; what has no number is no job", () => {
    const at = (id: string, state: string, node: string) =>
      `${id} | ${id} | ${state} | None | long | normal | phys | ada | 1 | 1 | 4G | ${node} | 2025-03-01T10:00:00 | N/A | N/A | 0:00 | 1:00 | clio-a-1`;
    const text = rows(
      ...[at("67108866", "REVOKED", ""), at("67108866", "RUNNING", "far1"), at("4294967294", "REVOKED", "")],
      ...[at("67108867", "PENDING", ""), at("67108867", "PENDING", ""), at("67108868", "PENDING", "")],
    );
    const read = new Rows(readSqueue(text, D)!);
    expect(read.of("67108866")!.answers).toMatchObject({ phase: "running", nodes: "far1" });
    expect(read.all.map(({ raw }) => raw)).not.toContain("4294967294");
    expect(new Places(read).of(read.of("67108868")!)).toMatchObject({ jobs_ahead: 1 });
    const record = "JobId=4294967294 JobName=clio-a-1 UserId=ada(1) JobState=REVOKED Partition=long\n";
    expect(readScontrol(record)).toEqual([]);
  });

  test("a job that waits, one that runs, one that has ended", () => {
    const text = rows(
      "41 | 41 | PENDING | Priority | long | normal | phys | ada | 2-4 | 16 | 4G |  | 2025-03-01T10:00:00 | 2025-03-01T18:00:00 | N/A | 0:00 | 1-00:00:00 | clio-a-1",
      "42 | 42 | RUNNING | None | long | normal | phys | ada | 2 | 16 | 4G | n[01-02] | 2025-03-01T09:00:00 | 2025-03-01T09:30:00 | 2025-03-02T09:30:00 | 2:05:07 | 1-00:00:00 | clio-b-1",
      "43 | 43 | TIMEOUT | TimeLimit | (null) | (null) | (null) | ada | 1 | 1 | 0 | n03 | 2025-03-01T08:00:00 | 2025-03-01T08:30:00 | 2025-03-01T08:31:00 | 1:00 | 1:00 | clio-c-1",
    );
    const read = readSqueue(text, D)!;
    expect(read.map(({ phase }) => phase)).toEqual(["pending", "running", "failed"]);
    expect(read[0]!.answers).toMatchObject({
      nodes: "2-4",
      cpus: 16,
      start_time: null,
      end_time: null,
      time_limit_seconds: 86_400,
      reason: "Priority",
      qos: "normal",
      account: "phys",
    });
    expect(read[1]!.answers).toMatchObject({
      nodes: "n[01-02]",
      start_time: "2025-03-01T09:30:00.000Z",
      end_time: null,
      elapsed_seconds: 7_507,
      reason: null,
    });
    expect(read[2]!.answers).toMatchObject({
      partition: null,
      qos: null,
      raw_state: "TIMEOUT",
      end_time: "2025-03-01T08:31:00.000Z",
      memory: null,
      reason: "TimeLimit",
    });
  });

  test("a name may hold anything and forges nothing", () => {
    const name = `x|y 50${"\n"}99|99|COMPLETED|None|p|q|a|u|1|1|0|n|N/A|N/A|N/A|0:00|1:00|clio-b-1`;
    const text = rows(`50 | 50 | RUNNING | None | p | q | a | eve | 1 | 1 | 0 | n1 | N/A | N/A | N/A | 0:01 | 1:00 | ${name}`);
    expect(readSqueue(`CLUSTER: alpha\n${text}`, D)!.map(({ raw, name: read }) => [raw, read])).toEqual([["50", "x|y 50"]]);
  });

  test("another form is no answer, and no lines are an empty one", () => {
    expect(readSqueue(rows("41 | 41 | PENDING"), D)).toBe(null);
    expect(readSqueue("", D)).toEqual([]);
  });
});

describe("sacct", () => {
  test("is asked without steps, and by name for a time", () => {
    expect(sacctCommand({ ids: ["7", "8"] }, null, D)).toContain("--jobs=7,8");
    expect(sacctCommand({ name: "m", since: Date.UTC(2025, 0, 2, 3, 4, 5) }, "alpha", D)).toEqual(
      expect.arrayContaining(["--starttime=2025-01-02T03:04:05", "--clusters=alpha"]),
    );
    expect(sacctCommand({ ids: ["7"] }, null, D)).toContain("--allocations");
  });

  test("what has ended, and how, of 20.11 and of later releases", () => {
    const text = rows(
      "42 | 42 | CANCELLED by 1000 | 0:15 | long | normal | phys | ada | 2 | 16 | 4Gn | n[01-02] | 2025-03-01T09:00:00 | 2025-03-01T09:00:00 | 2025-03-01T09:30:00 | 2025-03-01T10:00:00 | 1800 | 1440 | clio-b-1",
      "43 | 43 | OUT_OF_MEMORY | 0:125 | long | normal | phys | ada | 1 | 1 | 4G | n03 | 2025-03-01T09:00:00 | 2025-03-01T09:00:00 | 2025-03-01T09:30:00 | 2025-03-01T10:00:00 | 1800 | UNLIMITED | clio-c-1",
      "44 | 44 | PENDING | 0:0 | long | normal | phys | ada | 1 | 0 | 16? | None assigned | 2025-03-01T09:00:00 | Unknown | Unknown | Unknown | 0 | Partition_Limit | allocation",
      "45.batch | 45.batch | COMPLETED | 3:0 |  |  | phys |  | 1 | 1 |  | n03 | Unknown | Unknown | Unknown | Unknown | 1 |  | batch",
      "46 | 40_2 | FAILED | 7:0 | long | normal | phys | ada | 1 | 1 | 0 | n03 | Unknown | Unknown | Unknown | Unknown | 1 |  | arr",
    );
    const read = readSacct(text, D)!;
    expect(read.map(({ raw, shown, phase }) => [raw, shown, phase])).toEqual([
      ["42", "42", "canceled"],
      ["43", "43", "failed"],
      ["44", "44", "pending"],
      ["46", "40_2", "failed"],
    ]);
    expect(read[0]!.answers).toMatchObject({
      raw_state: "CANCELLED by 1000",
      exit_code: 0,
      signal: 15,
      elapsed_seconds: 1_800,
      time_limit_seconds: 86_400,
      memory: "4Gn",
    });
    expect(read[1]!.answers).toMatchObject({ time_limit_seconds: null, nodes: "n03" });
    expect(read[2]!.answers).toMatchObject({ nodes: "1", start_time: null });
    expect(read[2]!.answers.exit_code).toBe(undefined);
  });
});

describe("scontrol", () => {
  const record = (id: number, name: string, state: string, more = ""): string =>
    `JobId=${id} ${more}JobName=${name} UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A Priority=1 Nice=0 Account=phys QOS=normal JobState=${state} Reason=NonZeroExitCode Dependency=(null) Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=7:0 RunTime=00:01:02 TimeLimit=1-00:00:00 TimeMin=N/A SubmitTime=2025-03-01T09:00:00 EligibleTime=2025-03-01T09:00:00 AccrueTime=Unknown StartTime=2025-03-01T09:30:00 EndTime=2025-03-01T09:31:02 Deadline=N/A Partition=long NodeList=n01 NumNodes=1 Comment=JobState=COMPLETED \n`;

  test("what the controller remembers, elements of arrays too", () => {
    const read = readScontrol(
      record(7, "clio-a-1", "FAILED") +
        record(9, "arr", "RUNNING", "ArrayJobId=8 ArrayTaskId=3 ") +
        record(8, "arr", "PENDING", "ArrayJobId=8 ArrayTaskId=4-6%2 "),
    );
    expect(read.map(({ raw, shown, phase, name }) => [raw, shown, phase, name])).toEqual([
      ["7", "7", "failed", "clio-a-1"],
      ["9", "8_3", "running", "arr"],
      ["8", "8_[4-6%2]", "pending", "arr"],
    ]);
    expect(read[0]!.answers).toMatchObject({
      exit_code: 7,
      user: "ada",
      partition: "long",
      nodes: "n01",
      elapsed_seconds: 62,
      time_limit_seconds: 86_400,
    });
  });

  test("a name that is another job's record counts for nobody's", () => {
    const forged = `x\n${record(7, "clio-a-1", "COMPLETED").trim()}`;
    expect(readScontrol(record(7, "clio-a-1", "FAILED") + record(66, forged, "RUNNING")).map(({ raw }) => raw)).toEqual([]);
    expect(readScontrol("No jobs in the system\n")).toEqual([]);
  });

  test("its configuration: whether there are accounts, as 20.11 and as later releases say it", () => {
    const text = (type: string): string =>
      `Configuration data as of 2025-03-01T00:00:00\nAccountingStorageType   = ${type}\nSelectTypeParameters    = CR_CORE\nSelectType              = select/cons_tres\nSLURM_VERSION           = 23.11.4\n`;
    expect(["accounting_storage/none", "(null)", "accounting_storage/slurmdbd"].map((type) => keepsAccounts(text(type)))).toEqual([
      false,
      false,
      true,
    ]);
    expect(configValue(text("x"), "SelectType")).toBe("select/cons_tres");
    expect(configValue(text("x"), "Nothing")).toBe(null);
  });
});

describe("places", () => {
  const waiting = (id: string, shown: string, at: string, partition: string, qos = "normal", state = "PENDING"): string =>
    `${id} | ${shown} | ${state} | Priority | ${partition} | ${qos} | a | u | 1 | 1 | 0 |  | 2025-03-01T${at} | N/A | N/A | 0:00 | 1:00 | n`;

  test("by time of submission, in the same partition and QOS, an array's elements each", () => {
    const read = new Rows(
      readSqueue(
        rows(
          waiting("5", "5", "10:00:03", "long"),
          waiting("4", "4", "10:00:01", "long"),
          waiting("3", "3_[1-4]", "10:00:00", "long"),
          waiting("2", "2", "10:00:00", "long", "high"),
          waiting("1", "1", "09:00:00", "long", "normal", "RUNNING"),
          waiting("6", "6", "10:00:01", "long"),
        ),
        D,
      )!,
    );
    const places = new Places(read);
    const at = (id: string): unknown => places.of(read.of(id)!)?.queue_position ?? null;
    expect(["3", "4", "6", "5", "2", "1"].map(at)).toEqual([1, 5, 6, 7, 1, null]);
    expect(places.of(read.of("5")!)).toMatchObject({ jobs_ahead: 6, queue_position_scope: "partition long, QOS normal" });
  });
});
