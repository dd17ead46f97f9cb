import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { eventually } from "../runner/wait.ts";
import { onTerminal } from "./on-terminal.ts";
import { initialized, MAIN, type SourceRelay, withWorker } from "./source-relay.ts";

const COLOUR = /\p{Cc}\[\d*m/gu;
const ERASED = /\r(?:\p{Cc}\[K)?/u;

/** What is on the screen in the end, line by line: returns and erasures obeyed, colours left out. */
const screen = (text: string): string[] =>
  text.split("\n").map(
    (line) =>
      line
        .replaceAll(COLOUR, "")
        .split(ERASED)
        .filter((part) => part !== "")
        .at(-1) ?? "",
  );

describe("watch", () => {
  test("shows state, time and progress in a line of its own, and lets output scroll above it", async () => {
    await using relay = await withWorker();
    const gate = path.join(relay.directory, "gate");
    const program = `${process.execPath} ${MAIN}`;
    const script = `printf '10%%\\r20%%\\r'; echo; printf '\\033[31mred\\007\\n'; echo wrong >&2; ${program} emit progress --label epoch --current 1 --total 4; while [ ! -e "${gate}" ]; do sleep 0.05; done; echo last`;
    const id = await relay.submit("--", "sh", "-c", script);
    const watch = onTerminal(relay, ["job", "watch", id]);
    const running = /running \d+(?:\.\d)?s \[#####-{15}\] 25% 1\/4 epoch/;
    expect(await eventually(() => running.test(watch.shown()))).toBe(true);
    fs.writeFileSync(gate, "");
    expect(await watch.end()).toBe(0);
    const lines = screen(watch.shown());
    expect(lines).toContain("stdout | 20%");
    // What the job sends to the terminal is shown, not obeyed.
    expect(lines).toContain("stdout | ^[[31mred^G");
    expect(lines).toContain("stderr | wrong");
    expect(lines).toContain("stdout | last");
    expect(lines.filter((line) => line.startsWith("stdout |"))).toHaveLength(3);
    expect(lines.at(-2)).toBe(`${id} succeeded: exited with code 0`);
    expect(lines.at(-1)).toBe("");
  });

  test("begins where the job stands, whatever the first event is, and gives a notice a line of its own", async () => {
    await using relay = await withWorker();
    const program = `${process.execPath} ${MAIN}`;
    const gate = path.join(relay.directory, "gate");
    const script = `${program} emit progress --label epoch --current 1 --total 4; while [ ! -e "${gate}" ]; do sleep 0.05; done`;
    const id = await relay.submit("--", "sh", "-c", script);
    const monitor = () => relay.json<{ progress: unknown[]; next_cursor: number }>("job", "monitor", id);
    await eventually(async () => (await monitor()).progress.length > 0);
    const { next_cursor } = await monitor();
    const watch = onTerminal(relay, ["job", "watch", id, "--cursor", String(next_cursor)], { NO_COLOR: "1" });
    const last = () => screen(watch.shown()).at(-1)!;
    expect(await eventually(() => /^running \d+(?:\.\d)?s \[#####-{15}\] 25% 1\/4 epoch$/.test(last()))).toBe(true);
    expect(watch.shown()).not.toContain("queued");
    await relay.ok("worker", "stop");
    await watch.shows("trying again");
    // Whether it still runs, and how long, is not known meanwhile.
    await eventually(() => /^no connection for \d+(?:\.\d)?s; last seen running$/.test(screen(watch.shown()).at(-1)!));
    await relay.ok("worker", "start");
    fs.writeFileSync(gate, "");
    expect(await watch.end()).toBe(0);
    const lines = screen(watch.shown().replaceAll("\r\n", "\n"));
    expect(lines.filter((line) => line.includes("notice: "))).toEqual(lines.filter((line) => line.startsWith("notice: ")));
    expect(lines.filter((line) => line.startsWith("notice: ")).length).toBeGreaterThan(0);
    // A line that is not written over is one of the screen: what is left of the live line is nowhere.
    expect(lines.filter((line) => /^(?:running|no connection) /.test(line))).toEqual([]);
  });

  test("leaves a clean screen when it is interrupted with a key", async () => {
    await using relay = await withWorker();
    const id = await relay.submit("--", "sh", "-c", "echo here; exec sleep 100");
    const watch = onTerminal(relay, ["job", "watch", id], { NO_COLOR: "1" });
    await watch.shows("here");
    watch.press("\x03");
    expect(await watch.end()).toBe(130);
    const lines = screen(watch.shown());
    expect(lines.at(-2)).toMatch(/^detached; the job goes on\. Come back with: clio-relay job watch /);
    expect(watch.shown().match(COLOUR)).toBeNull();
  });
});

describe("read-log", () => {
  test("shows control characters, unless the bytes are asked for", async () => {
    await using relay = await withWorker();
    const id = await relay.submit("--wait", "--", "printf", "10%%\\r20%%\\ra\\033[2Jb\\303\\251\\n");
    const log = onTerminal(relay, ["job", "read-log", id]);
    expect(await log.end()).toBe(0);
    expect(log.shown()).toBe("10%\r\n20%\r\na^[[2Jbé\r\n");
    const open = onTerminal(relay, ["job", "read-log", await relay.submit("--wait", "--", "printf", "no end")]);
    expect(await open.end()).toBe(0);
    expect(open.shown()).toBe("no end\r\n");
    const raw = onTerminal(relay, ["job", "read-log", "--raw", id]);
    expect(await raw.end()).toBe(0);
    expect(raw.shown()).toBe("10%\r20%\ra\x1b[2Jbé\r\n");
    expect(await relay.ok("job", "read-log", id)).toBe("10%\r20%\ra\x1b[2Jbé");
    // Piped, watch loses none of what was written over.
    const lines = (await relay.ok("job", "watch", id)).split("\n").filter((line) => line.startsWith("stdout |"));
    expect(lines).toEqual(["stdout | 10%", "stdout | 20%", "stdout | a^[[2Jbé"]);
  });
});

test("names that a job chose are shown and not obeyed", async () => {
  await using relay = await withWorker();
  const script = "mkdir out; n=$(printf 'a\\033[31m\\302\\2332J\\342\\200\\256b'); : > \"out/$n\"; printf '%s\\177' \"$n\"";
  const id = await relay.submit("--wait", "--output", "out/*", "--", "sh", "-c", script);
  const { artifacts } = await relay.json<{ artifacts: { artifact_id: string; kind: string }[] }>("job", "list-artifacts", id);
  const { artifact_id: artifact } = artifacts.find(({ kind }) => kind === "execution_output")!;
  const name = "a\x1b[31m\u009b2J\u202eb";
  for (const args of [
    ["job", "read-artifact", artifact, "-o", "."],
    ["job", "read-artifact", artifact, "-o", ".", "--json"],
    ["job", "read-artifact", artifact],
    ["job", "list-artifacts", id],
    ["job", "list-artifacts", id, "--json"],
    ["job", "read-log", id],
    ["job", "read-log", id, "--json"],
    ["job", "read-log", id, "-f", "--json"],
    ["job", "watch", id, "--json"],
    ["job", "watch", id],
    ["job", "status", id, "--json"],
  ]) {
    const command = onTerminal(relay, args, { NO_COLOR: "1" });
    expect(await command.end()).toBe(0);
    const shown = command.shown().replaceAll("\r\x1b[K", "");
    expect([args, shown.match(/(?![\r\n])[\p{Cc}\p{Bidi_Control}]/gu)]).toEqual([args, null]);
    if (args[1] === "read-artifact" && args.length === 5) expect(shown).toContain("a^[[31m\\u009b2J\\u202eb");
  }
  expect(fs.existsSync(path.join(relay.directory, name))).toBe(true);
  // Whoever takes the path from a pipe gets the path.
  expect(await relay.ok("job", "read-artifact", artifact, "-o", ".")).toBe(path.join(relay.directory, name));
});

describe("lists", () => {
  test("have a header and fit the width", async () => {
    await using relay = await withWorker();
    await relay.submit("--wait", "--", "echo", "x".repeat(300));
    const list = onTerminal(relay, ["job", "list"]);
    expect(await list.end()).toBe(0);
    const [header, row] = screen(list.shown().replaceAll("\r\n", "\n"));
    expect(header).toMatch(/^JOB +STATE +KIND +SUBMITTED +WHAT$/);
    expect(row).toMatch(/^job_[0-9a-f]{32} {2}succeeded {2}command {2}\S+s ago {2,}echo x+…$/);
    expect(row!.length).toBe(100);
    expect(list.shown()).toContain("\x1b[1m");
  });
});

test("a script that is typed is asked for, and ends with a key", async () => {
  await using relay = await withWorker();
  const submit = onTerminal(relay, ["job", "submit", "--stdin", "--wait"]);
  await submit.shows("notice: the script is read from this terminal until Ctrl-D");
  submit.press("echo typed\r\x04");
  expect(await submit.end()).toBe(0);
  const id = /job_[0-9a-f]{32}/.exec(submit.shown())![0];
  expect(await relay.ok("job", "read-log", id)).toBe("typed");
});

describe("questions", () => {
  const remove = async (relay: SourceRelay, keys: string, ...options: string[]) => {
    const command = onTerminal(relay, ["cluster", "remove", "local", ...options]);
    if (keys !== "") {
      await command.shows("Go on? [y/N]");
      command.press(keys);
    }
    return { code: await command.end(), shown: command.shown() };
  };

  test("are asked on a terminal, and no is no", async () => {
    await using relay = await initialized();
    const unanswered = await remove(relay, "\r");
    expect([unanswered.code, screen(unanswered.shown).at(-2)]).toEqual([1, "error: nothing was changed [confirmation_declined]"]);
    expect((await remove(relay, "no\r")).code).toBe(1);
    expect(await relay.ok("cluster", "list")).toBe("local\tlocal\t3\t2");
    expect((await remove(relay, "y\r")).code).toBe(0);
    expect(await relay.ok("cluster", "list")).toBe("");
  });

  test.each([["--yes"], ["-y"]])("are not asked with %s", async (option) => {
    await using relay = await initialized();
    const { code, shown } = await remove(relay, "", option);
    expect([code, screen(shown)[0]]).toEqual([0, "removed local"]);
  });
});

test("a reader that goes away is no failure", async () => {
  await using relay = await withWorker();
  const id = await relay.submit("--wait", "--", "sh", "-c", "i=0; while [ $i -lt 40000 ]; do echo 0123456789; i=$((i+1)); done");
  const child = Bun.spawn(["sh", "-c", `{ "$0" "$1" job read-log ${id}; echo "code $?" >&2; } | head -n 1`, process.execPath, MAIN], {
    env: relay.environment,
    cwd: relay.directory,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(await child.stdout.text()).toBe("0123456789\n");
  expect(await child.stderr.text()).toBe("code 0\n");
});
