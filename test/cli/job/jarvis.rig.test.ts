import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { counterPipeline, JarvisStandIn } from "../../rigs/jarvis/stand-in.ts";
import { describeWith } from "../../runner/components.ts";
import { removeTree } from "../../runner/remove.ts";
import { onTerminal } from "../on-terminal.ts";
import { type SourceRelay, withWorker } from "../source-relay.ts";

describeWith("python3", "pipelines on the command line", () => {
  const place = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-jarvis-cli-"));
  const jarvis = new JarvisStandIn(place).initialize();
  let relay: SourceRelay;
  beforeAll(async () => {
    relay = await withWorker({ ...jarvis.environment, CLIO_RELAY_JARVIS_BIN: jarvis.program });
  });
  afterAll(async () => {
    await relay[Symbol.asyncDispose]();
    removeTree(place);
  });
  const write = (name: string, text: string): void => fs.writeFileSync(path.join(relay.directory, name), text);

  test("the same file is the same job, unless it is to be run again", async () => {
    write("a.yaml", counterPipeline("a"));
    const first = await relay.submit("--wait", "--jarvis-yaml", "a.yaml");
    const again = await relay.run(["job", "submit", "--jarvis-yaml", "a.yaml"]);
    expect([again.code, again.stdout.trim()]).toEqual([0, first]);
    expect(again.stderr).toBe(`notice: existing job ${first}, succeeded; --new runs again\n`);
    expect(await relay.submit("--wait", "--new", "--jarvis-yaml", "a.yaml")).not.toBe(first);
    expect(jarvis.executions("a")).toHaveLength(2);
  });

  test("status and watch show JARVIS' id of the run, and its state", async () => {
    write("shown.yaml", counterPipeline("shown", { steps: 500, delay: 0.2 }));
    const id = await relay.submit("--jarvis-yaml", "shown.yaml");
    const watch = onTerminal(relay, ["job", "watch", id], { NO_COLOR: "1" });
    await watch.shows("JARVIS running  ");
    const [execution] = jarvis.executions("shown");
    expect(watch.shown()).toContain(`JARVIS runs shown as ${execution}`);
    expect(await relay.ok("job", "status", id)).toMatch(new RegExp(`JARVIS +${execution}, pipeline shown: running`));
    expect(await relay.json("job", "status", id)).toMatchObject({ jarvis: { execution_id: execution, said: { state: "running" } } });
    await relay.ok("job", "cancel", id, "--wait");
    expect(await watch.end()).toBe(10);
    // JARVIS' last word stays, as what it is.
    expect(await relay.ok("job", "status", id)).toMatch(
      new RegExp(`JARVIS +${execution}, pipeline shown: running was its last word before the end$`, "m"),
    );
  });

  test("files of declared settings come along, and are edges of the job", async () => {
    write("in.lj", "units lj\n");
    write("b.yaml", counterPipeline("b", { deck: "in.lj" }));
    const id = await relay.submit("--wait", "--jarvis-yaml", "b.yaml");
    expect(await relay.ok("job", "read-log", id)).toContain("deck: units lj");
    const { used_artifacts: used } = await relay.json<{ used_artifacts: { provenance: { evidence: string; arg: string } }[] }>(
      "job",
      "used-artifacts",
      id,
    );
    expect(used.map(({ provenance: { evidence, arg } }) => [evidence, arg])).toEqual([["schema-arg", "c1.deck"]]);
    write("other.lj", "units metal\n");
    const other = await relay.submit("--wait", "--jarvis-yaml", "b.yaml", "--input", "deck=other.lj");
    expect(other).not.toBe(id);
    expect(await relay.ok("job", "read-log", other)).toContain("deck: units metal");
  });

  test("what is wrong is said before anything is recorded", async () => {
    write("c.yaml", "name: c\npkgs: [\n");
    const yaml = await relay.run(["job", "submit", "--jarvis-yaml", "c.yaml"]);
    expect(yaml.code).toBe(2);
    expect(yaml.stderr).toContain("line 3, column 1");
    write("d.yaml", counterPipeline("d", { deck: "absent.lj" }));
    expect((await relay.run(["job", "submit", "--jarvis-yaml", "d.yaml"])).stderr).toContain("absent.lj");
    const unknown = await relay.run(["job", "submit", "--jarvis-yaml", "a.yaml", "--input", "nothing=a.yaml"]);
    expect([unknown.code, unknown.stderr.includes("c1.deck")]).toEqual([2, true]);
    write("e.yaml", "x".repeat(10 * 1024 * 1024));
    const large = await relay.run(["job", "submit", "--jarvis-yaml", "e.yaml"]);
    expect([large.code, large.stderr]).toEqual([2, expect.stringContaining("more than 131072")]);
    const listed = await relay.run(["job", "submit", "--jarvis-yaml", "a.yaml", "--exclusive", "--new"]);
    expect([listed.code, listed.stderr.includes("scheduler")]).toEqual([2, true]);
  });

  test("one that the cluster has is run by its name, each time anew", async () => {
    jarvis.keep("kept", { name: "kept", pkgs: [{ pkg_type: "demo.counter", pkg_name: "c1" }] });
    const { job_id: first } = await relay.json<{ job_id: string }>("job", "submit-pipeline", "--pipeline-name", "kept");
    const second = await relay.ok("job", "submit-pipeline", "--pipeline-name", "kept", "--wait");
    expect(second).not.toBe(first);
    expect((await relay.run(["job", "submit-pipeline", "--pipeline-name", "absent"])).code).toBe(2);
  });
});
