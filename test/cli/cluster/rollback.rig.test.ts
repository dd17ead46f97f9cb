import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, type Sshd, startSshd } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import type { SourceRelay } from "../source-relay.ts";
import { sshDesk } from "../ssh-desk.ts";

interface Rollback {
  readonly before: string;
  readonly now: string;
  readonly worker: { readonly state: string; readonly pid: number };
}
interface Probe {
  readonly host: {
    readonly installation: { readonly current: string; readonly previous: string };
    readonly worker: { readonly digest: string };
  };
}

describeWith(["sshd", "ssh"], "an upgrade that is taken back", () => {
  const files = temporaryDirectory();
  const builds = ["one", "two"].map((name) => path.join(files.path, name)) as [string, string];
  const digests: string[] = [];
  let sshd: Sshd;
  let user: RigUser;
  let key: string;

  beforeAll(async () => {
    sshd = await startSshd();
    user = makeUser();
    key = makeKey(files.path);
    authorize(user, `${key}.pub`);
    const bytes = fs.readFileSync(EXECUTABLE);
    for (const [index, file] of builds.entries()) {
      // Two builds: they differ in a byte that elf(5) leaves unused (EI_PAD).
      bytes[15] = index;
      fs.writeFileSync(file, bytes, { mode: 0o755 });
      digests.push(sha256Hex(bytes));
    }
  });
  afterAll(async () => {
    await sshd[Symbol.asyncDispose]();
    removeUser(user);
    files[Symbol.dispose]();
  });

  const desk = (): Promise<SourceRelay> => sshDesk({ directory: files.path, sshd, user, key });

  test("the version before is current again and is what the worker runs; jobs go on through all of it, over one connection", async () => {
    const [one, two] = digests;
    await using relay = await desk();
    const program = async () => {
      const { workers } = await relay.json<{ workers: { process: { pid: number } }[] }>("worker", "status");
      return fs.readlinkSync(`/proc/${workers[0]!.process.pid}/exe`);
    };
    await relay.ok("cluster", "bootstrap", "far", "--artifact", builds[0], "--no-input");
    await relay.ok("connect", "far");
    expect(await program()).toContain(`/versions/${one}/`);
    const go = path.join(user.home, "go");
    const id = await relay.submit("--", "sh", "-c", `echo begun; until [ -e ${go} ]; do sleep 0.1; done; echo ended`);
    await eventually(async () => (await relay.run(["job", "read-log", id])).stdout.includes("begun"), { what: "the job's first line" });

    await relay.ok("cluster", "bootstrap", "far", "--artifact", builds[1]);
    expect(await program()).toContain(`/versions/${two}/`);
    const back = await relay.json<Rollback>("cluster", "rollback", "far");
    expect(back).toMatchObject({ before: two, now: one, worker: { state: "replaced" } });
    expect(await program()).toContain(`/versions/${one}/`);
    const { host } = await relay.json<Probe>("cluster", "probe", "far");
    expect(host).toMatchObject({ installation: { current: one, previous: two }, worker: { digest: one } });
    expect((await relay.json<{ job: { state: string } }>("job", "status", id)).job.state).toBe("running");

    // Back and forth: a rollback is taken back by another one.
    expect(await relay.json("cluster", "rollback", "far")).toMatchObject({ before: one, now: two, worker: { state: "replaced" } });
    fs.writeFileSync(go, "");
    await relay.ok("job", "wait", id);
    expect(await relay.ok("job", "read-log", id)).toBe("begun\nended");
    expect(await relay.json("job", "attempts", id)).toMatchObject({ total: 1, attempts: [{ state: "ended" }] });
    expect(sshd.connections()).toBe(1);
    await relay.ok("cluster", "uninstall", "far", "--purge", "--yes");
  });
});
