import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { makeUser, type RigUser, removeUser } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import type { SourceRelay } from "../source-relay.ts";
import { FarSite } from "../ssh-desk.ts";

/** Tries each path of standard input in every way that its kind has; says which of them went. Of what it opens for writing nothing is changed. */
const TRY = `
  import fs from "node:fs";
  import net from "node:net";
  const went = [];
  const attempt = (what, work) => { try { work(); went.push(what); } catch {} };
  for (const { kind, file } of JSON.parse(fs.readFileSync(0, "utf8"))) {
    if (kind === "directory") {
      attempt("list " + file, () => fs.readdirSync(file));
      attempt("make a file in " + file, () => { const name = file + "/of-a-stranger"; fs.closeSync(fs.openSync(name, "wx")); fs.unlinkSync(name); });
    } else if (kind === "socket") {
      await new Promise((resolve) => {
        const socket = net.connect(file);
        socket.once("connect", () => { went.push("connect to " + file); socket.destroy(); resolve(); });
        socket.once("error", resolve);
      });
    } else {
      attempt("read " + file, () => fs.closeSync(fs.openSync(file, "r")));
      attempt("write " + file, () => fs.closeSync(fs.openSync(file, "r+")));
    }
  }
  console.log(JSON.stringify(went));`;

interface Found {
  readonly kind: "directory" | "file" | "socket";
  readonly file: string;
}

function everythingBelow(root: string): Found[] {
  if (!fs.existsSync(root)) return [];
  const below = fs.readdirSync(root, { withFileTypes: true }).flatMap((entry): Found[] => {
    const file = path.join(root, entry.name);
    if (entry.isDirectory()) return everythingBelow(file);
    return entry.isFile() || entry.isSocket() ? [{ kind: entry.isFile() ? "file" : "socket", file }] : [];
  });
  return [{ kind: "directory", file: root }, ...below];
}

describeWith(["sshd", "ssh"], "another user of the machine, whom neither home keeps out", () => {
  let site: FarSite;
  let relay: SourceRelay;
  let stranger: RigUser;

  beforeAll(async () => {
    site = await FarSite.start();
    site.worker.start();
    relay = await site.desk();
    stranger = makeUser();
    // As homes are on many machines: what is ours is closed by itself.
    for (const home of [relay.directory, site.user.home]) fs.chmodSync(home, 0o755);
    await relay.ok("connect", "far");
    await relay.submit("--output", "out", "--wait", "--", "sh", "-c", "echo said; echo left > out");
  }, 120_000);
  afterAll(async () => {
    await relay[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
    removeUser(stranger);
  });

  const tried = async (user: Pick<RigUser, "uid" | "gid">, found: readonly Found[]): Promise<string[]> => {
    const as = ["setpriv", `--reuid=${user.uid}`, `--regid=${user.gid}`, "--clear-groups", "--"];
    const child = Bun.spawn([...as, process.execPath, "-e", TRY], {
      cwd: "/",
      env: { PATH: process.env["PATH"] ?? "" },
      stdin: Buffer.from(JSON.stringify(found)),
      stdout: "pipe",
      stderr: "inherit",
    });
    return JSON.parse(await child.stdout.text()) as string[];
  };

  /** Where sockets of these two lie, wherever that is. They are given their names when they listen: what the kernel shows is the one before. */
  const socketDirectories = (): string[] =>
    fs
      .readFileSync("/proc/net/unix", "utf8")
      .split("\n")
      .map((line) => path.dirname(line.slice(line.lastIndexOf(" ") + 1)))
      .filter((directory) => directory.startsWith("/") && fs.existsSync(directory))
      .filter((directory) => directory.startsWith(relay.home) || fs.statSync(directory).uid === site.user.uid);

  test("reads and changes no file, and comes to no socket, of desktop and worker", async () => {
    const own = fs
      .readdirSync(site.user.home, { recursive: true, encoding: "utf8" })
      .filter((name) => path.basename(name) === "clio-relay");
    const roots = new Set([relay.home, ...own.map((name) => path.join(site.user.home, name)), ...socketDirectories()]);
    const found = [...roots].flatMap((root) => (fs.lstatSync(root).isDirectory() ? everythingBelow(root) : []));
    const names = found.map(({ file }) => path.basename(file));
    for (const name of ["clusters.json", "desktop.sock", "queue.db"]) expect(names).toContain(name);
    for (const home of [relay.home, site.user.home]) expect(found.filter(({ file }) => file.startsWith(home)).length).toBeGreaterThan(10);
    expect(found.filter(({ kind }) => kind === "socket").length).toBeGreaterThanOrEqual(3);
    // Whom it is closed to is who asks, and not how.
    expect((await tried({ uid: 0, gid: 0 }, found)).length).toBeGreaterThan(found.length);
    expect(await tried(stranger, found)).toEqual([]);
  }, 120_000);
});
