import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { type ErrorCode, isRelayError, RelayError } from "../../../src/domain/errors.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { FRAME_LIMITS, FrameReader } from "../../../src/transport/script/frame.ts";
import { type RunOptions, remoteOver, type Script } from "../../../src/transport/script/remote.ts";
import { shellWord } from "../../../src/transport/script/shell-word.ts";
import { requireComponent } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { SHELLS, shellHost } from "./shells.ts";

const directories = temporaryDirectories();
const signal = new AbortController().signal;
const script = (text: string): Script => ({ name: "a test", text });
const remote = (host: Partial<Parameters<typeof shellHost>[0]> = {}) => remoteOver(shellHost({ home: directories(), ...host }));

async function failure(work: Promise<unknown>, code: ErrorCode) {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  if (!isRelayError(error, code)) throw new Error(`expected ${code}`, { cause: error });
  return error;
}

const ODD = [
  "",
  "plain",
  "two words",
  'it\'s "quoted" $HOME `id` \\ * ~',
  "a\nb\n",
  "%41",
  "ümläut \u{1f680}",
  "tab\tend ",
  "-n",
  "!x! #y",
  "'",
];

async function* chunks(...parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}

for (const [name, shell] of Object.entries(SHELLS)) {
  const there = name === "dash" || name === "bash" || requireComponent(name as "busybox" | "ksh" | "mksh" | "zsh");
  describe.skipIf(!there)(`in ${name}`, () => {
    test("values go there and come back as they are", async () => {
      const values = Object.fromEntries(ODD.map((value, index) => [`v${index}`, value]));
      const text = `main() {\n${ODD.map((_, index) => `say value "$v${index}"\n`).join("")}}\n`;
      const answer = await remote({ shell }).run(script(text), { signal, values });
      expect(answer.all("value")).toEqual(ODD);
      expect(answer.status).toBe(0);
    });

    test("a payload arrives whole behind the script, whatever its bytes, and exactly it", async () => {
      const home = directories();
      const bytes = Buffer.alloc(3_000_000, "0123456789\n'\\exit\0\xff", "latin1");
      const text = 'main() { cat >"$HOME/got" || exit 3; say size "$(wc -c <"$HOME/got" | tr -d " ")"; }\n';
      const answer = await remote({ shell, home }).feed(script(text), chunks(bytes.subarray(0, 10), bytes.subarray(10)), { signal });
      expect(answer.count("size")).toBe(bytes.length);
      expect(sha256Hex(fs.readFileSync(path.join(home, "got")))).toBe(sha256Hex(bytes));
    });

    test("a refusal, an exit status and the account's own surroundings", async () => {
      const refused = await remote({ shell }).run(script('main() { refuse no_room "on it"; }\n'), { signal });
      expect([refused.status, refused.last("refused"), refused.last("detail")]).toEqual([1, "no_room", "on it"]);
      expect((await remote({ shell }).run(script("main() { return 7; }\n"), { signal })).status).toBe(7);
      const found = await remote({ shell, env: { LC_ALL: "C.UTF-8" } }).run(
        script('main() { say mine "$LC_ALL/$(umask)"; say theirs "$(restored sh -c \'echo "$LC_ALL/$(umask)"\')"; }\n'),
        { signal },
      );
      expect(found.one("mine")).toMatch(/^C\/0*77$/);
      expect(found.one("theirs")).toMatch(/^C\.UTF-8\/0*22$/);
      const without = await remote({ shell }).run(script("main() { say theirs \"$(restored sh -c 'echo ${LC_ALL-none}')\"; }\n"), {
        signal,
      });
      expect(without.one("theirs")).toBe("none");
    });
  });
}

for (const login of ["tcsh", "fish", "zsh"] as const) {
  test.skipIf(!requireComponent(login))(`the command means the same to ${login}`, async () => {
    const home = directories();
    const session = shellHost({ home });
    const through = remoteOver({ exec: (command, given) => session.exec(`exec ${login} -c ${shellWord(command)}`, given) });
    expect((await through.run(script("main() { say it works; }\n"), { signal })).one("it")).toBe("works");
    const answer = await through.feed(script('main() { say it "$(cat)"; }\n'), chunks(Buffer.from("some $bytes!")), { signal });
    expect(answer.one("it")).toBe("some $bytes!");
  });
}

describe("around a frame", () => {
  test("a banner, a chatty profile and an unfinished line do not matter", async () => {
    const answer = await remote({ preamble: "echo Welcome; printf 'clio-relay 0123 end 1\\n%s' 'no end of line'; echo warning >&2" }).run(
      script("main() { echo chatter; say a 1; echo more; say a 2; }\n"),
      { signal },
    );
    expect(answer.all("a")).toEqual(["1", "2"]);
    expect([answer.last("b"), answer.status]).toEqual([null, 0]);
  });

  test("no frame is a failure with what was said instead, also where the exit status is 0", async () => {
    const silent = remote({ preamble: "echo 'this account is closed'; echo sorry >&2; exit 0" });
    const error = await failure(silent.run(script("main() { :; }\n"), { signal }), "script_failed");
    expect(error.data).toMatchObject({ exit_code: 0, said: "this account is closed\nsorry" });
  });

  test("a shell that is killed, or does not understand, is a failure", async () => {
    const killed = await failure(remote().run(script("main() { say a 1; kill -KILL $$; }\n"), { signal }), "script_failed");
    expect(killed.data).toMatchObject({ script: "a test" });
    await failure(remote().run(script("main() {\n"), { signal }), "script_failed");
  });

  test("endless chatter is refused", async () => {
    const chatty = remote({ preamble: "yes $(printf %0500d 0) | head -c 20000000" });
    expect(await failure(chatty.run(script("main() { :; }\n"), { signal }), "answer_malformed")).toBeInstanceOf(RelayError);
  });

  test("a request that ends, and a time that is over, end the wait and cut the channel", async () => {
    const host = shellHost({ home: directories() });
    const asked = new AbortController();
    const text = "main() { say pid $$; while sleep 0.05; do say still running; done; }\n";
    const options: RunOptions = { signal: asked.signal, onRecord: (name) => name === "pid" && asked.abort(new Error("gone away")) };
    expect(
      String(
        await remoteOver(host)
          .run(script(text), options)
          .catch((error: unknown) => error),
      ),
    ).toContain("gone away");
    await failure(remoteOver(host).run(script(text), { signal, withinMs: 300 }), "observation_timeout");
    await eventually(() => host.running.size === 0);
    expect(host.running.size).toBe(0);
  });

  test("a host that closes nothing keeps nobody waiting", async () => {
    const host = shellHost({ home: directories(), preamble: "echo one moment; sleep 3600" });
    const open: number[] = [];
    const deaf = remoteOver({
      exec: async (command, given) => {
        const channel = await host.exec(command, given);
        open.push([...host.running].at(-1)!.pid!);
        const never = new Promise<never>(() => undefined);
        return { ...channel, ended: never, exited: never, close: () => undefined };
      },
    });
    const late = await failure(deaf.run(script("main() { :; }\n"), { signal, withinMs: 3_000 }), "observation_timeout");
    expect(late.message).toContain("its profile may hang");
    expect(late.data).toMatchObject({ said: "one moment" });
    const asked = new AbortController();
    const given = deaf.feed(script("main() { :; }\n"), chunks(Buffer.alloc(10)), { signal: asked.signal });
    await eventually(() => open.length === 2);
    asked.abort(new Error("gone away"));
    await expect(given).rejects.toThrow("gone away");
    for (const pid of open) process.kill(-pid, "SIGKILL");
  });

  test("a profile that closes the outputs and stays is a failure at once", async () => {
    const host = shellHost({ home: directories(), preamble: "echo bye; exec >&- 2>&-; sleep 3600" });
    const error = await failure(remoteOver(host).run(script("main() { :; }\n"), { signal }), "script_failed");
    expect(error.message).toContain("closed its outputs");
    expect(error.data).toMatchObject({ said: "bye" });
    for (const { pid } of host.running) process.kill(-pid!, "SIGKILL");
  });

  test("a profile that reads what comes, or goes on as another program, gets neither script nor payload", async () => {
    const gets = async (preamble: string): Promise<unknown[]> => {
      const home = directories();
      const host = shellHost({ home, preamble: `echo odd; ${preamble}` });
      const text = 'main() { cat >"$HOME/got"; }\n';
      const payload = chunks(Buffer.from('\n: >"$HOME/run"\n'));
      const error = await failure(remoteOver(host).feed(script(text), payload, { signal, withinMs: 3_000 }), "observation_timeout");
      await eventually(() => host.running.size === 0);
      return [preamble, error.message, error.hint, fs.readdirSync(home)];
    };
    const preambles = ["exec dash", "exec cat", 'read -r line; eval "$line"'];
    const nothing = [expect.stringContaining("odd"), expect.stringContaining("profile"), []];
    expect(await Promise.all(preambles.map(gets))).toEqual(preambles.map((preamble) => [preamble, ...nothing]));
  });

  test("a process that a profile leaves behind is not waited for", async () => {
    const home = directories();
    const host = remoteOver(shellHost({ home, preamble: '(sleep 4; : >"$HOME/late") &' }));
    for (let left = 2; left > 0; left--) expect((await host.run(script("main() { say it works; }\n"), { signal })).one("it")).toBe("works");
    expect(fs.readdirSync(home)).toEqual([]);
    await eventually(() => fs.readdirSync(home).length > 0);
  });

  test("endless complaints are refused", async () => {
    const loud = remote({ preamble: "yes $(printf %0500d 0) | head -c 20000000 >&2" });
    expect(await failure(loud.run(script("main() { :; }\n"), { signal }), "answer_malformed")).toBeInstanceOf(RelayError);
  });

  test("a payload that fails on its way is the failure, and the script sees its input end", async () => {
    const home = directories();
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("begin");
      await eventually(() => fs.readFileSync(path.join(home, "got"), "utf8") === "begin");
      throw new Error("the disk is gone");
    }
    const text = 'main() { cat >"$HOME/got"; mv "$HOME/got" "$HOME/over"; }\n';
    const error: unknown = await remote({ home })
      .feed(script(text), broken(), { signal })
      .catch((thrown: unknown) => thrown);
    expect(String(error)).toContain("the disk is gone");
    expect(await eventually(() => fs.readFileSync(path.join(home, "over"), "utf8"))).toBe("begin");
  });

  test("a script that ends before it has read its payload is answered", async () => {
    const answer = await remote().feed(script("main() { refuse enough ''; }\n"), chunks(Buffer.alloc(5_000_000), Buffer.alloc(10)), {
      signal,
    });
    expect(answer.last("refused")).toBe("enough");
  });

  test("scripts of one host run one after the other, after a failure, too", async () => {
    let most = 0;
    const host = shellHost({ home: directories(), onExec: () => (most = Math.max(most, host.running.size)) });
    const one = remoteOver(host);
    const texts = ["say a 1", "kill -KILL $$", "say a 3"].map((line) => one.run(script(`main() { ${line}; }\n`), { signal }));
    const outcomes = await Promise.allSettled(texts);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(most).toBeLessThanOrEqual(1);
  });
});

describe("the reader of frames", () => {
  const NONCE = "0123456789abcdef0123456789abcdef";
  const line = (text: string): string => `clio-relay ${NONCE} ${text}\n`;
  const read = (text: string, size = text.length) => {
    const reader = new FrameReader(NONCE);
    const bytes = Buffer.from(text, "latin1");
    for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
    return reader.end();
  };

  test("takes a frame in pieces of any size, and nothing after its end", () => {
    const text = `\n${line("begin")}${line("a x%20y%0a")}noise\n${line("b ")}${line("end 0")}${line("a z")}`;
    for (const size of [1, 2, 7, 1_000]) {
      expect(read(text, size)?.records).toEqual([
        ["a", "x y\n"],
        ["b", ""],
      ]);
    }
  });

  test.each([
    ["a record before its begin", line("a 1")],
    ["a second begin", line("begin") + line("begin")],
    ["a name that is none", line("begin") + line("A 1")],
    ["a record without a value", line("begin") + line("a")],
    ["a byte that is not in the coding", line("begin") + line("a x y")],
    ["half a code", line("begin") + line("a %2")],
    ["an end without a status", line("begin") + line("end well")],
    ["a line without end", line("begin") + "x".repeat(FRAME_LIMITS.lineBytes + 1)],
    ["too many records", line("begin") + line("a 1").repeat(FRAME_LIMITS.records + 1)],
  ])("refuses %s", (_, text) => {
    expect(() => read(text)).toThrow("the answer of a program on the cluster's host");
  });

  test("keeps a bounded part of the noise", () => {
    const reader = new FrameReader(NONCE);
    for (let i = 0; i < 50; i++) reader.push(Buffer.from(`${"n".repeat(4_000)}\n`));
    expect(reader.noise.length).toBeLessThanOrEqual(FRAME_LIMITS.noiseBytes + 1);
    expect(reader.noise.length).toBeGreaterThan(10_000);
  });
});

test("a word is a word to every shell", () => {
  for (const value of ODD) {
    const printed = spawnSync("/bin/sh", ["-c", `printf %s ${shellWord(value)}`], { encoding: "utf8" });
    expect(printed.stdout).toBe(value);
  }
  expect(() => shellWord("a\0b")).toThrow("NUL");
});
