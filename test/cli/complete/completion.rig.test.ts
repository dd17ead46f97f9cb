import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { type ComponentName, describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { type SourceRelay, withWorker } from "../source-relay.ts";
import { type Shell, ShellSession } from "./shell-session.ts";

const ESC = "\u001b";
/** What a job may be called by whoever has submitted it. */
const EVIL = `$(touch pwned) \`touch pwned\` ${ESC}]0;evil\u0007 %F{red}\n; touch pwned; '"`;
const FILES = ['it\'s "so"', "two words", "co:lon", "new\nline", "$(touch pwned)", "plain"];

interface Case {
  readonly name: string;
  readonly shell: Shell;
  readonly needs: readonly ComponentName[];
  /** What its start file has, given where the completion script lies. */
  readonly start: (script: string) => string;
  /** Whether a part of the lines will do: the rest is as in another case. */
  readonly sample?: true;
}

const CASES: readonly Case[] = [
  { name: "bash alone", shell: "bash", needs: ["linux"], start: (script) => `source '${script}'` },
  {
    name: "bash with bash-completion",
    shell: "bash",
    needs: ["bash-completion"],
    start: (script) =>
      `BASH_COMPLETION_USER_DIR='${path.dirname(path.dirname(script))}'\nsource /usr/share/bash-completion/bash_completion`,
  },
  {
    name: "bash with other word breaks",
    shell: "bash",
    needs: ["linux"],
    start: (script) => `source '${script}'\nCOMP_WORDBREAKS=$' \\t\\n'`,
    sample: true,
  },
  { name: "zsh that has sourced it", shell: "zsh", needs: ["zsh"], start: (script) => `source '${script}'` },
  {
    name: "zsh that finds it in $fpath",
    shell: "zsh",
    needs: ["zsh"],
    start: (script) => `fpath=('${path.dirname(script)}' $fpath); compinit -u -D`,
    sample: true,
  },
  { name: "fish", shell: "fish", needs: ["fish"], start: (script) => `source '${script}'` },
];

describeWith(["linux"], "completion", () => {
  let relay: SourceRelay;
  const ids: string[] = [];
  const scripts = temporaryDirectory();

  beforeAll(async () => {
    relay = await withWorker();
    for (const name of [EVIL, "second"]) ids.push(await relay.submit("--output", "o*", "--wait", "--", "touch", "o1", name));
    for (const shell of ["bash", "zsh", "fish"]) {
      // Each where its shell looks for it.
      const file = { bash: "completions/clio-relay", zsh: "zsh/_clio-relay", fish: "fish/clio-relay.fish" }[shell]!;
      fs.mkdirSync(path.dirname(path.join(scripts.path, file)), { recursive: true });
      fs.writeFileSync(path.join(scripts.path, file), await relay.ok("completion", shell));
    }
  });
  afterAll(async () => {
    await relay[Symbol.asyncDispose]();
    scripts[Symbol.dispose]();
  });

  const scriptOf = (shell: Shell): string =>
    path.join(scripts.path, { bash: "completions/clio-relay", zsh: "zsh/_clio-relay", fish: "fish/clio-relay.fish" }[shell]);

  for (const { name, shell, needs, start, sample } of CASES) {
    describeWith(needs, name, () => {
      const place = temporaryDirectory();
      let session: ShellSession;
      beforeAll(async () => {
        for (const file of FILES) fs.writeFileSync(path.join(place.path, file), "");
        fs.mkdirSync(path.join(place.path, "sub dir"));
        session = new ShellSession(shell, relay, place.path, start(scriptOf(shell)));
        await session.ready();
      });
      afterAll(async () => {
        await session[Symbol.asyncDispose]();
        place[Symbol.dispose]();
      });

      test("verbs, options, their values and their files, quoted as the shell has it", async () => {
        const lines: readonly (readonly [line: string, ...words: string[]])[] = [
          ["clio-relay jo\twat\t--js\t", "job", "watch", "--json"],
          ["clio-relay work\tke\trev\tx", "worker", "keys", "revoke", "x"],
          ["true && A=1 clio-relay job li\t", "job", "list"],
          ["clio-relay job list --sta\tq\t", "job", "list", "--state", "queued"],
          ["clio-relay job list --state=q\t", "job", "list", "--state=queued"],
          ["clio-relay job list -c lo\t", "job", "list", "-c", "local"],
          ["clio-relay job list --cluster=lo\t", "job", "list", "--cluster=local"],
          ["clio-relay job submit --script it\t", "job", "submit", "--script", 'it\'s "so"'],
          ["clio-relay job submit --script=it\t", "job", "submit", '--script=it\'s "so"'],
          ["clio-relay job submit --input deck=pl\t", "job", "submit", "--input", "deck=plain"],
          ["clio-relay job submit --input=deck=pl\t", "job", "submit", "--input=deck=plain"],
          ["clio-relay job submit --input deck=tw\t", "job", "submit", "--input", "deck=two words"],
          ["clio-relay job submit --script 'two\t", "job", "submit", "--script", "two words"],
          ["clio-relay job submit --script=tw\t", "job", "submit", "--script=two words"],
          ["clio-relay job submit --script co\t", "job", "submit", "--script", "co:lon"],
          ["clio-relay job submit --script=co\t", "job", "submit", "--script=co:lon"],
          ["clio-relay job submit --script co:l\t", "job", "submit", "--script", "co:lon"],
          ["clio-relay job submit --script=co:l\t", "job", "submit", "--script=co:lon"],
          ["clio-relay job submit --script ne\t", "job", "submit", "--script", "new\nline"],
          ["clio-relay job submit --script=ne\t", "job", "submit", "--script=new\nline"],
          ["clio-relay job submit --script '$'\t", "job", "submit", "--script", "$(touch pwned)"],
          ["clio-relay job submit -- printen\t", "job", "submit", "--", "printenv"],
          ["clio-relay job submit --wait -- cat tw\t", "job", "submit", "--wait", "--", "cat", "two words"],
        ];
        const some = sample ? lines.filter((_, at) => at % 3 === 0) : lines;
        for (const [line, ...words] of some) expect([line, await session.enter(line)]).toEqual([line, words]);
        const [, , directory] = await session.enter("clio-relay install-frp --destination su\t");
        expect(directory).toMatch(/^sub dir\/?$/);
        const [, inline] = await session.enter("clio-relay install-frp --destination=su\t");
        expect(inline).toMatch(/^--destination=sub dir\/?$/);
      });

      /** What is asked of the daemon comes within half a second or not at all, and then again. */
      const completes = async (line: string, words: readonly string[]): Promise<void> => {
        let entered: string[] = [];
        const complete = async (): Promise<boolean> => {
          entered = await session.enter(line);
          return Bun.deepEquals(entered, words);
        };
        await eventually(complete).catch(() => undefined);
        expect([line, entered]).toEqual([line, [...words]]);
      };

      test("what there is: jobs and artifacts, whose names the shell never obeys", async () => {
        const beginning = ids[0]!.slice(0, -3);
        const others = ids.filter((id) => id.startsWith(beginning));
        expect(others).toEqual([ids[0]!]);
        await completes(`clio-relay job status ${beginning}\t`, ["job", "status", ids[0]!]);
        await completes("clio-relay job wait la\t", ["job", "wait", "last"]);
        const { artifacts } = await relay.json<{ artifacts: { artifact_id: string; sha256: string }[] }>("job", "list-artifacts", ids[0]!);
        const { artifact_id, sha256 } = artifacts[0]!;
        await completes(`clio-relay job read-artifact ${artifact_id.slice(0, -3)}\t`, ["job", "read-artifact", artifact_id]);
        const pinned = `${artifact_id}=${sha256}`;
        for (const begun of [artifact_id.slice(0, -3), `${artifact_id}=${sha256.slice(0, 6)}`])
          await completes(`clio-relay job submit --used-artifact ${begun}\t`, ["job", "submit", "--used-artifact", pinned]);

        // bash completes what they have in common, rings, and lists them; fish leaves out what they have in common.
        await eventually(
          async () => {
            session.press("clio-relay job status job_\t\t\t");
            await eventually(() => ids.every((id) => session.shown.includes(id.slice(-12))), { timeoutMs: 10_000 }).catch(() =>
              session.press("\u0003"),
            );
            return ids.every((id) => session.shown.includes(id.slice(-12)));
          },
          { what: "both jobs on the screen" },
        );
        if (shell !== "bash") await eventually(() => session.shown.includes("touch pwned"), { what: "what they are" });
        session.press("\u0003");
        expect(session.shown).not.toContain(`${ESC}]0;evil`);
        expect(session.files().toSorted()).toEqual([...FILES, "sub dir"].toSorted());
      });
    });
  }

  test("without a program there is nothing to complete, and nothing is said", () => {
    const script = scriptOf("bash");
    const line = `source '${script}'; COMP_LINE='clio-relay job '; COMP_POINT=15; COMP_WORDS=(clio-relay job ''); COMP_CWORD=2; _clio_relay; echo "<\${COMPREPLY[*]}>"`;
    const { stdout, stderr } = spawnSync("/bin/bash", ["--norc", "-c", line], { env: { PATH: "/nowhere" }, encoding: "utf8" });
    expect([stdout, stderr]).toEqual(["<>\n", ""]);
  });
});

describeWith("shellcheck", "the script for bash", () => {
  test("has no fault that shellcheck knows", () => {
    const file = path.resolve(import.meta.dir, "../../../src/cli/complete/script.bash");
    const { stdout, status } = spawnSync("shellcheck", ["--shell=bash", "--severity=info", file], { encoding: "utf8" });
    expect([status, stdout]).toEqual([0, ""]);
  });
});
