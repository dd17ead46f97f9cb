import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { initialized } from "../source-relay.ts";

test("programs of a cluster's entry are what its worker runs; they are changed and taken back by name", async () => {
  await using relay = await initialized();
  const agent = path.join(relay.directory, "agent");
  const prompt = path.join(relay.directory, "prompt.md");
  fs.writeFileSync(agent, `#!/bin/sh\nprintf '%s\\n' "$@"\n`, { mode: 0o755 });
  fs.writeFileSync(prompt, "what?");
  const add = (...options: string[]) => relay.run(["cluster", "add", "local", ...options]);
  const show = () => relay.json("cluster", "show", "local");
  const alone = await add("--agent-adapter", "codex");
  expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining("--agent-adapter needs --agent-bin")]);
  const jarvis = ["--jarvis-bin", "$HOME/jarvis/bin/jarvis"];
  expect((await add("--agent-bin", agent, "--agent-args", '["--in", "{prompt_path}"]', ...jarvis)).code).toBe(0);
  const programs = { agent_bin: agent, agent_args: ["--in", "{prompt_path}"], jarvis_bin: "~/jarvis/bin/jarvis" };
  expect(await show()).toMatchObject(programs);
  expect(await relay.ok("cluster", "show", "local")).toContain(agent);

  await relay.ok("worker", "start");
  const job = await relay.ok("agent", "run", "--prompt", prompt, "--wait");
  expect(await relay.ok("job", "read-log", job)).toBe(`--in\n${prompt}`);
  fs.writeFileSync(path.join(relay.directory, "p.yaml"), "name: p\npkgs:\n  - pkg_type: builtin.echo\n");
  const pipeline = await relay.run(["job", "submit", "--jarvis-yaml", "p.yaml"]);
  expect(pipeline.stderr).toContain(`there is no program ${relay.directory}/user/jarvis/bin/jarvis`);

  const changed = await add("--agent-args", '["{prompt}"]');
  expect(changed.stderr).toContain("a worker of local runs; this takes effect when it is restarted");
  expect(await show()).toMatchObject({ ...programs, agent_args: ["{prompt}"] });
  expect((await add("--unset", "agent-bin", "--unset", "jarvis-bin")).code).toBe(0);
  const left = await show();
  for (const name of ["agent_bin", "agent_args", "agent_adapter", "jarvis_bin"]) expect(left).not.toHaveProperty(name);
});

test("a desktop's configuration brings them to the worker's host, has a worker that runs begin anew, and takes them back", async () => {
  await using relay = await initialized();
  const configure = async (more: object) => {
    const { code, stdout, stderr } = await relay.run(["worker", "configure"], {
      stdin: JSON.stringify({
        schema_version: "clio-relay.worker-configuration.v1",
        cluster: "local",
        env_setup: null,
        worker_capacity: { concurrency: 3, control_query_concurrency: 1, kind_concurrency: {} },
        client_keys: [],
        ...more,
      }),
    });
    return { code, stderr, ...(code === 0 ? (JSON.parse(stdout) as { restart: boolean }) : {}) };
  };
  const programs = { agent_bin: "codex", agent_adapter: "codex", agent_args: [["--model", "{model}"]], jarvis_bin: "/opt/jarvis" };
  expect(await configure(programs)).toMatchObject({ code: 0, restart: true });
  expect(await relay.json("cluster", "show", "local")).toMatchObject(programs);
  expect(await configure(programs)).toMatchObject({ code: 0, restart: false });
  expect((await configure({ agent_bin: "../up" })).stderr).toContain("request_validation_failed");
  expect(await configure({})).toMatchObject({ code: 0, restart: true });
  expect(await relay.json("cluster", "show", "local")).not.toHaveProperty("agent_bin");
});
