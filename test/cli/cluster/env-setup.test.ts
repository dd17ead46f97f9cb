import { expect, test } from "bun:test";
import { initialized } from "../source-relay.ts";

test("setup text that fails fails the job where the entry says so, and is said not to matter otherwise", async () => {
  await using relay = await initialized();
  const change = (...options: string[]) => relay.run(["cluster", "add", "local", ...options]);
  expect(await change("--env-setup-strict")).toEqual({
    code: 2,
    stdout: "",
    stderr: "error: --env-setup-strict needs --env-setup: there is no text that could fail [usage]\n",
  });
  expect((await change("--env-setup", "no-such-module load python", "--env-setup-strict")).code).toBe(0);
  // What is not named stays.
  expect((await change("--worker-concurrency", "4")).code).toBe(0);
  expect(await relay.json("cluster", "show", "local")).toMatchObject({ env_setup_strict: true });
  expect(await relay.ok("cluster", "show", "local")).toMatch(/^if it fails +the job fails$/m);
  await relay.ok("worker", "start");
  const failed = await relay.run(["job", "submit", "--wait", "--json", "--", "echo", "ran"]);
  expect([failed.code, JSON.parse(failed.stdout)]).toMatchObject([10, { outcome: { reason: "env_setup_failed", exit_code: 127 } }]);

  const lenient = await change("--no-env-setup-strict");
  expect([lenient.code, lenient.stderr]).toEqual([0, expect.stringContaining("this takes effect when it is restarted")]);
  expect(await relay.json("cluster", "show", "local")).not.toHaveProperty("env_setup_strict");
  expect(await relay.ok("cluster", "show", "local")).toMatch(/^if it fails +the job runs all the same$/m);
  await relay.ok("worker", "stop");
  await relay.ok("worker", "start");
  expect((await relay.run(["job", "submit", "--wait", "--", "echo", "ran"])).code).toBe(0);

  await change("--env-setup-strict");
  await change("--clear-env-setup");
  expect(await relay.json("cluster", "show", "local")).not.toHaveProperty("env_setup_strict");
});

test("a desktop's configuration says it to the worker's host, and takes it back", async () => {
  await using relay = await initialized();
  const configure = (more: object) =>
    relay.run(["worker", "configure"], {
      stdin: JSON.stringify({
        schema_version: "clio-relay.worker-configuration.v1",
        cluster: "local",
        env_setup: "true",
        worker_capacity: { concurrency: 3, control_query_concurrency: 1, kind_concurrency: {} },
        client_keys: [],
        ...more,
      }),
    });
  expect((await configure({ env_setup_strict: true })).code).toBe(0);
  expect(await relay.json("cluster", "show", "local")).toMatchObject({ env_setup: "true", env_setup_strict: true });
  expect((await configure({})).code).toBe(0);
  expect(await relay.json("cluster", "show", "local")).not.toHaveProperty("env_setup_strict");
  // What is said on the host itself is another matter, wherever the worker is met.
  await relay.ok("cluster", "add", "local", "--agent-commands");
  expect((await configure({ relay: null })).code).toBe(0);
  expect(await relay.json("cluster", "show", "local")).toMatchObject({ env_setup: "true", agent_commands: true });
});
