import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { Wire } from "../../mcp/wire.ts";
import { type RigUser, userFile } from "../../rigs/sshd.ts";
import { SecondFactorSshd } from "../../rigs/sshd-2fa.ts";
import { describeWith } from "../../runner/components.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { onTerminal } from "../on-terminal.ts";
import type { SourceRelay } from "../source-relay.ts";
import { farLink, sshDesk } from "../ssh-desk.ts";

const TIMEOUT = 600_000;

/** How the link goes: through a forwarded socket, or over `worker bridge`. Each hour has some forty commands. */
const SITES = [
  { name: "that forwards sockets", hours: 4, config: [] },
  { name: "that forwards nothing", hours: 2, config: ["AllowStreamLocalForwarding no", "AllowTcpForwarding no"] },
] as const;

const ALL: readonly string[] = Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
  Object.entries(verbs)
    .filter(([, command]) => !command.alias)
    .map(([verb]) => `${noun} ${verb}`.trim()),
);

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
    "worker bridge",
    "worker configure",
    "worker pair",
    "worker keys revoke",
    "worker keys rotate",
    "emit progress",
    "emit task-event",
  ],
  // There is no JARVIS-CD.
  ...["install-frp", "completion", "job submit-pipeline", "jarvis-mcp-call", "jarvis-mcp-refresh"],
  // There is no scheduler.
  ...["scheduler status", "scheduler cancel"],
  ...Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
    /^(?:relay-host|api$)/.test(noun) ? Object.keys(verbs).map((verb) => `${noun} ${verb}`) : [],
  ),
]);

/** A server of the Model Context Protocol with one tool, in sh. */
const SERVER = `#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\\("*[^,"}]*"*\\).*/\\1/p')
  case $line in
    *'"initialize"'*) said='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"one","version":"1"}}' ;;
    *'"tools/list"'*) said='"result":{"tools":[{"name":"inspect","description":"Inspects.","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) said='"result":{"content":[{"type":"text","text":"inspected"}]}' ;;
    *) said='"error":{"code":-32601,"message":"there is none"}' ;;
  esac
  [ -z "$id" ] || printf '{"jsonrpc":"2.0","id":%s,%s}\\n' "$id" "$said"
done
`;

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
    readonly account: RigUser,
  ) {}

  get user(): string {
    return this.account.name;
  }

  /** @param codes exit codes that are as they should be */
  async #run(args: readonly string[], codes: readonly number[] = [0]): Promise<string> {
    const at = args.includes("--") ? args.indexOf("--") : args.length;
    const { code, stdout, stderr } = await this.relay.run([...args.slice(0, at), "--no-input", ...args.slice(at)]);
    expect([args.join(" "), codes.includes(code) ? "as it should" : code, stderr]).toEqual([args.join(" "), "as it should", stderr]);
    this.commands++;
    this.verbs.add(ALL.find((verb) => `${args.join(" ")} `.startsWith(`${verb} `))!);
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

  /** A server on the cluster is asked by a person and by an agent here, and an agent works there. */
  async agents(): Promise<void> {
    const server = userFile(this.account, "bin/one-tool", SERVER, 0o700);
    const call = ["mcp-call", "--server", server, "--wait"];
    await this.#run([...call, "--operation", "tools/list"]);
    const called = await this.#run([...call, "--tool", "inspect"]);
    expect(await this.#run(["job", "read-artifact", called, "mcp-result.json", "-o", "-"])).toContain("inspected");
    const one = ["--cluster", "far", "--name", "one"];
    await this.#run(["remote-mcp", "register", ...one, "--command", server, "--allow-tool", "*"]);
    await this.#run(["remote-mcp", "refresh", ...one]);
    for (const verb of ["list", "reload"]) await this.#run(["remote-mcp", verb]);
    await this.#tools();
    await this.#run(["remote-mcp", "unregister", ...one]);
    fs.writeFileSync(path.join(this.relay.directory, "ask.md"), "what is here?");
    const asked = await this.#run(["agent", "run", "--prompt-file", "ask.md", "--wait"]);
    expect(await this.#run(["job", "read-log", asked])).toBe("what is here?");
    for (const verb of ["render-mcp-config", "skill"]) await this.#run(["agent", verb]);
    await this.#run(["worker", "keys", "list"]);
  }

  /** What an agent here does with the cluster, by the endpoint. */
  async #tools(): Promise<void> {
    await using wire = new Wire(this.relay, ["--profile", "admin"]);
    const listed = async () => (await wire.result<{ tools: { name: string }[] }>("tools/list", {})).tools.map(({ name }) => name);
    expect(await listed()).toContain("remote_one_inspect");
    const tool = async (name: string, given: object) => {
      const answer = await wire.result<{ isError?: boolean }>(
        "tools/call",
        { name, arguments: { cluster: "far", ...given } },
        { tasks: false },
      );
      expect([name, answer.isError ?? false, answer]).toEqual([name, false, answer]);
      return JSON.stringify(answer);
    };
    expect(await tool("remote_one_inspect", {})).toContain("inspected");
    expect(await tool("relay_submit_command", { argv: ["id", "-un"] })).toContain("job_");
    await tool("relay_list_jobs", {});
    await listed();
    this.verbs.add("mcp-server");
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
        await relay.ok("cluster", "add", "far", "--agent-commands", "--agent-bin", "/bin/echo");
        const shown = await typed(relay);
        expect([shown.match(/Password: /g)?.length, shown.match(/Verification code: /g)?.length]).toEqual([1, 1]);

        const day = new Day(relay, node.user);
        for (let hour = 1; hour <= site.hours; hour++) {
          await day.hour(hour);
          if (hour % 3 === 1) await day.workerDies();
          if (hour === 1) await day.agents();
          if (hour === 2) await day.service(hour + 2);
        }

        const far = await farLink(relay);
        expect([far.state, far.ssh_connections_since_bring_up, node.sshd.connections()]).toEqual(["up", 0, 1]);
        expect(far.ledger).toMatchObject([{ purpose: "bootstrap", outcome: "open", requested_by: "clio-relay cluster bootstrap far" }]);
        expect([...day.verbs, ...APART].toSorted()).toEqual(ALL.toSorted());
        console.log(`${day.commands} commands of ${day.verbs.size} verbs; connections in sshd's log: ${node.sshd.connections()}`);
        expect(day.commands).toBeGreaterThan(35 * site.hours);
        await relay.ok("disconnect", "far");
      },
      TIMEOUT,
    );
  });
}
