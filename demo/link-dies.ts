import path from "node:path";
import {
  checkEnd,
  fetchArtifacts,
  INPUT,
  PROGRAM,
  readLogByOffsets,
  startReference,
  submit,
  untilProgress,
  watch,
  workOf,
} from "./computation.ts";
import { DemoFailure, type Installation } from "./installation.ts";
import type { LoginNode } from "./login-node.ts";
import { check, command, indent, say } from "./narration.ts";
import { alive } from "./process.ts";

/** Share of the work after which the link is cut. */
const CUT_AT = 0.3;

interface Link {
  cluster: string;
  state: string;
  ssh_connections_since_bring_up: number | null;
  ledger: {
    seq: number;
    at: string;
    purpose: string;
    target: string;
    requested_by: string;
    outcome: string | null;
    reason: string | null;
  }[];
}

/** The second half: the same computation on a cluster behind an sshd, whose link is cut in the middle. */
export async function linkDies(relay: Installation, node: LoginNode, steps: number): Promise<void> {
  say("\n\nThe same on a cluster that is reached over SSH, and the link dies.");
  say(`Its login node is an sshd on port ${node.port} that lets ${node.user} in, with a home in ${node.directory}.`);

  const show = async (...args: string[]): Promise<void> => {
    command(args.join(" "));
    say(indent(await relay.run(...args, "--no-input")));
  };
  await relay.run("init");
  await show("cluster", "add", "--name", "far", "--ssh-host", "demo-login");
  await show("cluster", "bootstrap", "--cluster", "far");
  await show("connect", "far");
  check("connect went on with bootstrap's connection", node.connections() === 1, `sshd has seen ${node.connections()}`);

  const program = node.place(PROGRAM, "work", "heat.ts");
  const input = node.place(INPUT, "work", "plate.f32");
  const executable = path.join(node.home, ".local/share/clio-relay/current/clio-relay");
  const reference = startReference(relay, steps);
  const work = workOf({ executable, program, input }, steps);
  const jobId = await submit(relay, { cluster: "far", workdir: path.dirname(program), work, steps });

  command(`job watch ${jobId}`);
  const lines: string[] = [];
  const watcher = watch(relay, jobId, (line) => lines.push(line));
  const before = await untilProgress(relay, jobId, CUT_AT);

  const sessions = node.cut();
  say(`\n  ---- kill -9 ${sessions.join(" ")} (sshd's processes of the connection) ----`);
  const state = await untilState(relay, "authorization_required");
  command(`job status ${jobId}`);
  const refused = await relay.attempt("job", "status", jobId);
  say(indent(refused.stderr));
  check(
    "without a link nothing is asked of anybody: authorization_required",
    refused.code === 4,
    `link ${state}, exit code ${refused.code}`,
  );
  check("the job goes on without it", alive(before), `process ${before.pid}`);
  check("the watch waits", watcher.exitCode === null);
  check("nobody dialed by himself", node.connections() === 1, `sshd has seen ${node.connections()}`);
  await show("connect", "far");
  say();

  // It says that it was away where it has noticed: one that asks again just when the link comes back has not.
  const code = await watcher.exited;
  check("the watch went on from its cursor and ended with the job", code === 0, `exit code ${code}`);
  const shown = lines.filter((line) => line.startsWith("stdout | ")).map((line) => line.slice("stdout | ".length));
  await checkEnd(relay, jobId, before);

  say("\nThe same computation without the relay, which has run beside it on this side:");
  check("it ended well", (await reference.process.exited) === 0);
  const output = await reference.output();
  check("the watch showed each line of its output once", `${shown.join("\n")}\n` === output.toString(), `${shown.length} lines`);
  const log = await readLogByOffsets(relay, jobId);
  check("the log is its output byte for byte", log.equals(output), `${log.length} bytes`);
  await fetchArtifacts(relay, jobId, reference.directory);

  await show("link", "list");
  await showLedger(relay, node);
  await show("disconnect", "far");
}

async function showLedger(relay: Installation, node: LoginNode): Promise<void> {
  command("link list --json   # its ledger: each connection is written down before it is dialed");
  const { ledger, ssh_connections_since_bring_up: since } = await farLink(relay);
  for (const { seq, at, purpose, target, outcome, requested_by, reason } of ledger)
    say(`  ${seq}  ${at}  ${purpose.padEnd(9)}  ${target}  ${outcome}  ${reason ?? "still there"}  by ${requested_by}`);
  check("no connection was made since the link is up", since === 0);
  check(
    "sshd's own log has as many connections as the ledger",
    ledger.length === 2 && node.connections() === 2,
    `${node.connections()} and ${ledger.length}`,
  );
}

async function farLink(relay: Installation): Promise<Link> {
  const { links } = await relay.json<{ links: Link[] }>("link", "list");
  const far = links.find(({ cluster }) => cluster === "far");
  if (far === undefined) throw new DemoFailure("link list does not know the cluster");
  return far;
}

async function untilState(relay: Installation, wanted: string): Promise<string> {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const { state } = await farLink(relay);
    if (state === wanted || Date.now() > deadline) return state;
    await Bun.sleep(50);
  }
}
