import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { openDatabase } from "../../../src/queue/sqlite/database-file.ts";
import { MIGRATIONS } from "../../../src/queue/sqlite/migrate.ts";
import { prepare, rollback, uninstall } from "../../../src/transport/bootstrap/install.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { program, remoteAt, root, tree } from "./host.ts";
import { failure, PLACE, put } from "./put.ts";

const directories = temporaryDirectories();

describe("a queue of a newer version", () => {
  test("keeps the version that reads it: neither a rollback nor an older version that is brought is switched to", async () => {
    const home = directories();
    const [older, newer] = [program("1.0.0", { knows: 4 }), program("2.0.0", { knows: 5 })];
    await put(home, older);
    await put(home, newer);
    const directory = path.join(root(home), "core/c");
    const { database, file } = openDatabase(directory, [...MIGRATIONS.slice(0, 4), "CREATE TABLE later (x TEXT) STRICT"]);
    try {
      // The worker has it open, as it has while versions are changed.
      const before = tree(home);
      const back = () => rollback(remoteAt(home), PLACE, systemClock);
      for (const work of [back, () => put(home, older), () => put(home, program("0.9.0"))]) {
        const { message, data } = await failure(work(), "queue_newer");
        expect(message).toContain(`${file} has schema 5, and `);
        expect(message).toContain("knows schemas up to 4");
        expect(data["reason"]).toBe("queue_newer");
      }
      const after = tree(home);
      for (const link of ["current", "previous"]) {
        const name = `.local/share/clio-relay/${link}`;
        expect([link, after[name]]).toEqual([link, before[name]]);
      }
      // The same version again, and one that knows more.
      expect(await put(home, newer)).toMatchObject({ before: newer.digest });
      expect(await put(home, program("3.0.0", { knows: 17 }))).toMatchObject({ version: "3.0.0" });
      expect(await rollback(remoteAt(home), PLACE, systemClock)).toMatchObject({ now: newer.digest });
    } finally {
      database.close();
    }
    // Without what came since, the copy that the migration left is in its place.
    const old = directories();
    openDatabase(old, MIGRATIONS.slice(0, 4)).database.close();
    fs.copyFileSync(path.join(old, "queue.db"), file);
    expect(await put(home, older)).toMatchObject({ version: "1.0.0" });
  });

  test("what is no queue, or does not say what it is, keeps nobody from anything", async () => {
    const home = directories();
    await put(home);
    for (const [cluster, bytes] of [
      ["a", ""],
      ["b", "short"],
      ["c", "\0".repeat(100)],
    ] as const) {
      fs.mkdirSync(path.join(root(home), "core", cluster), { recursive: true });
      fs.writeFileSync(path.join(root(home), "core", cluster, "queue.db"), bytes);
    }
    expect(await put(home, program("1.1.0"))).toMatchObject({ version: "1.1.0" });
  });
});

describe("what does not go", () => {
  test("an executable that does not start changes nothing, and says what it said", async () => {
    const home = directories();
    await put(home);
    const before = fs.readlinkSync(path.join(root(home), "current"));
    const bad = program("2.0.0");
    const bytes = Buffer.from("#!/bin/sh\necho 'version GLIBC_2.38 not found' >&2; exit 1\n");
    const artifact = { ...bad, digest: new Bun.CryptoHasher("sha256").update(bytes).digest("hex"), size: bytes.length };
    const error = await failure(
      put(home, {
        ...artifact,
        bytes,
        read: async function* () {
          yield bytes;
        },
      }),
      "artifact_unfit",
    );
    expect(error.message).toContain("GLIBC_2.38");
    expect(fs.readlinkSync(path.join(root(home), "current"))).toBe(before);
    await failure(rollback(remoteAt(home), PLACE, systemClock), "state_conflict");
  });

  test("an artifact that is not what it is called is removed", async () => {
    const home = directories();
    const artifact = { ...program("1.0.0"), digest: "a".repeat(64) };
    expect((await failure(put(home, artifact), "script_failed")).data).toMatchObject({ reason: "digest_differs" });
    expect(fs.readdirSync(path.join(root(home), "versions"))).toEqual([]);
  });

  test("while another run holds the lock it is named; a lock whose owner is dead does not count", async () => {
    const home = directories();
    await put(home);
    const lock = path.join(root(home), "bootstrap/lock");
    const boot = fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const host = Bun.spawnSync(["uname", "-n"]).stdout.toString().trim();
    for (const stale of [`${host}:${boot}:999999:1:x`, `${host}:another-boot:1:1:x`, `${host}:${boot}:${process.pid}:1:x`]) {
      fs.symlinkSync(stale, lock);
      expect((await put(home)).sent).toBe(0);
      expect(fs.existsSync(lock)).toBe(false);
    }
    fs.symlinkSync("login2:boot:77:1:x", lock);
    const error = await failure(prepare(remoteAt(home), "0".repeat(64), PLACE), "state_conflict");
    expect(error.data).toMatchObject({ reason: "busy", hostname: "login2", pid: 77 });
    fs.lutimesSync(lock, 1, 1);
    await put(home);
    expect(tree(home)[".local/share/clio-relay/bootstrap/lock"]).toBeUndefined();
  });

  test("a worker of another cluster keeps the installation", async () => {
    const home = directories();
    await put(home);
    fs.mkdirSync(path.join(root(home), "core/other"), { recursive: true });
    fs.writeFileSync(path.join(root(home), "core/other/owner.json"), "{}");
    const error = await failure(uninstall(remoteAt(home), PLACE, { cluster: "c", purge: true }), "state_conflict");
    expect(error.message).toContain("core/other/owner.json");
    expect(fs.existsSync(path.join(root(home), "current/clio-relay"))).toBe(true);
  });
});
