import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { SchedulerRequest } from "../../src/domain/scheduler.ts";
import { directiveWord, directiveWords } from "../../src/scheduler/directive-words.ts";
import { submitOutcome } from "../../src/scheduler/outcomes.ts";
import type { SiteCommandEnd } from "../../src/scheduler/site-command.ts";
import { checkWords } from "../../src/scheduler/slurm/options.ts";
import { batchScript, requestedClusters } from "../../src/scheduler/slurm/script.ts";
import { submitCommand, submittedIn } from "../../src/scheduler/slurm/submission.ts";

const request = (given: v.InferInput<typeof SchedulerRequest> = {}): SchedulerRequest => v.parse(SchedulerRequest, given);
const job = (given: v.InferInput<typeof SchedulerRequest> = {}) => ({
  request: request(given),
  marker: "clio-00-1",
  script: "/s/batch.sh",
  output: "/s/100%/log",
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

describe("words of a directive", () => {
  test("quotes, backslashes, comments", () => {
    expect(directiveWords(` -N 2 --comment="a b\\"c" 'd e'f g\\ h # rest`)).toEqual(["-N", "2", '--comment=a b"c', "d ef", "g h"]);
    expect(directiveWords('--x="open')).toBe(null);
    for (const word of ["plain", "a b", 'q"q', "back\\slash", "", "#"]) expect(directiveWords(directiveWord(word))).toEqual([word]);
  });
});

describe("the batch script", () => {
  const script = [
    "#!/bin/bash",
    "#SBATCH -N 2 --ntasks=4   # two nodes",
    "# a comment",
    "",
    '#SBATCH --comment="two words" -Jmine',
    "#SBATCH --output out.log -H",
    "#SBATCH --requeue --job-na=x -Hexyz --dependency=singleton",
    "#SBATCH --wait-all-nodes=1 --dependency=afterok:5",
    "echo hello",
    "#SBATCH --partition=late",
  ].join("\n");

  test("has the user's directives up to the first command, but for what the relay sets, and then its own lines", () => {
    const { text, removed } = batchScript(request({ directives: true }), script, ["exec shim"]);
    expect(text.split("\n")).toEqual([
      "#!/bin/sh",
      "#SBATCH -N 2",
      "#SBATCH --ntasks=4",
      '#SBATCH "--comment=two words"',
      "#SBATCH -H",
      "#SBATCH -H",
      "#SBATCH --wait-all-nodes=1",
      "#SBATCH --dependency=afterok:5",
      "exec shim",
      "",
    ]);
    expect(removed).toEqual(["--output out.log", "--requeue", "--job-na=x", "-exyz", "--dependency=singleton"]);
  });

  test("has none where they are not meant", () => {
    expect(batchScript(request(), script, ["exec shim"])).toEqual({
      text: "#!/bin/sh\nexec shim\n",
      name: null,
      removed: [],
      variables: {},
    });
  });

  test("begins its name as the request says, or else the script, where that is a word", () => {
    const named = (line: string, name: string | null = null) => {
      const script = batchScript(request({ directives: true, name }), `#SBATCH ${line}\n`, []);
      return [script.name, script.removed, script.text];
    };
    expect(named("-J train")).toEqual(["train", [], "#!/bin/sh\n"]);
    expect(named("-J a --job-name=b.c")).toEqual(["b.c", ["-J a"], "#!/bin/sh\n"]);
    expect(named('--job-name="my train"')).toEqual([null, ["--job-name=my train"], "#!/bin/sh\n"]);
    expect(named("-J train", "mine")).toEqual(["mine", ["-J train"], "#!/bin/sh\n"]);
  });

  test("tells which variables options and directives export with their values; the last --export counts", () => {
    const said = (options: readonly string[], ...lines: readonly string[]) =>
      batchScript(request({ directives: true, options: [...options] }), lines.map((line) => `#SBATCH ${line}\n`).join(""), []).variables;
    expect(said([], `--export=ALL,A=1,HOME,B='x,y',C="q r" # more`, "--nodes 2")).toEqual({ A: "1", B: "x", C: "q r" });
    expect(said([], `"--export=A='x,y',B=a=b,C="`)).toEqual({ A: "'x,y'", B: "a=b", C: "" });
    expect(said(["--export=NONE"], "--export=A=1")).toEqual({});
    expect(said(["--export=CLIO_RELAY_JOB_ID=x,1=2,Z=2"], "--export=A=1")).toEqual({ Z: "2" });
  });

  test("has no memory of the script's where the request says how much, since sbatch takes one word of it", () => {
    const directives = "#SBATCH --mem-per-cpu=1G -n2\n#SBATCH --mem-per-gpu 2G\n#SBATCH --mem=3G\n";
    const { text, removed } = batchScript(request({ directives: true, memory_bytes: 1 << 30 }), directives, []);
    expect([text, removed]).toEqual(["#!/bin/sh\n#SBATCH -n2\n", ["--mem-per-cpu=1G", "--mem-per-gpu 2G", "--mem=3G"]]);
    expect(batchScript(request({ directives: true }), directives, []).removed).toEqual([]);
  });

  test("keeps the lines for burst buffers", () => {
    const lines = ["#!/bin/bash", "#SBATCH -N1", "#BB create_persistent name=a", "#DW jobdw capacity=1", "#BBcomment", "echo", "#DW late"];
    const { text } = batchScript(request({ directives: true }), lines.join("\n"), ["exec shim"]);
    expect(text.split("\n")).toEqual(["#!/bin/sh", "#SBATCH -N1", "#BB create_persistent name=a", "#DW jobdw capacity=1", "exec shim", ""]);
  });

  test("arrays, heterogeneous jobs, all clusters and quotes without an end are refused", () => {
    const refused = [
      "#SBATCH --array=1-3",
      "#SBATCH -a 1-3",
      "#SBATCH --arr 1",
      "#SBATCH hetjob",
      "#SBATCH packjob",
      "#SBATCH -M all",
      '#SBATCH --x="y',
      "#SBATCH stray",
    ];
    for (const line of refused)
      expect(`${line}: ${refusal(() => batchScript(request({ directives: true }), `#!/bin/sh\n${line}\n`, []))}`).toBe(
        `${line}: job_submission_refused`,
      );
  });

  test("the clusters that are named, by options before directives", () => {
    const directives = { directives: true } as const;
    expect(requestedClusters(request(directives), "#SBATCH -M alpha,beta\n")).toEqual(["alpha", "beta"]);
    expect(requestedClusters(request({ ...directives, options: ["--clusters=gamma"] }), "#SBATCH -M alpha\n")).toEqual(["gamma"]);
    expect(requestedClusters(request(), "#SBATCH -M alpha\n")).toEqual([]);
  });
});

describe("the command line", () => {
  const ways = { gpusPerJob: true };

  test("says what is asked for, after the user's options and before the relay's own", () => {
    const given = {
      ...{
        nodes: 2,
        tasks: 8,
        cpus_per_task: 3,
        gpus: 4,
        memory_bytes: 1_000_000,
        time_limit_seconds: 90_061,
        partition: "long",
        account: "phys",
      },
      ...{ qos: "high", constraint: "ib&gpu", reservation: "r1", exclusive: true, options: ["--nodes=9", "-Lmatlab"] },
    };
    expect([...submitCommand(job(given), ways)]).toEqual([
      ...[
        "sbatch",
        "--nodes=9",
        "-Lmatlab",
        "--parsable",
        "--parsable",
        "--nodes=2",
        "--ntasks=8",
        "--cpus-per-task=3",
        "--gpus=4",
        "--mem=977K",
        "--time=1-01:01:01",
      ],
      ...[
        "--partition=long",
        "--account=phys",
        "--qos=high",
        "--constraint=ib&gpu",
        "--reservation=r1",
        "--exclusive",
        "--job-name=clio-00-1",
        "--output=/s/100%%/log",
      ],
      ...["--error=/s/100%%/log", "--open-mode=append", "--input=/dev/null", "--chdir=/s/w", "--no-requeue", "/s/batch.sh"],
    ]);
  });

  test("names its output file so that nothing in the path is replaced", () => {
    const outputOf = (output: string) =>
      submitCommand({ ...job(), output }, { gpusPerJob: true }).filter((word) => /^--(?:output|error)/.test(word));
    expect(outputOf("/a%j b/log")).toEqual(["--output=/a%%j b/log", "--error=/a%%j b/log"]);
    expect(outputOf("/DOMAIN\\ada%j/log")).toEqual(["--output=/DOMAIN\\\\ada%j/log", "--error=/DOMAIN\\\\ada%j/log"]);
  });

  test("asks for GPUs per node where this SLURM gives them only so", () => {
    expect(submitCommand(job({ gpus: 4, nodes: 2 }), { gpusPerJob: false })).toContain("--gres=gpu:2");
    expect(refusal(() => submitCommand(job({ gpus: 3, nodes: 2 }), { gpusPerJob: false }))).toBe("job_submission_refused");
  });

  test("takes no option that is the relay's to say, ends the options, or takes the next word for its value", () => {
    const refused = [
      ...[
        "--job-name=x",
        "--job=x",
        "-Jx",
        "--output=x",
        "-ox",
        "--out=x",
        "-ex",
        "-i/dev/zero",
        "--chdir=/",
        "-D/",
        "--requeue",
        "--no-requeue",
        "--wait",
        "-W",
        "-HW",
      ],
      ...[
        "--array=1-2",
        "-a1",
        "--parsable",
        "--wrap=x",
        "--test-only",
        "--open-mode=truncate",
        "--help",
        "-V",
        "--usage",
        "--dependency=singleton",
        "-dsingleton",
      ],
      ...["--clusters=all", "-Mall", "--", "-", "--comment", "-L", "-HL", "---x", "--=x"],
    ];
    for (const option of refused)
      expect(`${option}: ${refusal(() => submitCommand(job({ options: [option] }), ways))}`).toBe(`${option}: job_submission_refused`);
    const taken = [
      "--wait-all-nodes=1",
      "-H",
      "--hold",
      "--nice",
      "--nice=5",
      "--comment=a b",
      "-N2",
      "--dependency=afterok:4",
      "--exclusive=user",
      "-k",
      "--mail-type=END",
    ];
    for (const option of taken) expect(submitCommand(job({ options: [option] }), ways)).toContain(option);
    expect(refusal(() => submitCommand(job({ parallel_environment: "mpi" }), ways))).toBe("job_submission_refused");
  });
});

test("what somebody else hands to sbatch for a job of ours is no array, and names it in no other way", () => {
  for (const word of ["--array=1-2", "-a1", "--job-name=x", "--requeue", "--wait", "--clusters=all", "--dependency=singleton", "x"])
    expect(`${word}: ${refusal(() => checkWords(["--nodes=1", word]))}`).toBe(`${word}: job_submission_refused`);
  checkWords(["--nodes=1", "--no-requeue", "--gpus-per-node=a100:2", "--exclusive", "--signal=B:TERM@60", "--dependency=afterok:1"]);
});

test("a refusal says why", () => {
  const said = (option: string) => () => submitCommand(job({ options: [option] }), { gpusPerJob: true });
  expect(said("--array=1-2")).toThrow("an array is many jobs");
  expect(said("--output=x")).toThrow("clio-relay says --output of its jobs itself");
});

describe("what sbatch says", () => {
  const ended = (code: number, stdout: string, stderr = ""): SiteCommandEnd => ({ kind: "ended", code, stdout, stderr, cut: false });
  const outcome = (end: SiteCommandEnd) => submitOutcome(end, submittedIn);

  test("an id, with its cluster, behind or before warnings", () => {
    expect(outcome(ended(0, "4711\n"))).toMatchObject({ kind: "accepted", native: { id: "4711", cluster: null } });
    expect(outcome(ended(0, "4711;alpha\n", "sbatch: note\n"))).toMatchObject({
      kind: "accepted",
      native: { id: "4711", cluster: "alpha" },
      said: "sbatch: note",
    });
    expect(outcome(ended(0, "Your quota is at 91%\n2 warnings\n4711\nhave a nice day\n"))).toMatchObject({
      kind: "accepted",
      native: { id: "4711" },
    });
  });

  test("no by itself is a refusal, whatever the words", () => {
    expect(outcome(ended(1, "", "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"))).toMatchObject({
      kind: "refused",
    });
    // What sbatch ends with for an option that it does not know (22.05).
    expect(outcome(ended(255, "", "sbatch: unrecognized option '--foo=1'")).kind).toBe("refused");
    expect(outcome({ kind: "missing", program: "sbatch" })).toEqual({ kind: "refused", said: "there is no sbatch" });
  });

  test("everything else is a doubt", () => {
    const doubts: SiteCommandEnd[] = [
      ended(0, ""),
      ended(0, "Submitted batch job 4711\n"),
      ended(0, "4711\n4712\n"),
      ended(1, "4711\n"),
      ended(129, ""),
      ended(137, ""),
      ended(192, ""),
      { kind: "killed", by: "deadline", signal: "SIGTERM", stdout: "4711\n", stderr: "", cut: false },
      { kind: "killed", by: "somebody", signal: "SIGKILL", stdout: "", stderr: "", cut: false },
    ];
    for (const end of doubts) expect(outcome(end).kind).toBe("doubt");
  });
});
