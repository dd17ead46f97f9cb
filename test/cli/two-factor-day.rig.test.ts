import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { COMMANDS } from "../../src/cli/commands.ts";
import { SecondFactorSshd } from "../rigs/sshd-2fa.ts";
import { describeWith } from "../runner/components.ts";
import { EXECUTABLE } from "../runner/relay.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { onTerminal } from "./on-terminal.ts";
import type { SourceRelay } from "./source-relay.ts";
import { farLink, sshDesk } from "./ssh-desk.ts";

const TIMEOUT = 600_000;

/** How the link goes: through a forwarded socket, or over `worker bridge`. Each hour has some forty commands. */
const SITES = [
  { name: "that forwards sockets", hours: 4, config: [] },
  { name: "that forwards nothing", hours: 2, config: ["AllowStreamLocalForwarding no", "AllowTcpForwarding no"] },
] as const;

/** Verbs that are no operations on a cluster elsewhere, or that make and end the connection. */
const APART = new Set([
  ...[
    "init",
    "version",
    "disconnect",
    "cluster bootstrap",
    "cluster rollback",
    "cluster uninstall",
    "cluster remove",
    "cluster pin-target",
  ],
  ...["desktop start", "desktop stop", "desktop status", "desktop logs", "desktop run"],
  ...[
    "worker run",
    "mcp-server",
    "agent render-mcp-config",
    "agent skill",
    "remote-mcp register",
    "remote-mcp refresh",
    "remote-mcp list",
    "remote-mcp reload",
    "remote-mcp unregister",
    "worker bridge",
    "worker configure",
    "worker pair",
    "worker keys list",
    "worker keys revoke",
    "worker keys rotate",
    "emit progress",
    "emit task-event",
  ],
  ...["install-frp", "completion", "job submit-pipeline", "agent run", "mcp-call", "jarvis-mcp-call", "jarvis-mcp-refresh"],
  // There is no scheduler.
  ...["scheduler status", "scheduler cancel"],
  ...Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
    /^(?:relay-host|api$)/.test(noun) ? Object.keys(verbs).map((verb) => `${noun} ${verb}`) : [],
  ),
]);

interface Left {
  readonly artifact_id: string;
  readonly name: string;
  readonly sha256: string;
}

interface Worker {
  readonly process: { readonly pid: number };
}

/** One person's work on a cluster: every command without a terminal, so that nothing could be asked. */
class Day {
  commands = 0;
  readonly verbs = new Set<string>();

  constructor(
    readonly relay: SourceRelay,
    readonly user: string,
  ) {}

  /** @param codes exit codes that are as they should be */
  async #run(args: readonly string[], codes: readonly number[] = [0]): Promise<string> {
    const at = args.includes("--") ? args.indexOf("--") : args.length;
    const { code, stdout, stderr } = await this.relay.run([...args.slice(0, at), "--no-input", ...args.slice(at)]);
    expect([args.join(" "), codes.includes(code) ? "as it should" : code, stderr]).toEqual([args.join(" "), "as it should", stderr]);
    this.commands++;
    const [noun, verb = ""] = args;
    this.verbs.add(noun === "connect" ? noun : `${noun} ${verb}`);
    return stdout.trimEnd();
  }

  async #json<T>(...args: string[]): Promise<T> {
    return JSON.parse(await this.#run([...args, "--json"])) as T;
  }

  async hour(hour: number): Promise<void> {
    await this.#run(["connect", "far"]);
    const script = `id -un; echo err >&2; mkdir -p out; head -c ${hour * 100_000} /dev/zero > out/zeros; clio-relay emit progress --current 1 --total 2`;
    const key = `hour-${hour}`;
    const submit = ["job", "submit", "--idempotency-key", key, "--output", "out/*", "--", "sh", "-c", script];
    const id = await this.#run(submit);
    expect(await this.#run(submit)).toBe(id);
    await this.#follow(id);
    await this.#collect(id, hour * 100_000);
    await this.#report(id);
    await this.#fail();
    await this.#cancel();
    await this.#look();
  }

  async #follow(id: string): Promise<void> {
    expect(await this.#run(["job", "watch", id])).toContain(this.user);
    await this.#run(["job", "wait", id]);
    for (const verb of ["status", "monitor", "attempts", "progress", "tasks"]) await this.#run(["job", verb, id]);
  }

  async #collect(id: string, size: number): Promise<void> {
    const forms = [
      [],
      ["--raw"],
      ["--follow"],
      ["--attempt", "1"],
      ["--lines", "1"],
      ["--offset", "0", "--limit", "100"],
      ["--stream", "stdout"],
    ];
    for (const form of forms) expect(await this.#run(["job", "read-log", id, ...form])).toContain(this.user);
    expect(await this.#run(["job", "read-log", id, "--stream", "stderr"])).toBe("err");
    const { artifacts } = await this.#json<{ artifacts: Left[] }>("job", "list-artifacts", id);
    const zeros = artifacts.find(({ name }) => name === "out/zeros")!;
    await this.#use(zeros, id);
    await this.#run(["job", "read-artifact", zeros.artifact_id, "-o", "zeros", "--overwrite"]);
    const kept = (...where: string[]) => fs.readFileSync(path.join(this.relay.directory, ...where));
    expect(kept("zeros").equals(Buffer.alloc(size))).toBe(true);
    await this.#run(["job", "fetch", id, "-o", id]);
    expect(kept(id, "out/zeros").equals(Buffer.alloc(size))).toBe(true);
  }

  /** What one job has left, and a file from here, go into another. */
  async #use({ artifact_id, sha256 }: Left, id: string): Promise<void> {
    fs.writeFileSync(path.join(this.relay.directory, "deck"), id);
    const uses = ["--input", "deck=deck", "--used-artifact", `${artifact_id}=${sha256}`];
    const consumer = await this.#run(["job", "submit", "--wait", ...uses, "--", "sh", "-c", 'cat "$CLIO_RELAY_INPUT_DECK"']);
    expect(await this.#run(["job", "read-log", consumer])).toBe(id);
    expect(await this.#run(["job", "used-artifacts", consumer])).toContain(artifact_id);
    expect(await this.#run(["job", "used-by", artifact_id])).toContain(consumer);
    await this.#run(["job", "provenance", consumer, "--format", "ro-crate", "-o", `${consumer}.zip`]);
  }

  async #report(id: string): Promise<void> {
    await this.#run(["job", "record-progress", id, "--current", "2"]);
    const { tasks } = await this.#json<{ tasks: { task_id: string }[] }>("job", "tasks", id);
    const task = tasks[0]!.task_id;
    await this.#run(["job", "record-task-event", task, "--event-type", "seen", "--label", "a", "--summary", "b"]);
    await this.#run(["job", "task-events", task]);
  }

  async #fail(): Promise<void> {
    await this.#run(["job", "submit", "--wait", "--retries", "1", "--", "sh", "-c", "exit 3"], [10]);
  }

  async #cancel(): Promise<void> {
    const busy = await this.#run(["job", "submit", "--", "sleep", "600"]);
    await this.#run(["job", "wait", busy, "--timeout-seconds", "0.1"], [6]);
    await this.#run(["job", "cancel", busy]);
    await this.#run(["job", "wait", busy], [10]);
  }

  async #look(): Promise<void> {
    await this.#run(["job", "list"]);
    for (const verb of ["list", "audit", "repair"]) await this.#run(["queue", verb, "--yes"]);
    await this.#run(["worker", "status"]);
    await this.#run(["cluster", "list"]);
    for (const verb of ["show", "probe", "endpoint-service-status"]) await this.#run(["cluster", verb, "far"]);
    await this.#run(["link", "list"]);
  }

  /** The worker is killed; a new one is started, and everything goes on over the connection that is there. */
  async workerDies(): Promise<void> {
    const before = (await this.#json<{ workers: Worker[] }>("worker", "status")).workers[0]!.process.pid;
    process.kill(before, "SIGKILL");
    await eventually(async () => (await this.relay.run(["worker", "status", "--no-input"])).code !== 0, {
      what: "the death of the worker",
    });
    await this.#run(["worker", "start"]);
    const now = await eventually(async () => (await this.relay.json<{ workers: Worker[] }>("worker", "status")).workers[0]?.process.pid);
    expect(now).not.toBe(before);
  }

  /** What changes how the worker is kept running. */
  async service(concurrency: number): Promise<void> {
    await this.#run(["worker", "stop"]);
    await this.#run(["worker", "start"]);
    await this.#run(["cluster", "add", "far", "--worker-concurrency", String(concurrency)]);
    await this.#run(["cluster", "install-endpoint-service", "far", "--launcher", "setsid", "--concurrency", String(concurrency)]);
    await this.#run(["cluster", "restart-endpoint-service", "far"]);
    await this.#run(["cluster", "remove-endpoint-service", "far"]);
    await this.#run(["worker", "start"]);
    // A session over a bridge ended with its worker: what comes next waits for the next one.
    await this.#run(["job", "list"]);
  }
}

for (const site of SITES) {
  describeWith(["sshd-2fa", "ssh"], `a day on a cluster with two factors ${site.name}`, () => {
    const files = temporaryDirectory();
    let node: SecondFactorSshd;

    beforeAll(async () => {
      node = await SecondFactorSshd.start({ config: site.config });
    }, TIMEOUT);
    afterAll(async () => {
      await node[Symbol.asyncDispose]();
      files[Symbol.dispose]();
    });

    const typed = async (relay: SourceRelay): Promise<string> => {
      const command = onTerminal(relay, ["cluster", "bootstrap", "--cluster", "far", "--artifact", EXECUTABLE]);
      await command.shows("Password: ");
      command.press(`${node.password}\r`);
      await command.shows("Verification code: ");
      command.press(`${node.code()}\r`);
      expect(await command.end()).toBe(0);
      return command.shown();
    };

    test(
      "one password and one code, and then some hundreds of operations of every kind with nothing asked and one connection",
      async () => {
        await using relay = await sshDesk({ directory: files.path, sshd: node.sshd, user: node.user });
        const shown = await typed(relay);
        expect([shown.match(/Password: /g)?.length, shown.match(/Verification code: /g)?.length]).toEqual([1, 1]);

        const day = new Day(relay, node.user.name);
        for (let hour = 1; hour <= site.hours; hour++) {
          await day.hour(hour);
          if (hour % 3 === 1) await day.workerDies();
          if (hour === 2) await day.service(hour + 2);
        }

        const far = await farLink(relay);
        expect([far.state, far.ssh_connections_since_bring_up, node.sshd.connections()]).toEqual(["up", 0, 1]);
        expect(far.ledger).toMatchObject([{ purpose: "bootstrap", outcome: "open", requested_by: "clio-relay cluster bootstrap far" }]);
        const all = Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
          Object.entries(verbs)
            .filter(([, command]) => !command.alias)
            .map(([verb]) => `${noun} ${verb}`.trim()),
        );
        expect([...day.verbs, ...APART].toSorted()).toEqual(all.toSorted());
        console.log(`${day.commands} commands of ${day.verbs.size} verbs; connections in sshd's log: ${node.sshd.connections()}`);
        expect(day.commands).toBeGreaterThan(35 * site.hours);
        await relay.ok("disconnect", "far");
      },
      TIMEOUT,
    );
  });
}
