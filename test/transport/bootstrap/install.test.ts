import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { resolvePaths } from "../../../src/config/paths.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { deliver, install, type Place, prepare, rollback, send, uninstall } from "../../../src/transport/bootstrap/install.ts";
import layout from "../../../src/transport/script/layout.sh" with { type: "text" };
import { removeService } from "../../../src/transport/service/install.ts";
import { environment } from "../../config/environments.ts";
import { requireComponent } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { SHELLS } from "../script/shells.ts";
import { program, remoteAt, root, tree } from "./host.ts";
import { failure, PLACE, put } from "./put.ts";

const directories = temporaryDirectories();

for (const [name, shell] of Object.entries(SHELLS)) {
  const there = name === "dash" || name === "bash" || requireComponent(name as "busybox" | "ksh" | "mksh" | "zsh");
  describe.skipIf(!there)(`with ${name}`, () => {
    test("install, the same again, another, back, away", async () => {
      const home = directories();
      const [one, two] = [program("1.0.0", { filler: 2_500_000 }), program("1.1.0", { says: "clio-relay 1.1.0 (abc)" })];
      const first = await put(home, one, { shell });
      expect(first).toMatchObject({ placed: true, version: "1.0.0", before: null, sent: one.size, launcher: "made", removed: [] });
      expect(first.executable).toBe(path.join(root(home), "current/clio-relay"));
      expect(Bun.spawnSync([path.join(home, ".local/bin/clio-relay"), "--version"]).stdout.toString()).toBe("1.0.0\n");
      const stat = fs.statSync(path.join(root(home), `versions/${one.digest}/clio-relay`));
      expect(stat.mode & 0o777).toBe(0o500);
      const before = tree(home);

      expect(await put(home, one, { shell })).toMatchObject({ placed: false, sent: 0, launcher: "kept", before: one.digest });
      expect(tree(home)).toEqual(before);

      expect(await put(home, two, { shell })).toMatchObject({ placed: true, version: "1.1.0", before: one.digest });
      expect(fs.readlinkSync(path.join(root(home), "previous"))).toBe(`versions/${one.digest}`);

      const back = await rollback(remoteAt(home, { shell }), PLACE, systemClock);
      expect(back).toEqual({ before: two.digest, now: one.digest, version: "1.0.0" });
      expect(fs.readlinkSync(path.join(root(home), "current"))).toBe(`versions/${one.digest}`);
      expect(fs.readlinkSync(path.join(root(home), "previous"))).toBe(`versions/${two.digest}`);

      fs.mkdirSync(path.join(root(home), "core/c"), { recursive: true });
      fs.writeFileSync(path.join(root(home), "core/c/queue.db"), "rows");
      // Where the program itself would have its sockets and locks.
      const sockets = resolvePaths(environment({}, { home })).runDir;
      fs.mkdirSync(sockets, { recursive: true, mode: 0o700 });
      const gone = await uninstall(remoteAt(home, { shell }), PLACE, { cluster: "c", purge: false });
      expect(gone.remains.map(({ path: one }) => one)).toEqual([path.join(root(home), "core"), sockets]);
      fs.rmdirSync(sockets);
      expect(gone.running).toEqual([]);
      expect(Object.keys(tree(home))).toEqual([".local/share/clio-relay/core/c/queue.db"]);
      await uninstall(remoteAt(home, { shell }), PLACE, { cluster: "c", purge: true });
      expect(tree(home)).toEqual({});
      expect((await uninstall(remoteAt(home, { shell }), PLACE, { cluster: "c", purge: true })).removed).toEqual([]);
    });
  });
}

test("there is no way back where nothing is installed, which is said so", async () => {
  const home = directories();
  const { data } = await failure(rollback(remoteAt(home), PLACE, systemClock), "relay_not_installed");
  expect([data["reason"], fs.existsSync(root(home))]).toEqual(["not_installed", false]);
});

test("where nothing is, nothing is taken away, and nothing put", async () => {
  const home = directories();
  expect(await removeService(remoteAt(home), { ...PLACE, cluster: "c", stopOnly: false })).toEqual({ stopped: [], removed: [] });
  expect((await uninstall(remoteAt(home), PLACE, { cluster: "c", purge: true })).removed).toEqual([]);
  expect(fs.readdirSync(home)).toEqual([]);
});

describe("what is there already", () => {
  test("an upload that was cut goes on where it stopped, to the block", async () => {
    const home = directories();
    const artifact = program("1.0.0", { filler: 5_000_000 });
    const cut = new AbortController();
    const place: Place = { home: null, signal: cut.signal };
    const prepared = await prepare(remoteAt(home), artifact.digest, place);
    const incoming = path.join(root(home), `versions/.incoming-${artifact.digest}`);
    const slow = {
      ...artifact,
      async *read(offset: number) {
        for await (const chunk of artifact.read(offset)) {
          yield chunk;
          if (fs.existsSync(incoming) && fs.statSync(incoming).size >= 2 * 1024 * 1024) cut.abort(new Error("the laptop is closed"));
          await Bun.sleep(1);
        }
      },
    };
    await expect(send(remoteAt(home), slow, prepared, place)).rejects.toThrow("the laptop is closed");
    const left = fs.statSync(incoming).size;
    expect(left).toBeGreaterThanOrEqual(2 * 1024 * 1024);
    expect(left).toBeLessThan(artifact.size);
    const marks: number[] = [];
    const done = await deliver(remoteAt(home), artifact, PLACE, systemClock, { onSent: (bytes) => marks.push(bytes) });
    expect(done.sent).toBeLessThanOrEqual(artifact.size - 2 * 1024 * 1024);
    expect([marks.at(0)! % (1024 * 1024), marks.at(-1)]).toEqual([0, artifact.size]);
    expect(done.placed).toBe(true);
  });

  test("an upload with a hole in it is noticed and sent once more", async () => {
    const home = directories();
    const artifact = program("1.0.0", { filler: 3_000_000 });
    await prepare(remoteAt(home), artifact.digest, PLACE);
    const torn = Buffer.from(artifact.bytes.subarray(0, 2_500_000));
    torn.fill(0, 1_000_000, 1_200_000);
    fs.writeFileSync(path.join(root(home), `versions/.incoming-${artifact.digest}`), torn);
    expect(await put(home, artifact)).toMatchObject({ placed: true, version: "1.0.0" });
  });

  test("a file that grew beyond its size, a version that was damaged, a directory without its file: each is made whole", async () => {
    const home = directories();
    const artifact = program("1.0.0", { filler: 1_200_000 });
    await put(home, artifact);
    const whole = tree(home);
    const directory = path.join(root(home), `versions/${artifact.digest}`);
    const damages: (() => void)[] = [
      () => {
        fs.rmSync(directory, { recursive: true });
        fs.writeFileSync(path.join(root(home), `versions/.incoming-${artifact.digest}`), Buffer.concat([artifact.bytes, artifact.bytes]));
      },
      () => {
        fs.chmodSync(path.join(directory, "clio-relay"), 0o700);
        fs.writeFileSync(path.join(directory, "clio-relay"), "#!/bin/sh\necho bad\n");
      },
      () => fs.rmSync(path.join(directory, "clio-relay")),
      () => {
        fs.rmSync(directory, { recursive: true });
        fs.writeFileSync(directory, "a file");
      },
      () => fs.rmSync(path.join(root(home), "current")),
      () => fs.writeFileSync(path.join(directory, "clio-relay.123"), "left by a copy"),
    ];
    for (const [index, damage] of damages.entries()) {
      damage();
      await put(home, artifact);
      expect([index, tree(home)]).toEqual([index, whole]);
    }
  });

  test("something that is not ours in the way is named and left alone", async () => {
    const home = directories();
    fs.mkdirSync(path.join(root(home), "current"), { recursive: true });
    expect((await failure(put(home), "host_unfit")).data).toMatchObject({ reason: "foreign" });
    fs.rmdirSync(path.join(root(home), "current"));
    fs.mkdirSync(path.join(home, ".local/bin"), { recursive: true });
    fs.writeFileSync(path.join(home, ".local/bin/clio-relay"), "mine");
    expect((await put(home)).launcher).toBe("other");
    expect(fs.readFileSync(path.join(home, ".local/bin/clio-relay"), "utf8")).toBe("mine");
  });

  test("an installation in a place of its own is started with its own state, whoever starts it, and unless somebody means another", async () => {
    const home = directories();
    const place: Place = { ...PLACE, home: "~/it's $HERE", spool: "~/out put" };
    const says = program("1.0.0", { text: 'printf "%s\\n" "$CLIO_RELAY_HOME" "$CLIO_RELAY_SPOOL_DIR" "$@"' });
    const put = (artifact = says) => deliver(remoteAt(home), artifact, place, systemClock);
    const launcher = path.join(home, ".local/bin/clio-relay");
    const run = (env: Record<string, string> = {}) =>
      Bun.spawnSync([launcher, "a b", "$c"], { env: { PATH: "/usr/bin:/bin", ...env } }).stdout.toString();
    expect((await put()).launcher).toBe("made");
    expect(run()).toBe(`${home}/it's $HERE\n${home}/out put\na b\n$c\n`);
    expect(run({ CLIO_RELAY_HOME: "/mine" })).toBe("/mine\n\na b\n$c\n");
    expect((await put()).launcher).toBe("kept");
    // Where the output goes now.
    expect((await deliver(remoteAt(home), says, { ...place, spool: null }, systemClock)).launcher).toBe("made");
    expect(run()).toBe(`${home}/it's $HERE\n\na b\n$c\n`);
    // The link of an installation that was there before it knew of this.
    fs.rmSync(launcher);
    fs.symlinkSync(path.join(home, "it's $HERE/current/clio-relay"), launcher);
    expect((await put()).launcher).toBe("made");
    expect(run()).toContain("/out put");
    // Another installation's is not touched.
    expect((await deliver(remoteAt(home), says, PLACE, systemClock)).launcher).toBe("other");
    const gone = await uninstall(remoteAt(home), place, { cluster: "c", purge: false });
    expect(gone.removed).toContain(launcher);
    expect(fs.existsSync(launcher)).toBe(false);
  });

  test("at most four versions stay, and besides those that run, or that a scheduler may run", async () => {
    const home = directories();
    const sleeper = program("0.1.0", { text: "exec sleep 1000" });
    await put(home, sleeper);
    const copy = path.join(root(home), `versions/${sleeper.digest}/clio-relay`);
    // A shell program's /proc/PID/exe is the shell; a real executable's is itself.
    const running = path.join(root(home), "versions", "f".repeat(64));
    fs.mkdirSync(running);
    fs.copyFileSync("/bin/sleep", path.join(running, "clio-relay"));
    fs.utimesSync(running, 1, 1);
    const child = Bun.spawn([path.join(running, "clio-relay"), "1000"]);
    const submitted = path.join(root(home), "versions", "e".repeat(64));
    fs.cpSync(running, submitted, { recursive: true, preserveTimestamps: true });
    fs.mkdirSync(path.join(root(home), "core/d"), { recursive: true });
    fs.writeFileSync(path.join(root(home), "core/d/batch-executables"), `/elsewhere/clio-relay\n${submitted}/clio-relay\n`);
    try {
      expect(fs.existsSync(copy)).toBe(true);
      const digests: string[] = [sleeper.digest];
      for (let minor = 2; minor <= 6; minor++) {
        const artifact = program(`0.${minor}.0`);
        fs.utimesSync(path.join(root(home), "versions", digests.at(-1)!), minor, minor);
        await put(home, artifact);
        digests.push(artifact.digest);
      }
      const left = fs.readdirSync(path.join(root(home), "versions")).sort();
      expect(left).toEqual([...digests.slice(-4), "e".repeat(64), "f".repeat(64)].sort());
    } finally {
      child.kill("SIGKILL");
      await child.exited;
    }
    // A worker of another host may run anything.
    fs.mkdirSync(path.join(root(home), "core/c"), { recursive: true });
    fs.writeFileSync(path.join(root(home), "core/c/owner.json"), '{"hostname":"login2","pid":1}');
    const before = fs.readdirSync(path.join(root(home), "versions")).length;
    await put(home, program("0.9.0"));
    expect(fs.readdirSync(path.join(root(home), "versions")).length).toBe(before + 1);
  });

  test("a file that somebody still has open for writing is installed all the same", async () => {
    const home = directories();
    const artifact = program("1.0.0");
    const prepared = await prepare(remoteAt(home), artifact.digest, PLACE);
    await send(remoteAt(home), artifact, prepared, PLACE);
    const writer = fs.openSync(path.join(root(home), `versions/.incoming-${artifact.digest}`), "r+");
    try {
      expect(await install(remoteAt(home), artifact.digest, PLACE, systemClock)).toMatchObject({ version: "1.0.0", placed: true });
    } finally {
      fs.closeSync(writer);
    }
  });
});

describe("two at once", () => {
  test("of the same version: both find it installed, and nothing is left over", async () => {
    const [home, wanted] = [directories(), directories()];
    const artifact = program("1.0.0", { filler: 6_000_000 });
    await put(wanted, artifact);
    const both = await Promise.all([put(home, artifact), put(home, artifact), put(home, artifact)]);
    expect(both.map(({ version }) => version)).toEqual(["1.0.0", "1.0.0", "1.0.0"]);
    expect(Object.keys(tree(home)).sort()).toEqual(Object.keys(tree(wanted)).sort());
    expect((await put(home, artifact)).sent).toBe(0);
  });

  test("of different versions: one of them is current, and the other is previous or beside it", async () => {
    const home = directories();
    const artifacts = ["1.0.0", "1.1.0"].map((version) => program(version, { filler: 3_000_000 }));
    await Promise.all(artifacts.map((artifact) => put(home, artifact)));
    const current = fs.readlinkSync(path.join(root(home), "current"));
    expect(artifacts.map(({ digest }) => `versions/${digest}`)).toContain(current);
    expect(fs.readdirSync(path.join(root(home), "versions")).sort()).toEqual(artifacts.map(({ digest }) => digest).sort());
  });
});

test("an installation elsewhere, with spaces and quotes in its name, below a home that is a symbolic link", async () => {
  const real = directories();
  const home = path.join(directories(), "it's linked");
  fs.symlinkSync(real, home);
  for (const place of [path.join(real, "a dir/$x"), "~/b 'c'"]) {
    const done = await deliver(remoteAt(home), program("1.0.0"), { ...PLACE, home: place }, systemClock);
    expect(done.root).toBe(place.startsWith("~") ? path.join(home, "b 'c'") : place);
    expect(Bun.spawnSync([done.executable, "--version"]).stdout.toString()).toBe("1.0.0\n");
  }
});

test("where mv has no -T", async () => {
  const bin = directories();
  fs.writeFileSync(path.join(bin, "mv"), '#!/bin/sh\ncase $1 in *T*) echo "no such option" >&2; exit 1 ;; esac\nexec /bin/mv "$@"\n', {
    mode: 0o755,
  });
  const home = directories();
  const host = { path: `${bin}:/usr/bin:/bin` };
  await put(home, program("1.0.0"), host);
  expect(await put(home, program("1.1.0"), host)).toMatchObject({ version: "1.1.0", placed: true });
  expect(fs.readdirSync(root(home)).sort()).toEqual(["bootstrap", "current", "previous", "versions"]);
});

test.each(["sha256sum", "shasum", "openssl", "perl"])("%s tells a digest", async (tool) => {
  const home = directories();
  const file = path.join(home, "a file");
  fs.writeFileSync(file, "content");
  const text = `${layout}has() { [ "$1" = ${tool} ]; }\nmain() { say digest "$(digest_of "$a_file")"; }\n`;
  const answer = await remoteAt(home).run({ name: "a test", text }, { values: { a_home: "", a_file: file }, signal: PLACE.signal });
  expect(answer.one("digest")).toBe(sha256Hex("content"));
});
