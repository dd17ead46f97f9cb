import { spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { DemoFailure } from "./installation.ts";
import { kill, likeChildrenOf, processes } from "./process.ts";

const SSHD = "/usr/sbin/sshd";
const SYSTEM = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" };

/** Why there can be no sshd of the demonstration's own; null where there can. */
export function whyNoLoginNode(): string | null {
  if (process.platform !== "linux") return "workers run on Linux, and this is not";
  if (!fs.existsSync(SSHD)) return `there is no ${SSHD} (Debian: apt install openssh-server)`;
  const needed = isRoot() ? ["ssh-keygen", "useradd", "userdel"] : ["ssh-keygen"];
  const missing = needed.find((program) => Bun.which(program, { PATH: SYSTEM.PATH }) === null);
  return missing === undefined ? null : `there is no ${missing}`;
}

const isRoot = (): boolean => process.getuid?.() === 0;

function must(program: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8", env: SYSTEM });
  if (status !== 0) throw new DemoFailure(`${program} ${args.join(" ")} ended with ${status}: ${stderr}`);
}

/**
 * A login node on this machine: OpenSSH's sshd on a high port of loopback that lets one key in. Where the demonstration runs as root, under a
 * user that is made for it; else under the same user. In both cases with a home of its own. Everything lies in one temporary directory.
 */
export class LoginNode {
  readonly home: string;
  readonly #sshd: Bun.Subprocess;

  private constructor(
    readonly directory: string,
    readonly user: string,
    readonly port: number,
  ) {
    this.home = path.join(directory, "home");
    this.#sshd = Bun.spawn([SSHD, "-D", "-f", this.#file("sshd_config"), "-E", this.#file("sshd.log")], {
      env: SYSTEM,
      stdio: ["ignore", "ignore", "ignore"],
    });
  }

  static async start(): Promise<LoginNode> {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-login-"));
    const user = isRoot() ? `relay-demo-${process.pid}` : os.userInfo().username;
    let made = false;
    try {
      // The user has to reach the home in it.
      fs.chmodSync(directory, 0o711);
      const home = path.join(directory, "home");
      fs.mkdirSync(home, { mode: 0o700 });
      for (const name of ["host_key", "key"])
        must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "demo", "-f", path.join(directory, name));
      fs.mkdirSync(path.join(home, ".ssh"), { mode: 0o700 });
      fs.copyFileSync(path.join(directory, "key.pub"), path.join(home, ".ssh", "authorized_keys"));
      if (isRoot()) {
        must("useradd", "--no-create-home", "--home-dir", home, "--shell", "/bin/sh", "--password", "*", user);
        made = true;
        must("chown", "-R", `${user}:`, home);
        fs.mkdirSync("/run/sshd", { recursive: true });
      }
      const port = await freePort();
      write(path.join(directory, "sshd_config"), [
        `Port ${port}`,
        "ListenAddress 127.0.0.1",
        `HostKey ${path.join(directory, "host_key")}`,
        `PidFile ${path.join(directory, "sshd.pid")}`,
        `AuthorizedKeysFile ${path.join(home, ".ssh", "authorized_keys")}`,
        `AllowUsers ${user}`,
        `SetEnv HOME=${home}`,
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "LogLevel VERBOSE",
      ]);
      const hostKey = fs.readFileSync(path.join(directory, "host_key.pub"), "utf8");
      write(path.join(directory, "known_hosts"), [`[127.0.0.1]:${port} ${hostKey.trim()}`]);
      write(path.join(directory, "ssh_config"), [
        "Host demo-login",
        "  HostName 127.0.0.1",
        `  Port ${port}`,
        `  User ${user}`,
        `  IdentityFile ${path.join(directory, "key")}`,
        "  IdentityAgent none",
        `  UserKnownHostsFile ${path.join(directory, "known_hosts")}`,
        "  GlobalKnownHostsFile /dev/null",
      ]);
      write(path.join(directory, "sshd.log"), []);
      const node = new LoginNode(directory, user, port);
      await node.#listening();
      return node;
    } catch (error) {
      if (made) spawnSync("userdel", ["--force", user], { env: SYSTEM, stdio: "ignore" });
      fs.rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  #file(name: string): string {
    return path.join(this.directory, name);
  }

  get sshConfig(): string {
    return this.#file("ssh_config");
  }

  /** Connections that sshd says have come in. */
  connections(): number {
    return fs.readFileSync(this.#file("sshd.log"), "utf8").match(/^Connection from /gm)?.length ?? 0;
  }

  /** Put a file into the home. */
  place(file: string, ...parts: string[]): string {
    const target = path.join(this.home, ...parts);
    const { uid, gid } = fs.statSync(this.home);
    const parent = path.dirname(target);
    if (!fs.existsSync(parent)) {
      fs.mkdirSync(parent);
      fs.chownSync(parent, uid, gid);
    }
    fs.copyFileSync(file, target);
    fs.chownSync(target, uid, gid);
    return target;
  }

  /** End sshd's processes that carry a connection, all at once; those that it listens with go on. Returns which they were. */
  cut(): number[] {
    const sessions = likeChildrenOf(this.#sshd.pid);
    for (const pid of sessions) kill(pid);
    return sessions;
  }

  /** End sshd and whatever runs for the home's user there, and remove user and directory. */
  async remove(): Promise<void> {
    this.cut();
    this.#sshd.kill("SIGKILL");
    await this.#sshd.exited;
    const { uid } = fs.statSync(this.home);
    // What is started while others are ended is found by the next look.
    for (let left = this.#processes(uid); left.length > 0; left = this.#processes(uid)) {
      for (const pid of left) kill(pid);
      await Bun.sleep(50);
    }
    if (isRoot()) must("userdel", "--force", this.user);
    fs.rmSync(this.directory, { recursive: true, force: true });
  }

  /** Processes of the node: all of the user that was made, else those that know the home. */
  #processes(uid: number): number[] {
    return processes().filter((pid) => {
      if (pid === process.pid) return false;
      try {
        const directory = `/proc/${pid}`;
        const stat = fs.readFileSync(`${directory}/stat`, "latin1");
        if (fs.statSync(directory).uid !== uid || stat.includes(") Z ")) return false;
        if (isRoot()) return true;
        const traces = [fs.readFileSync(`${directory}/environ`, "utf8"), fs.readFileSync(`${directory}/cmdline`, "utf8")];
        return [...traces, fs.readlinkSync(`${directory}/cwd`)].some((trace) => trace.includes(this.home));
      } catch {
        return false; // gone meanwhile
      }
    });
  }

  async #listening(): Promise<void> {
    const deadline = Date.now() + 10_000;
    const log = (): string => fs.readFileSync(this.#file("sshd.log"), "utf8");
    while (!log().includes("Server listening on ")) {
      if (this.#sshd.exitCode !== null || Date.now() > deadline) {
        this.#sshd.kill("SIGKILL");
        throw new DemoFailure(`sshd does not start: ${log()}`);
      }
      await Bun.sleep(20);
    }
  }
}

const write = (file: string, lines: readonly string[]): void =>
  fs.writeFileSync(file, lines.map((line) => `${line}\n`).join(""), { mode: 0o600 });

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
