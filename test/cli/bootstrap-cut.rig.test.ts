import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { freePort } from "../rigs/free-port.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, type Sshd, startSshd } from "../rigs/sshd.ts";
import { describeWith } from "../runner/components.ts";
import { EXECUTABLE } from "../runner/relay.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { tree } from "../transport/bootstrap/host.ts";
import { inFrontOf } from "../transport/bootstrap/search-path.ts";
import type { SourceRelay } from "./source-relay.ts";
import { farLink, sshDesk } from "./ssh-desk.ts";

/** What the command ends with, and what it names. */
const LOST =
  /^error: the connection to the host of far was lost: .* \[link_down\]\nhint: clio-relay cluster bootstrap far, with the options that it had: .*\n$/;

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

  async go(): Promise<void> {
    fs.writeFileSync(path.join(this.bin, "go"), "");
    await eventually(() => fs.existsSync(path.join(this.bin, "gone")), { what: "the program" });
  }

  /** Command lines of what runs there as the user. */
  running(words: string): string[] {
    const { stdout } = spawnSync("ps", ["-ww", "-U", String(this.user.uid), "-o", "args="], { encoding: "utf8" });
    return stdout.split("\n").filter((line) => line.includes(words));
  }
}

describeWith(["sshd", "ssh"], "a bootstrap whose sshd is killed", () => {
  const files = temporaryDirectory();
  const executable = path.join(files.path, "clio-relay");
  let account: StoppedAccount;
  let sshd: Sshd;
  let key: string;

  beforeAll(async () => {
    fs.copyFileSync(EXECUTABLE, executable);
    account = new StoppedAccount();
    key = makeKey(files.path);
    authorize(account.user, `${key}.pub`);
    sshd = await startSshd({ config: [`SetEnv PATH=${account.bin}:/usr/bin:/bin`] });
  });
  afterAll(async () => {
    await sshd[Symbol.asyncDispose]();
    removeUser(account.user);
    files[Symbol.dispose]();
  });

  const desk = (): Promise<SourceRelay> => sshDesk({ directory: files.path, sshd, user: account.user, key });
  const bootstrap = ["cluster", "bootstrap", "--cluster", "far", "--artifact", executable, "--no-input"];
  const root = (): string => path.join(account.user.home, ".local/share/clio-relay");

  /** Whatever is installed runs. */
  const consistent = (): boolean => {
    const current = path.join(root(), "current/clio-relay");
    return !fs.existsSync(path.join(root(), "current")) || spawnSync(current, ["--version"]).status === 0;
  };

  /** Files of the installation, but for those of the worker that runs. */
  const installed = (): string[] =>
    Object.keys(tree(account.user.home))
      .filter((file) => !/\/(?:core|spool)\/far\//.test(file))
      .map((file) => file.replace(/[0-9a-f]{64}/, "DIGEST").replace(".local/share/clio-relay/", ""))
      .sort();

  /** The command, up to a step, with what is done there. */
  async function upTo(relay: SourceRelay, step: Step, what: () => void | Promise<void>) {
    account.arm(step);
    const command = relay.run(bootstrap);
    const tooEarly = command.then((result) => Promise.reject(new Error(`ended before ${step.name}: ${JSON.stringify(result)}`)));
    await Promise.race([eventually(() => account.isReached, { what: step.name }), tooEarly]);
    await what();
    const result = await command;
    await account.go();
    // What was stopped goes on without its connection, and ends.
    await eventually(() => account.running("/bin/sh -").length === 0, { what: `the end of the script of: ${step.name}` });
    expect([step.name, consistent()]).toEqual([step.name, true]);
    return result;
  }

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

  test("at each step: the command says so and which one goes on, which does; then all is there once, and works", async () => {
    await using relay = await desk();
    for (const step of STEPS) {
      const { code, stdout, stderr } = await upTo(relay, step, () => sshd.cut());
      expect([step.name, code, stdout, stderr]).toEqual([step.name, 5, "", expect.stringMatching(LOST)]);
    }
    // The listening process, too: nobody answers until there is one again.
    const crashed = await upTo(relay, { name: "configuration, and then nobody", pattern: "dd bs=1 count=*" }, () => sshd.crash());
    expect([crashed.code, crashed.stderr]).toEqual([5, expect.stringMatching(LOST)]);
    const alone = await relay.run(bootstrap);
    expect([alone.code, alone.stderr]).toEqual([5, expect.stringMatching(/\[host_unreachable\]\nhint: /)]);
    await sshd.again();
    const { sent_bytes, worker } = await relay.json<{ sent_bytes: number; worker: { state: string } }>(...bootstrap);
    expect([sent_bytes, worker.state]).toEqual([0, "kept"]);

    expect(account.running(" worker run ")).toHaveLength(1);
    expect(installed()).toEqual([
      ".local/bin/clio-relay",
      ".local/state/clio-relay/log/worker-far.log",
      "bootstrap/journal.jsonl",
      "current",
      "versions/DIGEST/clio-relay",
      "versions/DIGEST/version",
    ]);
    await relay.ok("connect", "far", "--no-input");
    expect(await relay.ok("job", "read-log", await relay.submit("--wait", "--", "id", "-un"))).toBe(account.user.name);
    const { ledger } = await farLink(relay);
    expect(ledger.filter(({ outcome }) => outcome === "open")).toHaveLength(sshd.connections());
    await relay.ok("worker", "stop");
  });

  test.each(["builtin", "openssh"])(
    "who is not let in, or reaches nobody, is told how to look for it; with the client %s",
    async (client) => {
      const told = async (place: Pick<Sshd, "host" | "port" | "knownLine">) => {
        const other = makeKey(files.path);
        await using relay = await sshDesk({ directory: files.path, sshd: place, user: account.user, key: other });
        await relay.ok("cluster", "add", "--name", "far", "--ssh-client", client);
        const { code, stderr } = await relay.run(bootstrap);
        const [, reason = "", hint = ""] = /\[(\w+)\]\nhint: (.*)\n$/.exec(stderr) ?? [];
        return { code, reason, hint, config: relay.environment["CLIO_RELAY_SSH_CONFIG"] };
      };
      const refused = await told(sshd);
      expect([refused.code, refused.reason]).toEqual([4, "authentication_failed"]);
      expect(refused.hint).toBe(
        client === "builtin"
          ? `ssh -F ${refused.config} login shows whether OpenSSH is let in; where it is: clio-relay cluster add far --ssh-client openssh`
          : `ssh -v -F ${refused.config} login shows what OpenSSH tries; the account may want another key, user, password or code`,
      );
      const nobody = await told({ host: sshd.host, port: await freePort(), knownLine: () => sshd.knownLine() });
      expect([nobody.code, nobody.reason]).toEqual([5, "host_unreachable"]);
      expect(nobody.hint).toStartWith(`ssh -F ${nobody.config} login shows whether ssh reaches it: `);
    },
  );
});
