import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { onTerminal } from "../on-terminal.ts";
import { type SourceRelay, withWorker } from "../source-relay.ts";

let relay: SourceRelay;
beforeAll(async () => {
  relay = await withWorker();
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

const here = (name: string) => path.join(relay.directory, name);
const write = (name: string, data: string | Uint8Array) => {
  fs.mkdirSync(path.dirname(here(name)), { recursive: true });
  fs.writeFileSync(here(name), data);
};

const SHOW = [
  "--",
  "sh",
  "-c",
  'for f in "$CLIO_RELAY_INPUT_DECK" "$CLIO_RELAY_INPUT_PAIR_TABLE"; do basename "$f"; sha256sum < "$f" | cut -c1-64; done',
];

interface Status {
  readonly inputs: readonly { readonly name: string; readonly artifact_id: string; readonly sha256: string }[];
}

test("files come to the job under their names, whole, and the job and its lists say which they were", async () => {
  const big = Buffer.alloc(3_000_000, "0123456789");
  write("in.lj", "units lj\n");
  write("data/my table.bin", big);
  const before = await relay.json<{ jobs: unknown[] }>("job", "list");
  const id = await relay.submit(
    "--wait",
    "--max-input-bytes",
    "4MiB",
    "--input",
    "deck=in.lj",
    "--input",
    "pair-table=data/my table.bin",
    ...SHOW,
  );
  expect(await relay.ok("job", "read-log", id)).toBe(`in.lj\n${sha256Hex("units lj\n")}\nmy_table.bin\n${sha256Hex(big)}`);
  expect((await relay.ok("job", "status", id)).split("\n").filter((line) => line.startsWith("input"))).toEqual([
    expect.stringContaining(`deck: in.lj, 9 B, SHA-256 ${sha256Hex("units lj\n").slice(0, 16)}…`),
    expect.stringContaining("pair-table: my_table.bin, 2.9 MiB"),
  ]);
  const listed = await relay.json<Status>("job", "status", id);
  expect(listed.inputs.map(({ name, sha256 }) => [name, sha256])).toEqual([
    ["deck", sha256Hex("units lj\n")],
    ["pair-table", sha256Hex(big)],
  ]);
  expect((await relay.run(["job", "list-artifacts", id])).stderr).toContain(`deck ${listed.inputs[0]!.artifact_id}`);
  // The jobs that stand for the files are nobody's work.
  const after = await relay.json<{ jobs: unknown[] }>("job", "list");
  expect(after.jobs.length - before.jobs.length).toBe(1);
  expect((await relay.ok("job", "list", "--kind", "input_ingest")).split("\n").length).toBeGreaterThanOrEqual(2);
  await relay.ok("job", "read-artifact", listed.inputs[1]!.artifact_id, "-o", "back.bin");
  expect(fs.readFileSync(here("back.bin")).equals(big)).toBe(true);
});

test("nothing goes to the worker but what is named, whatever it names", async () => {
  const secret = `not asked for ${crypto.randomUUID()}\n`;
  write("case/main.lj", "include other.lj\ninclude pipe\n");
  write("case/other.lj", secret);
  // Whoever opened it would wait.
  Bun.spawnSync(["mkfifo", here("case/pipe")]);
  const id = await relay.submit("--wait", "--input", "deck=case/main.lj", "--", "sh", "-c", 'ls -A "${CLIO_RELAY_INPUT_DECK%/*}"');
  expect(await relay.ok("job", "read-log", id)).toBe(".content\nmain.lj");
  const place = path.join(relay.home, "spool", "local", "inputs");
  expect(fs.existsSync(path.join(place, sha256Hex("include other.lj\ninclude pipe\n")))).toBe(true);
  expect(fs.existsSync(path.join(place, sha256Hex(secret)))).toBe(false);
});

test("the same file is one artifact of one content, and the same key the same job", async () => {
  write("same.txt", "same\n");
  write("other/same.txt", "same\n");
  const submit = (...more: string[]) =>
    relay.json<{ job_id: string; existing: boolean; spec: { inputs: object } }>("job", "submit", ...more, "--", "true");
  const first = await submit("--input", "a=same.txt", "--idempotency-key", "k1");
  const again = await submit("--input", "a=same.txt", "--idempotency-key", "k1");
  expect([again.job_id, again.existing]).toEqual([first.job_id, true]);
  const other = await submit("--input", "a=other/same.txt", "--input", "b=same.txt");
  expect(Object.values(other.spec.inputs)).toEqual([Object.values(first.spec.inputs)[0], Object.values(first.spec.inputs)[0]]);
  write("same.txt", "changed\n");
  expect((await relay.run(["job", "submit", "--input", "a=same.txt", "--idempotency-key", "k1", "--", "true"])).code).toBe(7);
});

test("what may not go is refused before anything is sent", async () => {
  write("deep/in.lj", "x");
  write("large.bin", Buffer.alloc(2 ** 20 + 1));
  fs.symlinkSync("/etc/hostname", here("link"));
  const refusal = async (args: readonly string[], env: Readonly<Record<string, string>> = {}, cwd = relay.directory) => {
    const { code, stderr, stdout } = await relay.run(["job", "submit", ...args, "--", "true"], { env, cwd });
    expect(stdout).toBe("");
    return [code, stderr] as const;
  };
  const jobs = await relay.json("job", "list", "--kind", "input_ingest");
  expect(await refusal(["--input", "deck=/etc/hostname"])).toEqual([1, expect.stringContaining("it lies outside of")]);
  expect(await refusal(["--input", "deck=link"])).toEqual([1, expect.stringContaining("it lies outside of")]);
  expect(await refusal(["--input", "deck=../large.bin"], {}, here("deep"))).toEqual([
    1,
    expect.stringContaining("CLIO_RELAY_INPUT_WORKSPACE_ROOT"),
  ]);
  expect(await refusal(["--input", "deck=large.bin"])).toEqual([2, expect.stringContaining("--max-input-bytes 2MiB lets them go")]);
  const five = Array.from({ length: 5 }, (_, n) => ["--input", `n${n}=large.bin`]).flat();
  expect(await refusal([...five, "--max-input-bytes", "5MiB"])).toEqual([2, expect.stringContaining("all inputs together: 5242885 bytes")]);
  expect(await refusal(["--input", "deck=none"])).toEqual([2, expect.stringContaining("--input deck=none: there is no such file")]);
  expect(await refusal(["--input", "deck=deep"])).toEqual([1, expect.stringContaining("that is no regular file")]);
  expect(await refusal(["--input", "a-b=deep/in.lj", "--input", "a_b=deep/in.lj"])).toEqual([
    2,
    expect.stringContaining("both be CLIO_RELAY_INPUT_A_B"),
  ]);
  expect(await refusal(["--input", "deck"])).toEqual([2, expect.stringContaining("NAME=FILE")]);
  expect(await refusal(["--input", "deck="])).toEqual([2, expect.stringContaining("names no file")]);
  expect(await refusal(["--max-input-bytes", "4G", "--input", "deck=large.bin"])).toEqual([
    2,
    expect.stringContaining("did you mean 4GiB?"),
  ]);
  expect(await refusal(["--max-input-bytes", "4GiB"])).toEqual([2, expect.stringContaining("--max-input-bytes is for --input")]);
  expect(await refusal(["--input", "deck=deep/in.lj", "--env", "CLIO_RELAY_INPUT_DECK=x"])).toEqual([
    2,
    expect.stringContaining("path of an input"),
  ]);
  const seventeen = Array.from({ length: 17 }, (_, n) => ["--input", `n${n}=deep/in.lj`]).flat();
  expect(await refusal(seventeen)).toEqual([2, expect.stringContaining("17 inputs, and 16 are allowed")]);
  expect(await refusal([...seventeen, "--input", "link=link"], { CLIO_RELAY_INPUT_FILE_MAX_COUNT: "18" })).toEqual([
    1,
    expect.stringContaining("outside of"),
  ]);
  expect(await relay.json("job", "list", "--kind", "input_ingest")).toEqual(jobs);
});

test("another root, and larger bounds, are settings", async () => {
  write("deep/in.lj", "x");
  write("large2.bin", Buffer.alloc(2 ** 20 + 1, 1));
  const env = { CLIO_RELAY_INPUT_WORKSPACE_ROOT: relay.directory, CLIO_RELAY_INPUT_FILE_MAX_BYTES: "2MiB" };
  const { code, stdout } = await relay.run(
    ["job", "submit", "--wait", "--input", "x=../large2.bin", "--", "sh", "-c", 'wc -c < "$CLIO_RELAY_INPUT_X"'],
    {
      env,
      cwd: here("deep"),
    },
  );
  expect(code).toBe(0);
  expect((await relay.ok("job", "read-log", stdout.trim())).trim()).toBe(String(2 ** 20 + 1));
});

test("on a terminal it is said how far it is, in a line that is gone afterwards; elsewhere nothing", async () => {
  write("shown.bin", Buffer.alloc(6_000_000, "shown"));
  const command = ["job", "submit", "--max-input-bytes", "8MiB", "--input", "x=shown.bin", "--", "true"];
  const terminal = onTerminal(relay, command);
  expect(await terminal.end()).toBe(0);
  expect(terminal.shown()).toContain("\r\x1b[Kreading inputs: 5.7 MiB of 5.7 MiB");
  expect(terminal.shown()).toContain("\r\x1b[Ksending inputs: 5.7 MiB of 5.7 MiB");
  expect(terminal.shown()).toMatch(/\r\p{Cc}\[Kjob_[0-9a-f]{32}\r\n$/u);
  const { stdout, stderr } = await relay.run(command);
  expect([stdout, stderr]).toEqual([expect.stringMatching(/^job_[0-9a-f]{32}\n$/), ""]);
});
