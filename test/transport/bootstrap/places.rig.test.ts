import { afterEach, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { type ErrorCode, isRelayError } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { refuseUnfit } from "../../../src/transport/bootstrap/choose.ts";
import { deliver, type Place } from "../../../src/transport/bootstrap/install.ts";
import { type HostProbe, probeHost } from "../../../src/transport/bootstrap/probe.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { program, remoteAt, root, tree } from "./host.ts";

const directories = temporaryDirectories();
const PLACE: Place = { home: null, signal: new AbortController().signal };
const mounted: string[] = [];

function must(...command: [string, ...string[]]): void {
  const { status, stderr } = spawnSync(command[0], command.slice(1), { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
}

/** A home on a file system of its own. */
function homeOn(options: string): string {
  const home = directories();
  must("mount", "-t", "tmpfs", "-o", options, "tmpfs", home);
  mounted.push(home);
  return home;
}

const probe = (home: string): Promise<HostProbe> => probeHost(remoteAt(home), { cluster: "c", ...PLACE });

async function failure(work: () => unknown, code: ErrorCode) {
  const error: unknown = await Promise.resolve()
    .then(work)
    .catch((thrown: unknown) => thrown);
  if (!isRelayError(error, code)) throw new Error(`expected ${code}`, { cause: error });
  return error;
}

describeWith(["root", "tmpfs"], "a home", () => {
  afterEach(() => {
    for (const home of mounted.splice(0)) must("umount", "--lazy", home);
  });

  test("from which nothing can be started is refused before anything is put there", async () => {
    const home = homeOn("size=32m,noexec");
    const probed = await probe(home);
    expect(probed.storage).toMatchObject({ file_system: "tmpfs", writable: true, starts: false });
    expect((await failure(() => refuseUnfit(probed), "host_unfit")).data).toEqual({ reason: "noexec" });
    expect(fs.readdirSync(home)).toEqual([]);
    // Where it is tried all the same, nothing is switched.
    expect((await failure(() => deliver(remoteAt(home), program("1.0.0"), PLACE, systemClock), "artifact_unfit")).data).toMatchObject({
      reason: "does_not_start",
    });
    expect(fs.existsSync(path.join(root(home), "current"))).toBe(false);
  });

  test("that is read-only is refused by name", async () => {
    const home = homeOn("size=8m");
    must("mount", "-o", "remount,ro", home);
    const probed = await probe(home);
    expect(probed.storage).toMatchObject({ writable: false, read_only: true });
    expect((await failure(() => refuseUnfit(probed), "host_unfit")).data).toEqual({ reason: "read_only" });
    expect((await failure(() => deliver(remoteAt(home), program("1.0.0"), PLACE, systemClock), "host_unfit")).data).toMatchObject({
      reason: "unwritable",
    });
  });

  test("without room is refused before a byte is sent", async () => {
    const home = homeOn("size=18m");
    const artifact = program("1.0.0", { filler: 4 * 1024 * 1024 });
    const sent: number[] = [];
    const error = await failure(
      () => deliver(remoteAt(home), artifact, PLACE, systemClock, { onSent: (bytes) => sent.push(bytes) }),
      "storage_admission_refused",
    );
    expect(error.data["needed_bytes"]).toBe(artifact.size + 16 * 1024 * 1024);
    expect(error.hint).toContain("--core-dir DIR");
    expect(sent).toEqual([]);
  });

  test("without inodes is refused, too", async () => {
    const home = homeOn("size=64m,nr_inodes=12");
    const error = await failure(() => deliver(remoteAt(home), program("1.0.0"), PLACE, systemClock), "storage_admission_refused");
    expect(error.data["free_inodes"]).toBeLessThan(12);
    expect(error.hint).toContain("--core-dir DIR");
  });

  test("with a limit of the size of files says that, and one that cannot be made says why once", async () => {
    const home = directories();
    const limited = remoteAt(home, { preamble: "ulimit -f 2048" });
    const artifact = program("1.0.0", { filler: 4 * 1024 * 1024 });
    const error = await failure(() => deliver(limited, artifact, PLACE, systemClock), "host_unfit");
    expect([error.data["reason"], error.message]).toEqual(["unwritable", expect.stringContaining("ulimit -f")]);
    const other = directories();
    fs.writeFileSync(path.join(other, ".local"), "in the way");
    const refused = await failure(() => deliver(remoteAt(other), artifact, PLACE, systemClock), "host_unfit");
    expect(refused.message.match(/mkdir/g)).toHaveLength(1);
  });

  test("that fills up during the upload: the old version stays, and when there is room the upload goes on", async () => {
    const home = homeOn("size=24m");
    await deliver(remoteAt(home), program("1.0.0"), PLACE, systemClock);
    const artifact = program("1.1.0", { filler: 6 * 1024 * 1024 });
    const hog = path.join(home, "hog");
    let filled = false;
    const work = () =>
      deliver(remoteAt(home), artifact, PLACE, systemClock, {
        onSent: (bytes) => {
          if (filled || bytes < 2 * 1024 * 1024) return;
          filled = true;
          spawnSync("dd", ["if=/dev/zero", `of=${hog}`, "bs=64k"]);
        },
      });
    expect((await failure(work, "storage_admission_refused")).data).toMatchObject({ reason: "no_room" });
    const version = () => Bun.spawnSync([path.join(root(home), "current/clio-relay"), "--version"]).stdout.toString();
    expect(version()).toBe("1.0.0\n");
    fs.rmSync(hog);
    const done = await deliver(remoteAt(home), artifact, PLACE, systemClock);
    expect(done.sent).toBeLessThan(artifact.size);
    expect(version()).toBe("1.1.0\n");
  });

  test("that is full is told from one that may not be written to", async () => {
    const home = homeOn("size=64k");
    spawnSync("dd", ["if=/dev/zero", `of=${path.join(home, "hog")}`, "bs=4k"]);
    const probed = await probe(home);
    expect((await failure(() => refuseUnfit(probed), "storage_admission_refused")).data).toEqual({ reason: "no_room" });
  });

  test("that is reached through symbolic links is as good as any", async () => {
    const real = homeOn("size=64m");
    fs.mkdirSync(path.join(real, "vol1/user"), { recursive: true });
    fs.symlinkSync("vol1", path.join(real, "home"));
    const home = path.join(real, "home/user");
    const probed = await probe(home);
    expect(probed).toMatchObject({ home, home_real: path.join(real, "vol1/user"), storage: { file_system: "tmpfs", starts: true } });
    refuseUnfit(probed);
    const done = await deliver(remoteAt(home), program("1.0.0"), PLACE, systemClock);
    expect(done.executable).toBe(path.join(home, ".local/share/clio-relay/current/clio-relay"));
    expect(Object.keys(tree(home)).length).toBeGreaterThan(4);
  });
});
