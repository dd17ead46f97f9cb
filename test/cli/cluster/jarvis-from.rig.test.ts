import { afterAll, beforeAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { counterPipeline } from "../../rigs/jarvis/stand-in.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, type Sshd, startSshd } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { kill, processesMarked } from "../../runner/leftovers.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { sshDesk } from "../ssh-desk.ts";

const STAND_IN = path.resolve(import.meta.dir, "../../rigs/jarvis/stand-in");

describeWith(["sshd", "ssh", "python3"], "a cluster that bootstrap brings JARVIS-CD to", () => {
  const files = temporaryDirectory();
  const executable = path.join(files.path, "clio-relay");
  let sshd: Sshd;
  let user: RigUser;
  let key: string;
  beforeAll(async () => {
    sshd = await startSshd();
    user = makeUser();
    key = makeKey(files.path);
    authorize(user, `${key}.pub`);
    // The same bytes to the end, whatever is built meanwhile.
    fs.copyFileSync(EXECUTABLE, executable);
  });
  afterAll(async () => {
    for (const { pid } of processesMarked("HOME", user.home)) kill(pid);
    await sshd[Symbol.asyncDispose]();
    removeUser(user);
    files[Symbol.dispose]();
  });

  test("runs pipelines with it; a bootstrap without it leaves it, and the same again sends nothing", async () => {
    await using relay = await sshDesk({ directory: files.path, sshd, user, key });
    const wheel = path.join(files.path, "PyYAML-6.0-cp311-cp311-linux_x86_64.whl");
    fs.mkdirSync(path.join(files.path, "yaml"));
    fs.writeFileSync(path.join(files.path, "yaml/__init__.py"), "");
    expect(spawnSync("python3", ["-m", "zipfile", "-c", wheel, path.join(files.path, "yaml")]).status).toBe(0);
    interface Report {
      readonly jarvis?: { readonly program: string; readonly sent_bytes: number; readonly initialized: string };
      readonly worker: { readonly state: string };
    }
    const bootstrap = (...more: string[]) => relay.json<Report>("cluster", "bootstrap", "far", "--artifact", executable, ...more);
    const jarvis = ["--jarvis-from", STAND_IN, "--pyyaml-wheel", wheel];
    expect((await bootstrap()).jarvis).toBeUndefined();
    await relay.ok("connect", "far");
    fs.writeFileSync(path.join(relay.directory, "p.yaml"), counterPipeline("p", { steps: 2 }));
    const without = await relay.run(["job", "submit", "--cluster", "far", "--jarvis-yaml", "p.yaml"]);
    expect(without.stderr).toContain("engine_unavailable");

    const first = await bootstrap(...jarvis);
    expect(first.worker.state).toBe("replaced");
    expect(first.jarvis).toMatchObject({ initialized: "made", program: expect.stringContaining(user.home) });
    expect(await relay.json("cluster", "show", "far")).toMatchObject({ jarvis_bin: first.jarvis?.program });
    const id = await relay.submit("--wait", "--cluster", "far", "--jarvis-yaml", "p.yaml");
    expect(await relay.ok("job", "read-log", id)).toContain("JARVIS_STEP 2/2");
    expect(await relay.ok("job", "status", id)).toMatch(/JARVIS +jarvis_[0-9a-f]{32}/);

    const again = await bootstrap(...jarvis);
    expect(again).toMatchObject({ jarvis: { sent_bytes: 0, initialized: "kept" }, worker: { state: "kept" } });
    expect((await bootstrap()).worker.state).toBe("kept");
    expect(await relay.json("cluster", "show", "far")).toMatchObject({ jarvis_bin: first.jarvis?.program });

    const usage = await relay.run(["cluster", "bootstrap", "far", "--pyyaml-wheel", wheel]);
    expect([usage.code, usage.stderr]).toEqual([2, expect.stringContaining("--pyyaml-wheel needs --jarvis-from")]);
    const other = await relay.run(["cluster", "bootstrap", "far", "--artifact", executable, "--jarvis-from", files.path]);
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("no source tree of JARVIS-CD")]);
  });
});
