import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Agent } from "../../mcp/agent.ts";
import { removeTree } from "../../runner/remove.ts";
import { MAIN, type SourceRelay, withWorker } from "../source-relay.ts";

/** An agent that shows its arguments, or with the model `sh` does what its prompt says. */
const AGENT = `#!/bin/sh
[ "$CLIO_RELAY_AGENT_MODEL" = sh ] && exec /bin/sh "$CLIO_RELAY_AGENT_PROMPT"
printf 'said: %s\\n' "$@"
[ -z "$CLIO_RELAY_AGENT_MCP_CONFIG" ] || cat "$CLIO_RELAY_AGENT_MCP_CONFIG"
`;

interface Submitted {
  readonly job_id: string;
  readonly idempotency_key: string;
  readonly existing: boolean;
  readonly metadata: Record<string, unknown>;
}

describe("an agent on the command line", () => {
  const place = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-agent-cli-"));
  const agent = path.join(place, "agent");
  const prompt = path.join(place, "prompt.md");
  let relay: SourceRelay;
  beforeAll(async () => {
    fs.writeFileSync(agent, AGENT, { mode: 0o755 });
    fs.writeFileSync(prompt, "count the 'files' $HOME\n");
    relay = await withWorker({ CLIO_RELAY_AGENT_BIN: agent });
  });
  afterAll(async () => {
    await relay[Symbol.asyncDispose]();
    removeTree(place);
  });

  test("gets the text of the prompt; the same prompt is the same job, unless it is to be run again", async () => {
    const first = await relay.json<Submitted>("agent", "run", "--cluster", "local", "--prompt", prompt);
    expect(first.idempotency_key).toBe(`agent:local:${prompt}:`);
    await relay.ok("job", "wait", first.job_id);
    expect(await relay.ok("job", "read-log", first.job_id)).toBe("said: count the 'files' $HOME");
    const again = await relay.run(["agent", "run", "--prompt", prompt]);
    expect([again.code, again.stdout.trim()]).toEqual([0, first.job_id]);
    expect(again.stderr).toBe(`notice: existing job ${first.job_id}, succeeded; --new runs again\n`);
    expect(await relay.ok("agent", "run", "--prompt", prompt, "--new", "--wait")).not.toBe(first.job_id);
    const kinds = await relay.json<{ artifacts: { kind: string }[] }>("job", "list-artifacts", first.job_id);
    expect(kinds.artifacts.map(({ kind }) => kind)).toContain("agent_last_message");
  });

  test("gets files that are brought along, which are edges of the job; the same content is the same job", async () => {
    const ask = path.join(relay.directory, "ask.md");
    fs.writeFileSync(ask, "what is here?");
    fs.writeFileSync(path.join(relay.directory, "agent.toml"), "[mcp_servers.clio-relay]\n");
    const words = ["agent", "run", "--prompt-file", "ask.md", "--mcp-config-file", "agent.toml"];
    const id = await relay.ok(...words, "--wait");
    expect(await relay.ok("job", "read-log", id)).toBe("said: what is here?\n[mcp_servers.clio-relay]");
    const { used_artifacts: used } = await relay.json<{ used_artifacts: { provenance: { arg: string } }[] }>("job", "used-artifacts", id);
    expect(used.map(({ provenance }) => provenance.arg).toSorted()).toEqual(["mcp_config", "prompt"]);
    expect(await relay.ok(...words)).toBe(id);
    fs.writeFileSync(ask, "and now?");
    expect(await relay.ok(...words)).not.toBe(id);
    expect(await relay.ok("job", "list")).toContain("ask.md");
  });

  test("what is wrong is said before anything is recorded", async () => {
    const absent = await relay.run(["agent", "run", "--prompt", "/absent/prompt.md"]);
    expect(absent.code).toBe(2);
    expect(absent.stderr).toContain("agent_submission_refused");
    expect((await relay.run(["agent", "run", "--prompt", "prompt.md"])).stderr).toContain("absolute path");
    expect((await relay.run(["agent", "run"])).stderr).toContain("--prompt-file");
    fs.writeFileSync(path.join(relay.directory, "large.md"), "x".repeat(128 * 1024));
    for (const [words, said] of [
      [["--scheduler", "auto", "--timeout", "5m"], "--timeout does not go with a scheduler"],
      [["--gpus", "1"], "--gpus is for work that a scheduler runs"],
      [["--scheduler", "slurm", "--nodes", "2"], "scheduler"],
    ] as const) {
      const refused = await relay.run(["agent", "run", "--prompt", prompt, "--new", ...words]);
      expect([words, refused.code === 0, refused.stderr.includes(said)]).toEqual([words, false, true]);
    }
    const large = await relay.run(["agent", "run", "--prompt", path.join(relay.directory, "large.md")]);
    expect([large.code, large.stderr.includes("{prompt_path}")]).toEqual([2, true]);
  });

  test("may wait for jobs of its own, which go to its worker and name it; it starts no agents", async () => {
    const command = `'${process.execPath}' '${MAIN}'`;
    const lines = [
      `id=$(${command} job submit --wait -- sh -c 'echo of the child') || exit 3`,
      `${command} job read-log "$id"`,
      'echo "$id"',
      `${command} agent run --prompt '${prompt}' --new || echo "refused with $?"`,
    ];
    fs.writeFileSync(path.join(relay.directory, "own.sh"), lines.join("\n"));
    await relay.ok("worker", "stop", "--cluster", "local");
    await relay.ok("worker", "start", "--cluster", "local", "--concurrency", "3");
    const run = ["agent", "run", "--prompt-file", "own.sh", "--model", "sh", "--new"];
    const jobs = [await relay.ok(...run), await relay.ok(...run)];
    for (const id of jobs) {
      await relay.ok("job", "wait", id);
      const [said, child, refused] = (await relay.ok("job", "read-log", id)).split("\n");
      expect([said, refused]).toEqual(["of the child", "refused with 2"]);
      const { job } = await relay.json<{ job: Submitted }>("job", "status", child!);
      expect(job.metadata["parent_job_id"]).toBe(id);
    }
    const errors = await relay.ok("job", "read-log", jobs[0]!, "--stream", "stderr");
    expect(errors).toContain("an agent starts no agents");
  });

  test("needs no daemon to reach its worker, by the command line or by MCP", async () => {
    await relay.ok("desktop", "stop");
    const outer = `job_${"0".repeat(31)}1`;
    const env = { CLIO_RELAY_ATTEMPT: `${outer}/1`, CLIO_RELAY_JOB_ID: outer, CLIO_RELAY_CLUSTER: "local" };
    const submitted = await relay.run(["job", "submit", "--json", "--", "echo", "inner"], { env });
    expect(submitted.stderr).toBe("");
    expect((JSON.parse(submitted.stdout) as Submitted).metadata).toEqual({ parent_job_id: outer });
    await using agent = await Agent.of(relay, { env });
    const own = { cluster: "local", prompt_path: prompt, idempotency_key: "by MCP", wait_for_terminal: true };
    const made = await agent.ok<{ job_id: string; state: string }>("relay_submit_agent", own);
    expect(made.state).toBe("succeeded");
    expect(relay.daemons()).toEqual([]);
    const { job } = await relay.json<{ job: Submitted }>("job", "status", made.job_id);
    expect(job.metadata["parent_job_id"]).toBe(outer);
    const outside = await relay.json<Submitted>("agent", "run", "--prompt", prompt, "--idempotency-key", "from outside");
    const inside = await relay.run(["agent", "run", "--prompt", prompt, "--idempotency-key", "from outside"], { env });
    expect(inside.stdout.trim()).toBe(outside.job_id);
  });

  test("is refused where it could hold the only slot, and where there is none", async () => {
    await relay.ok("worker", "stop", "--cluster", "local");
    await relay.ok("worker", "start", "--cluster", "local", "--concurrency", "2");
    const slots = await relay.run(["agent", "run", "--prompt", prompt, "--new"]);
    expect([slots.code, slots.stderr.includes("one slot for jobs")]).toEqual([1, true]);
    await relay.ok("worker", "stop", "--cluster", "local");
    const started = await relay.run(["worker", "start", "--cluster", "local"], {
      env: { CLIO_RELAY_AGENT_BIN: path.join(place, "absent") },
    });
    expect(started.code).toBe(0);
    const missing = await relay.run(["agent", "run", "--prompt", prompt, "--new"]);
    expect([missing.code, missing.stderr.includes("there is no program")]).toEqual([1, true]);
  });
});
