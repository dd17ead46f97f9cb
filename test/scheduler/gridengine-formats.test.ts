import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { SchedulerRequest } from "../../src/domain/scheduler.ts";
import { readNative, terseId } from "../../src/scheduler/gridengine/ids.ts";
import { readQacct } from "../../src/scheduler/gridengine/qacct.ts";
import { readQstat } from "../../src/scheduler/gridengine/qstat.ts";
import { phaseOf } from "../../src/scheduler/gridengine/states.ts";
import { batchScript, submitCommand } from "../../src/scheduler/gridengine/submission.ts";
import { Places } from "../../src/scheduler/position.ts";
import { Rows } from "../../src/scheduler/rows.ts";

const request = (given: v.InferInput<typeof SchedulerRequest> = {}): SchedulerRequest => v.parse(SchedulerRequest, given);
const job = (given: v.InferInput<typeof SchedulerRequest> = {}) => ({
  request: request(given),
  marker: "clio-00-1",
  script: "/s/batch.sh",
  output: "/s/log",
  workdir: "/s/w",
});
const refusal = (act: () => unknown): string => {
  try {
    act();
    return "no refusal";
  } catch (error) {
    return (error as { code: string }).code;
  }
};

test("states of sge_status(5)", () => {
  const table: Record<string, string> = {
    pending: "qw hqw hRwq Eqw Ehqw EhRqw Rq w",
    allocated: "t dt Rt",
    running: "r Rr dr dRr s ts S tS T tT N P d",
    unknown: "z x X1 é",
  };
  for (const [phase, words] of Object.entries(table))
    for (const word of words.split(" ")) expect(`${word} ${phaseOf(word)}`).toBe(`${word} ${phase}`);
  expect(phaseOf("")).toBe("unknown");
});

test("ids of jobs and of elements of arrays, as people and as qsub write them", () => {
  expect(readNative("4711")?.id).toBe("4711");
  expect(readNative("4711.3")?.id).toBe("4711.3");
  for (const none of ["", "0", "4711.", "4711.1-8:2", "a", "12_3"]) expect(readNative(none)).toBe(null);
  expect([terseId("4711"), terseId("4711.1-8:2"), terseId("Your job 4711")]).toEqual(["4711", "4711", null]);
});

describe("qstat", () => {
  const list = (state: string, inner: string): string => `    <job_list state="${state}">\n${inner}    </job_list>\n`;
  const document = (running: string, pending: string): string =>
    `<?xml version='1.0'?>\n<job_info  xmlns:xsd="http://example.org/qstat.xsd">\n  <queue_info>\n${running}  </queue_info>\n  <job_info>\n${pending}  </job_info>\n</job_info>\n`;
  const running = list(
    "running",
    '<JB_job_number>41</JB_job_number>\n<JB_name>clio-a</JB_name>\n<JB_owner>ada</JB_owner>\n<JB_project>phys</JB_project>\n<state>r</state>\n<JAT_start_time>2025-03-01T09:00:00.123</JAT_start_time>\n<queue_name>long.q@n01</queue_name>\n<slots>4</slots>\n<full_job_name>clio-a-&lt;1&gt;&amp;&#x42;</full_job_name>\n<hard_request name="h_rt" resource_contribution="0.0">3600</hard_request>\n',
  );
  const element = list(
    "running",
    "<JB_job_number>42</JB_job_number>\n<full_job_name>arr</full_job_name>\n<state>t</state>\n<queue_name>long.q@n02</queue_name>\n<slots>1</slots>\n<tasks>3</tasks>\n",
  );
  const pending =
    list(
      "pending",
      "<JB_job_number>42</JB_job_number>\n<full_job_name>arr</full_job_name>\n<state>qw</state>\n<JB_submission_time>2025-03-01T08:00:00</JB_submission_time>\n<queue_name></queue_name>\n<slots>1</slots>\n<tasks>5-9:2</tasks>\n",
    ) +
    list(
      "pending",
      "<JB_job_number>43</JB_job_number>\n<full_job_name>held</full_job_name>\n<state>hqw</state>\n<queue_name></queue_name>\n<slots>1</slots>\n<hard_req_queue>short.q</hard_req_queue>\n",
    );

  test("jobs that run and wait, and elements of an array", () => {
    const rows = new Rows(readQstat(document(running + element, pending))!);
    expect(rows.all.map(({ raw, shown, phase }) => [raw, shown, phase])).toEqual([
      ["41", "41", "running"],
      ["42", "42_3", "allocated"],
      ["42", "42_[5-9:2]", "pending"],
      ["43", "43", "pending"],
    ]);
    expect(rows.of("41")!.name).toBe("clio-a-<1>&B");
    expect(rows.of("41")!.answers).toMatchObject({
      partition: "long.q",
      nodes: "n01",
      cpus: 4,
      account: "phys",
      start_time: "2025-03-01T09:00:00.000Z",
      time_limit_seconds: 3_600,
      raw_state: "r",
    });
    expect(rows.of("42_7")!.phase).toBe("pending");
    expect(rows.of("42_6")).toBe(null);
    expect(rows.of("42")!.phase).toBe("allocated");
    expect(rows.of("43")!.answers).toMatchObject({ partition: "short.q", nodes: null });
    const places = new Places(rows);
    expect(places.of(rows.of("43")!)).toMatchObject({ queue_position: 1, queue_position_scope: "partition short.q" });
    expect(places.of(rows.of("42_7")!)).toMatchObject({ queue_position: 1, queue_position_scope: null });
  });

  test("an empty document is an answer; half of one, or another one, is none", () => {
    expect(readQstat(document("", ""))).toEqual([]);
    expect(readQstat(document(running, pending).slice(0, -20))).toBe(null);
    expect(readQstat("<?xml version='1.0'?>\n<unknown_jobs >\n</unknown_jobs>\n")).toBe(null);
    expect(readQstat("error: commlib error: got select error")).toBe(null);
  });
});

describe("qacct", () => {
  const record = (fields: Record<string, string>): string =>
    `${"=".repeat(62)}\n${Object.entries({
      qname: "long.q",
      hostname: "n01",
      owner: "ada",
      project: "NONE",
      jobname: "clio-a-1",
      jobnumber: "41",
      taskid: "undefined",
      slots: "2",
      qsub_time: "Sat Mar  1 08:00:00 2025",
      start_time: "Sat Mar  1 09:00:00 2025",
      end_time: "Sat Mar  1 09:00:30 2025",
      failed: "0",
      exit_status: "0",
      ru_wallclock: "30s",
      maxvmem: "1.5GB",
      ...fields,
    })
      .map(([key, value]) => `${key.padEnd(12)} ${value}   \n`)
      .join("")}`;

  test("how a job has ended, of several releases", () => {
    const read = readQacct(
      record({}) +
        record({ exit_status: "7", ru_wallclock: "12" }) +
        record({ failed: "100 : assumedly after job", exit_status: "137                  (Killed)" }) +
        record({ failed: "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit", exit_status: "137" }) +
        record({ failed: "100 : assumedly after job", exit_status: "137", deleted_by: "ada@n00" }) +
        record({ failed: "26 : opening input/output file", exit_status: "1", start_time: "-/-", end_time: "03/01/2025 09:00:30.250" }) +
        record({ taskid: "3", deleted_by: "NONE" }),
    );
    expect(read.map(({ phase }) => phase)).toEqual(["completed", "failed", "failed", "failed", "canceled", "failed", "completed"]);
    expect(read.map(({ answers: { exit_code, signal } }) => [exit_code, signal])).toEqual([
      [0, null],
      [7, null],
      [null, 9],
      [null, 9],
      [null, 9],
      [1, null],
      [0, null],
    ]);
    expect(read[0]!.answers).toMatchObject({
      submit_time: "2025-03-01T08:00:00.000Z",
      end_time: "2025-03-01T09:00:30.000Z",
      elapsed_seconds: 30,
      account: null,
      cpus: 2,
      reason: null,
    });
    expect(read[3]!.answers).toMatchObject({
      raw_state: "failed 37, exit_status 137",
      reason: "qmaster enforced h_rt, h_cpu, or h_vmem limit",
    });
    expect(read[5]!.answers).toMatchObject({ start_time: null, end_time: "2025-03-01T09:00:30.000Z" });
    expect(read[6]!.shown).toBe("41_3");
  });

  test("what is no record is passed over", () => {
    expect(readQacct("")).toEqual([]);
    expect(readQacct(`${"=".repeat(62)}\njobnumber x\n`)).toEqual([]);
    expect(readQacct("Total System Usage\n    WALLCLOCK\n======================\n  1\n")).toEqual([]);
  });
});

describe("submission", () => {
  test("says what is asked for", () => {
    const given = {
      tasks: 4,
      cpus_per_task: 2,
      parallel_environment: "mpi",
      time_limit_seconds: 90,
      partition: "long.q",
      account: "phys",
      reservation: "7",
      options: ["-l gpu=1", "-p -5", '-A "a b"'],
    };
    expect([...submitCommand(job(given))]).toEqual([
      ...[
        "qsub",
        "-l",
        "gpu=1",
        "-p",
        "-5",
        "-A",
        "a b",
        "-pe",
        "mpi",
        "8",
        "-l",
        "h_rt=90",
        "-q",
        "long.q",
        "-P",
        "phys",
        "-ar",
        "7",
        "-terse",
        "-N",
        "clio-00-1",
      ],
      ...["-o", "/s/log", "-j", "y", "-i", "/dev/null", "-wd", "/s/w", "-r", "n", "-sync", "n", "-b", "n", "-S", "/bin/sh", "/s/batch.sh"],
    ]);
  });

  test("asks for a time limit and a queue, and does not wish for them, whatever options came before", () => {
    const words = submitCommand(job({ time_limit_seconds: 90, options: ["-soft -l gpu=1"] }));
    expect(words.slice(0, 6)).toEqual(["qsub", "-soft", "-l", "gpu=1", "-hard", "-l"]);
  });

  test("has the user's directives, but for what the relay sets", () => {
    const script = "#!/bin/bash\n#$ -l h_vmem=2G -N mine\n#$ -cwd\necho\n#$ -q short.q -t\n".replace(" -t\n", "\n");
    expect(batchScript(request({ directives: true }), script, ["exec shim"])).toEqual({
      text: "#!/bin/sh\n#$ -l h_vmem=2G\n#$ -q short.q\nexec shim\n",
      name: "mine",
      removed: ["-cwd"],
      variables: {},
    });
    expect(batchScript(request({ directives: true, name: "ours" }), script, []).removed).toEqual(["-N mine", "-cwd"]);
  });

  test("tells which variables options and directives give the job with their values", () => {
    const given = request({ directives: true, options: ["-v A=2,HOME", "-v 'C=x y'"] });
    expect(batchScript(given, "#$ -v A=1,B=3 -V\n", []).variables).toEqual({ A: "2", B: "3", C: "x y" });
  });

  test("refuses what it cannot honour, or what is the relay's to say", () => {
    const refused: v.InferInput<typeof SchedulerRequest>[] = [
      ...[
        { gpus: 1 },
        { memory_bytes: 1 },
        { nodes: 2 },
        { qos: "q" },
        { constraint: "c" },
        { exclusive: true },
        { tasks: 2 },
        { cpus_per_task: 2 },
      ],
      ...[
        "-N x",
        "-t 1-3",
        "-sync y",
        "-o /x",
        "-wd /",
        "-cwd",
        "-S /bin/zsh",
        "-b y",
        "-@ file",
        "-w v",
        "-verify",
        "-clear",
        '-A "x',
        "-l a -N x",
      ].map((option) => ({ options: [option] })),
    ];
    for (const given of refused)
      expect(`${JSON.stringify(given)} ${refusal(() => submitCommand(job(given)))}`).toBe(
        `${JSON.stringify(given)} job_submission_refused`,
      );
    expect(refusal(() => batchScript(request({ directives: true }), "#$ -t 1-3\n", []))).toBe("job_submission_refused");
    expect(refusal(() => submitCommand({ ...job(), output: "/a:b/log" }))).toBe("job_submission_refused");
    expect(submitCommand(job({ nodes: 1, options: ["-w e", "-h"] }))).toContain("-h");
  });
});
