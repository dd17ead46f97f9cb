import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { schemathesisCommand } from "../rigs/schemathesis/program.ts";
import type { Relay } from "../runner/relay.ts";

const HOOKS = path.join(import.meta.dir, "../rigs/schemathesis/hooks.py");
/** Longest answer that is no hang, in seconds. */
const ANSWER_SECONDS = 15;

/** What a run found. */
export interface Findings {
  readonly code: number;
  /** All that it said. */
  readonly text: string;
  readonly cases: number;
}

export interface Run {
  readonly seed: number;
  readonly examples: number;
  /** Of its kinds of cases, those that it has. */
  readonly phases: string;
  /** Where the requests go. */
  readonly socket: string;
  /** Below which path a worker's operations are there. */
  readonly below: string;
  /** Methods that are not asked. */
  readonly without?: readonly string[];
}

/** A port of loopback that leads to a Unix socket. */
async function portTo(socket: string): Promise<{ readonly port: number; close(): void }> {
  const server = net.createServer((near) => {
    const far = net.connect(socket);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as net.AddressInfo).port, close: () => server.close() };
}

/** Have requests made up by the OpenAPI document at a socket, and the answers held against it. */
export async function runSchemathesis(relay: Relay, { seed, examples, phases, socket, below, without = [] }: Run): Promise<Findings> {
  const job = (await relay.json<{ job_id: string }>("job", "submit", "--wait", "--", "sh", "-c", "echo said")).job_id;
  const { tasks } = await relay.json<{ tasks: { task_id: string }[] }>("job", "tasks", job);
  const { artifacts } = await relay.json<{ artifacts: { artifact_id: string }[] }>("job", "list-artifacts", job);
  const known = { job, task: tasks[0]!.task_id, artifact: artifacts[0]!.artifact_id, cluster: "local", worker: "local" };
  const way = await portTo(socket);
  const report = path.join(relay.directory, "cases.ndjson");
  try {
    const child = Bun.spawn(
      [
        ...schemathesisCommand(),
        "run",
        `http://127.0.0.1:${way.port}/openapi.json`,
        ...["--seed", String(seed), "--max-examples", String(examples), "--phases", phases, "--workers", "1"],
        ...["--request-timeout", String(ANSWER_SECONDS), "--continue-on-failure", "--no-shrink", "--no-color"],
        ...["--include-path-regex", below === "" ? "." : `^${below}`],
        ...without.flatMap((method) => ["--exclude-method", method]),
        ...["--checks", CHECKS, "--warnings", "off", "--generation-database", "none"],
        ...["--report-ndjson-path", report],
      ],
      {
        cwd: relay.directory,
        env: {
          ...relay.environment,
          SCHEMATHESIS_HOOKS: HOOKS,
          RELAY_KNOWN: JSON.stringify(known),
          RELAY_SEED: String(seed),
          PYTHONDONTWRITEBYTECODE: "1",
        },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    const cases = fs.existsSync(report) ? (fs.readFileSync(report, "utf8").match(/"status_code"/g) ?? []).length : 0;
    return { code, text: `${stdout}${stderr}`, cases };
  } finally {
    way.close();
  }
}

/** No failure of the server's, no status, type, header or body that the document does not name, and nothing taken that it does not allow. */
const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "unsupported_method",
  "negative_data_rejection",
].join(",");
