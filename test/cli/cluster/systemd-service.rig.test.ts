import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { makeKey, type Sshd } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { SystemdRig } from "../../transport/service/rig.ts";
import { farLink, sshDesk } from "../ssh-desk.ts";

// @takes systemd Two managers that boot at once are in each other's control groups.

interface Status {
  readonly state: string;
  readonly launcher: string | null;
  readonly persistence: string;
  readonly unit: { readonly name: string; readonly main_pid: number; readonly invocation_id: string } | null;
}

describeWith(["nspawn", "sshd", "ssh"], "a worker under the user's systemd, by the verbs of the command line over a real sshd", () => {
  const files = temporaryDirectory();
  const rig = new SystemdRig();
  const builds = ["one", "two"].map((name) => path.join(files.path, name)) as [string, string];
  let key: string;
  let sshd: Pick<Sshd, "host" | "port" | "knownLine" | "connections">;

  beforeAll(async () => {
    rig.start();
    rig.addUser("sue");
    rig.linger("sue");
    // Its disk is in memory.
    rig.run(
      "runuser",
      "-u",
      "sue",
      "--",
      "sh",
      "-c",
      "mkdir -p ~/.config/clio-relay && umask 077 && echo 'min_free_bytes = 0' >~/.config/clio-relay/config.toml",
    );
    key = makeKey(files.path);
    sshd = await rig.sshd({ sue: fs.readFileSync(`${key}.pub`, "utf8") });
    const bytes = fs.readFileSync(EXECUTABLE);
    for (const [index, file] of builds.entries()) {
      // Two builds: they differ in a byte that elf(5) leaves unused (EI_PAD).
      bytes[15] = index;
      fs.writeFileSync(file, bytes, { mode: 0o755 });
    }
  });
  afterAll(() => {
    rig.stop();
    files[Symbol.dispose]();
  });

  test("is installed, takes over, restarts, is upgraded, stopped, started and removed; its job goes on through all of it", async () => {
    await using relay = await sshDesk({ directory: files.path, sshd, user: { name: "sue" }, key });
    const status = () => relay.json<Status>("cluster", "endpoint-service-status", "far");
    const programOf = ({ unit }: Status) => rig.run("readlink", `/proc/${unit!.main_pid}/exe`);

    await relay.ok("cluster", "bootstrap", "far", "--artifact", builds[0], "--no-input");
    await relay.ok("connect", "far");
    expect(await status()).toMatchObject({ state: "not-installed", launcher: null });
    const id = await relay.submit("--", "sh", "-c", "echo begun; until [ -e ~/go ]; do sleep 0.1; done; echo ended");
    await eventually(async () => (await relay.run(["job", "read-log", id])).stdout.includes("begun"), { what: "the job's first line" });

    const install = ["cluster", "install-endpoint-service", "far", "--launcher", "systemd", "--start", "--enable", "--concurrency", "5"];
    const installed = await relay.json<{ outcome: string; drained: boolean; status: Status }>(...install);
    expect(installed).toMatchObject({
      outcome: "ready",
      drained: true,
      status: { state: "ready", launcher: "systemd", persistence: "persistent" },
    });
    expect(await relay.json("worker", "status")).toMatchObject({ workers: [{ capacity: { concurrency: 5 } }] });
    expect(await relay.ok("cluster", "endpoint-service-status", "far")).toContain("ready");

    const restarted = await relay.json<{ outcome: string; asked: string; status: Status }>("cluster", "restart-endpoint-service", "far");
    expect(restarted).toMatchObject({ outcome: "ready", asked: "enqueued", status: { state: "ready" } });
    expect(restarted.status.unit!.invocation_id).not.toBe(installed.status.unit!.invocation_id);

    expect(await relay.json("cluster", "bootstrap", "far", "--artifact", builds[1])).toMatchObject({
      worker: { state: "replaced", supervised_by: "systemd" },
      notices: [],
    });
    expect(programOf(await status())).toContain(sha256Hex(fs.readFileSync(builds[1])));
    expect(await relay.json("cluster", "rollback", "far")).toMatchObject({ worker: { state: "replaced", supervised_by: "systemd" } });
    expect(programOf(await status())).toContain(sha256Hex(fs.readFileSync(builds[0])));

    expect((await relay.run(["worker", "stop"])).stderr).toContain("is stopped until clio-relay worker start --cluster far");
    expect((await status()).state).toBe("intentional-stop");
    await relay.ok("worker", "start");
    expect((await status()).state).toBe("ready");

    fs.writeFileSync(rig.file("home/sue/go"), "");
    await relay.ok("job", "wait", id);
    expect(await relay.ok("job", "read-log", id)).toBe("begun\nended");
    expect(await relay.json("job", "attempts", id)).toMatchObject({ total: 1 });

    const { unit } = await status();
    expect(await relay.json("cluster", "uninstall", "far", "--purge", "--yes")).toMatchObject({ running: [] });
    expect(rig.succeeds("test", "-d", `/proc/${unit!.main_pid}`)).toBe(false);
    expect(
      fs.readdirSync(rig.file("home/sue/.config/systemd/user"), { recursive: true }).filter((name) => String(name).includes("clio-relay")),
    ).toEqual([]);
    expect(await status()).toMatchObject({ state: "not-installed" });
    const far = await farLink(relay);
    expect([far.ledger.length, sshd.connections()]).toEqual([1, 1]);
  });
});
