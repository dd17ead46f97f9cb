import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { authorize, makeKey, makeUser, type RigUser, removeUser, type Sshd, startSshd } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { tree } from "../../transport/bootstrap/host.ts";
import { inFrontOf } from "../../transport/bootstrap/search-path.ts";
import type { SourceRelay } from "../source-relay.ts";
import { farLink, sshDesk } from "../ssh-desk.ts";

interface Step {
  readonly name: string;
  /** The program and its arguments, for case of sh(1). */
  readonly pattern: string;
  /** The how manyth of those. */
  readonly nth?: number;
  /** Of an upload: reads that are taken first. */
  readonly blocks?: number;
  /** Whether the script ends with its connection, as where a site ends what a logout leaves; else it goes on without. */
  readonly ends?: boolean;
}

/** An account whose scripts stop where a test says: before a program that begins so for the n-th time, until they are let go. */
class StoppedAccount {
  readonly user: RigUser = makeUser();
  readonly bin = path.join(this.user.home, "bin");

  constructor() {
    fs.mkdirSync(this.bin, { mode: 0o700 });
    const { bin } = this;
    inFrontOf(
      bin,
      ["getconf", "chmod", "mkdir", "dd", "sha256sum", "mv", "ln", "timeout", "cut", "rm"],
      (name) => `if [ -e ${bin}/armed ]; then
  read -r left pattern <${bin}/armed
  case "${name} $*" in
    $pattern)
      if [ "$left" -gt 1 ]; then
        echo "$((left - 1)) $pattern" >${bin}/armed
      else
        /bin/mv ${bin}/armed ${bin}/stopped
        [ ! -e ${bin}/blocks ] || /bin/dd "$@" count="$(/bin/cat ${bin}/blocks)"
        : >${bin}/reached
        until /bin/mv ${bin}/go ${bin}/gone 2>/dev/null; do /bin/sleep 0.05; done
        [ ! -e ${bin}/ends ] || kill -KILL 0
        [ ! -e ${bin}/blocks ] || exit 1
      fi ;;
  esac
fi
`,
    );
    fs.chownSync(bin, this.user.uid, this.user.gid);
  }

  arm({ pattern, nth = 1, blocks, ends = false }: Step): void {
    for (const name of ["armed", "stopped", "blocks", "ends", "reached", "go", "gone"])
      fs.rmSync(path.join(this.bin, name), { force: true });
    if (blocks !== undefined) fs.writeFileSync(path.join(this.bin, "blocks"), String(blocks));
    if (ends) fs.writeFileSync(path.join(this.bin, "ends"), "");
    fs.writeFileSync(path.join(this.bin, "armed"), `${nth} ${pattern}\n`, { mode: 0o666 });
    fs.chownSync(path.join(this.bin, "armed"), this.user.uid, this.user.gid);
  }

  get isReached(): boolean {
    return fs.existsSync(path.join(this.bin, "reached"));
  }

  /** Let them go on. @param ends whether the script is killed there */
  async go({ ends = false } = {}): Promise<void> {
    if (ends) fs.writeFileSync(path.join(this.bin, "ends"), "");
    fs.writeFileSync(path.join(this.bin, "go"), "");
    await eventually(() => fs.existsSync(path.join(this.bin, "gone")), { what: "the program" });
  }

  /** Command lines of what runs there as the user. */
  running(words: string): string[] {
    const { stdout } = spawnSync("ps", ["-ww", "-U", String(this.user.uid), "-o", "args="], { encoding: "utf8" });
    return stdout.split("\n").filter((line) => line.includes(words));
  }
}

/** Where a bootstrap may be stopped, in the order in which it gets there. */
const STEPS: readonly Step[] = [
  { name: "probe, with its file there", pattern: "chmod 700 *.clio-relay-probe.*" },
  { name: "prepare", pattern: "mkdir -p */versions" },
  { name: "the upload, before its first byte", pattern: "dd of=*", blocks: 0 },
  { name: "the upload, near its beginning", pattern: "dd of=*", blocks: 40 },
  { name: "the upload, further on", pattern: "dd of=*", blocks: 800, ends: true },
  { name: "the digest of what was sent", pattern: "sha256sum *", nth: 2, ends: true },
  { name: "install, before it is in its place", pattern: "mv */.place-*", ends: true },
  { name: "install, before the switch", pattern: "mv -fT *.current.new *" },
  { name: "keys and configuration, before them", pattern: "dd bs=1 count=*", ends: true },
  { name: "keys and configuration, not yet told", pattern: "dd bs=16384 count=1" },
  { name: "the worker, not yet told", pattern: "dd bs=16384 count=1", nth: 2, ends: true },
  { name: "the report", pattern: "cut -d . -f 1 /proc/uptime", nth: 2 },
];

/** A login node with such an account, and what is installed there. */
class Stage implements AsyncDisposable {
  readonly #files = temporaryDirectory();
  readonly #executable = path.join(this.#files.path, "clio-relay");
  readonly #key = makeKey(this.#files.path);
  readonly bootstrap = ["cluster", "bootstrap", "--cluster", "far", "--artifact", this.#executable, "--no-input"];

  private constructor(
    readonly account: StoppedAccount,
    readonly sshd: Sshd,
  ) {
    fs.copyFileSync(EXECUTABLE, this.#executable);
    authorize(account.user, `${this.#key}.pub`);
  }

  static async start(): Promise<Stage> {
    const account = new StoppedAccount();
    return new Stage(account, await startSshd({ config: [`SetEnv PATH=${account.bin}:/usr/bin:/bin`] }));
  }

  desk(): Promise<SourceRelay> {
    return sshDesk({ directory: this.#files.path, sshd: this.sshd, user: this.account.user, key: this.#key });
  }

  /** Whatever is installed runs. */
  consistent(): boolean {
    const current = path.join(this.account.user.home, ".local/share/clio-relay/current");
    return !fs.existsSync(current) || spawnSync(path.join(current, "clio-relay"), ["--version"]).status === 0;
  }

  /** Files of the installation, but for those of the worker that runs. */
  installed(): string[] {
    return Object.keys(tree(this.account.user.home))
      .filter((file) => !/\/(?:core|spool)\/far\//.test(file))
      .map((file) => file.replace(/[0-9a-f]{64}/, "DIGEST").replace(".local/share/clio-relay/", ""))
      .sort();
  }

  /** The command, up to a step, with what is done there. */
  async upTo(relay: SourceRelay, step: Step, what: (child: Bun.Subprocess) => unknown) {
    const { account } = this;
    account.arm(step);
    const child = relay.start(this.bootstrap);
    const command = Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
    const tooEarly = command.then((result) => Promise.reject(new Error(`ended before ${step.name}: ${JSON.stringify(result)}`)));
    await Promise.race([eventually(() => account.isReached, { what: step.name }), tooEarly]);
    await what(child);
    const [code, stdout, stderr] = await command;
    await account.go();
    // What was stopped goes on without its connection, and ends.
    await eventually(() => account.running("/bin/sh -").length === 0, { what: `the end of the script of: ${step.name}` });
    expect([step.name, this.consistent()]).toEqual([step.name, true]);
    return { code, stdout, stderr };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sshd[Symbol.asyncDispose]();
    removeUser(this.account.user);
    this.#files[Symbol.dispose]();
  }
}

interface Way {
  readonly victim: string;
  readonly kill: (stage: Stage, relay: SourceRelay, command: Bun.Subprocess) => unknown;
  readonly code: number;
  /** What the command says at its end; it names the one that goes on. */
  readonly says: RegExp;
  /** Whether the connection is there for the next run. */
  readonly keeps: boolean;
}

const AGAIN = "clio-relay cluster bootstrap far, with the options that it had: ";
const LOST = new RegExp(`^error: the connection to the host of far was lost: .* \\[link_down\\]\nhint: ${AGAIN}it .*\n$`);

const WAYS: readonly Way[] = [
  { victim: "sshd's process of the session", kill: ({ sshd }) => sshd.cut(), code: 5, says: LOST, keeps: false },
  {
    victim: "the desktop daemon",
    kill: (_, relay) => relay.kill(relay.daemons()[0]!),
    code: 5,
    says: new RegExp(`^error: the daemon ended before it was done \\[link_down\\]\nhint: ${AGAIN}a daemon .*\n$`),
    keeps: false,
  },
  { victim: "the command", kill: (_stage, _relay, command) => command.kill("SIGKILL"), code: 137, says: /^$/, keeps: true },
  {
    victim: "the command, from the keyboard,",
    kill: (_stage, _relay, command) => command.kill("SIGINT"),
    code: 130,
    says: /^given up; what was sent stays, and clio-relay cluster bootstrap --cluster far goes on from there\n$/,
    keeps: true,
  },
  {
    victim: "the script on the host",
    kill: ({ account }) => account.go({ ends: true }),
    code: 1,
    says: new RegExp(`^error: the program ".*" on the cluster's host was ended by SIGKILL \\[script_failed\\]\nhint: ${AGAIN}it .*\n$`),
    keeps: true,
  },
];

describeWith(["sshd", "ssh"], "a bootstrap that is killed", () => {
  test.each(WAYS.map((way) => [way.victim, way] as const))(
    "%s, at each step: the command says which one goes on, which does; then all is there once, and works",
    async (_, { kill, code, says, keeps }) => {
      await using stage = await Stage.start();
      await using relay = await stage.desk();
      for (const step of STEPS) {
        const result = await stage.upTo(relay, step, (command) => kill(stage, relay, command));
        expect([step.name, result]).toEqual([step.name, { code, stdout: "", stderr: expect.stringMatching(says) }]);
      }
      const { sent_bytes, worker } = await relay.json<{ sent_bytes: number; worker: { state: string } }>(...stage.bootstrap);
      expect([sent_bytes, worker.state]).toEqual([0, "kept"]);
      expect(stage.sshd.connections()).toBe(keeps ? 1 : STEPS.length + 1);

      expect(stage.account.running(" worker run ")).toHaveLength(1);
      expect(stage.installed()).toEqual([
        ".local/bin/clio-relay",
        ".local/state/clio-relay/log/worker-far.log",
        "bootstrap/journal.jsonl",
        "current",
        "versions/DIGEST/clio-relay",
        "versions/DIGEST/version",
      ]);
      await relay.ok("connect", "far", "--no-input");
      expect(await relay.ok("job", "read-log", await relay.submit("--wait", "--", "id", "-un"))).toBe(stage.account.user.name);
      const { ledger } = await farLink(relay);
      expect(ledger.filter(({ outcome }) => outcome === "open")).toHaveLength(stage.sshd.connections());
      await relay.ok("worker", "stop");
    },
    300_000,
  );

  test("with all of sshd: nobody answers until there is one again, and then it goes on", async () => {
    await using stage = await Stage.start();
    await using relay = await stage.desk();
    // The upload is the first script that has an input, the configuration the second.
    const step = { name: "configuration", pattern: "dd bs=1 count=*", nth: 2 };
    const crashed = await stage.upTo(relay, step, () => stage.sshd.crash());
    expect([crashed.code, crashed.stderr]).toEqual([5, expect.stringMatching(LOST)]);
    const alone = await relay.run(stage.bootstrap);
    expect([alone.code, alone.stderr]).toEqual([5, expect.stringMatching(/\[host_unreachable\]\nhint: /)]);
    await stage.sshd.again();
    expect(await relay.json(...stage.bootstrap)).toMatchObject({ sent_bytes: 0, worker: { state: "started" } });
    await relay.ok("worker", "stop");
  });
});
