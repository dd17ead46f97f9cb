import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { eventually } from "../runner/wait.ts";
import { freePort } from "./free-port.ts";

/** A user of this machine for one test. */
export interface RigUser {
  readonly name: string;
  readonly home: string;
  readonly uid: number;
  readonly gid: number;
}

export interface SshdOptions {
  /** Further lines of sshd_config(5); they come first, and the first value wins. */
  readonly config?: readonly string[];
  readonly hostKeyTypes?: readonly ("ed25519" | "ecdsa" | "rsa")[];
  readonly listen?: string;
  /** The sshd executable; PAM's service is called like it. */
  readonly program?: string;
  /** What starts it: `ip netns exec NAME`. */
  readonly prefix?: readonly string[];
}

const ROOT_ENV = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8" };

/** Run a program that has to succeed; its output. */
export function must(program: string, ...args: string[]): string {
  const result = spawnSync(program, args, { encoding: "utf8", env: ROOT_ENV });
  if (result.status !== 0) throw new Error(`${program} ${args.join(" ")} ended with ${result.status}: ${result.stderr}`);
  return result.stdout;
}

const suffix = (): string => crypto.randomUUID().slice(0, 8);

/** Make a user with a home of its own. Remove it with `removeUser`. */
export function makeUser({ shell = "/bin/bash", password }: { shell?: string; password?: string } = {}): RigUser {
  const name = `rig${suffix()}`;
  // Without PAM sshd takes an account whose password begins with ! for a locked one.
  must("useradd", "--create-home", "--password", "*", "--shell", shell, name);
  if (password !== undefined) {
    const set = spawnSync("chpasswd", { input: `${name}:${password}\n`, env: ROOT_ENV });
    if (set.status !== 0) throw new Error(`chpasswd ended with ${set.status}`);
  }
  const [, , uid, gid, , home] = must("getent", "passwd", name).split(":");
  return { name, home: home!, uid: Number(uid), gid: Number(gid) };
}

/** End what runs as the user, and remove it with its home. */
export function removeUser({ name, uid }: RigUser): void {
  spawnSync("pkill", ["-KILL", "-U", String(uid)], { env: ROOT_ENV });
  spawnSync("userdel", ["--remove", "--force", name], { env: ROOT_ENV, stdio: "ignore" });
}

/** Put a file into a user's home. */
export function userFile(user: RigUser, name: string, text: string, mode = 0o600): string {
  const file = path.join(user.home, name);
  const directory = path.dirname(file);
  if (!fs.existsSync(directory)) {
    fs.mkdirSync(directory, { mode: 0o700 });
    fs.chownSync(directory, user.uid, user.gid);
  }
  fs.writeFileSync(file, text, { mode });
  fs.chmodSync(file, mode);
  fs.chownSync(file, user.uid, user.gid);
  return file;
}

/** Let a key in. */
export const authorize = (user: RigUser, publicKeyFile: string): string =>
  userFile(user, ".ssh/authorized_keys", fs.readFileSync(publicKeyFile, "utf8"));

/** A key pair of ssh-keygen's own making; the path of the private half, beside which lies `.pub`. */
export function makeKey(directory: string, { type = "ed25519", passphrase = "", format = "RFC4716" } = {}): string {
  const file = path.join(directory, `id_${type}_${suffix()}`);
  const bits = type === "rsa" ? ["-b", "2048"] : [];
  must("ssh-keygen", "-q", "-t", type, ...bits, "-m", format, "-N", passphrase, "-C", "rig", "-f", file);
  return file;
}

/** A running sshd of OpenSSH with a directory, host keys and a log of its own. */
export class Sshd implements AsyncDisposable {
  constructor(
    readonly directory: string,
    readonly host: string,
    readonly port: number,
    private child: Bun.Subprocess,
    private readonly listener: () => Bun.Subprocess,
  ) {}

  get log(): string {
    return fs.readFileSync(path.join(this.directory, "log"), "utf8");
  }

  /** Connections that came in so far, refused ones too. */
  connections(): number {
    return this.log.match(/^Connection from /gm)?.length ?? 0;
  }

  /** Its public host key of a type, as `TYPE BASE64`. */
  hostKey(type = "ed25519"): string {
    return fs
      .readFileSync(path.join(this.directory, `host_${type}.pub`), "utf8")
      .split(" ")
      .slice(0, 2)
      .join(" ");
  }

  /** `SHA256:…` of a host key. */
  fingerprint(type = "ed25519"): string {
    return must("ssh-keygen", "-l", "-f", path.join(this.directory, `host_${type}.pub`)).split(" ")[1]!;
  }

  /** Make a new host key; connections from now on see it. */
  async changeHostKey(type = "ed25519"): Promise<void> {
    const file = path.join(this.directory, `host_${type}`);
    fs.rmSync(file);
    fs.rmSync(`${file}.pub`);
    must("ssh-keygen", "-q", "-t", type, "-N", "", "-f", file);
    this.child.kill("SIGHUP");
    await eventually(() => this.#listening() > 1, { what: "sshd with its new key" });
  }

  /** A known_hosts line of it. */
  knownLine(type = "ed25519"): string {
    return `${this.port === 22 ? this.host : `[${this.host}]:${this.port}`} ${this.hostKey(type)}\n`;
  }

  /** End every session at once, as a crash would: all its processes, since a monitor's child holds the connection without it. sshd goes on. */
  cut(): void {
    const rows = must("ps", "-A", "-o", "pid=,ppid=,comm=").trim().split("\n");
    const all = rows
      .map((row) => row.trim().split(/\s+/))
      .map(([pid, parent, name]) => ({ pid: Number(pid), parent: Number(parent), name: name ?? "" }));
    const found = [this.child.pid];
    for (const at of found) found.push(...all.filter(({ parent, name }) => parent === at && name.startsWith("sshd")).map(({ pid }) => pid));
    for (const pid of found.slice(1)) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // gone with another one
      }
    }
  }

  /** End the listening process, too: from now on nobody answers. */
  async crash(): Promise<void> {
    this.cut();
    this.child.kill("SIGKILL");
    await this.child.exited;
  }

  /** Listen again, as the same host. */
  async again(): Promise<void> {
    const before = this.#listening();
    this.child = this.listener();
    await eventually(() => this.#listening() > before, { what: "sshd, started again" });
  }

  #listening(): number {
    return this.log.match(/^Server listening on /gm)?.length ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    try {
      process.kill(-this.child.pid, "SIGKILL");
    } catch {
      // gone
    }
    await this.child.exited;
    fs.rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Start an sshd that takes keys, until something in `config` says otherwise. */
export async function startSshd(options: SshdOptions = {}): Promise<Sshd> {
  const { config = [], hostKeyTypes = ["ed25519"], listen = "127.0.0.1", program = "/usr/sbin/sshd", prefix = [] } = options;
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-sshd-"));
  fs.mkdirSync("/run/sshd", { recursive: true });
  const port = prefix.length === 0 ? await freePort(listen) : 22;
  const hostKeys = hostKeyTypes.map((type) => {
    const file = path.join(directory, `host_${type}`);
    must("ssh-keygen", "-q", "-t", type, "-N", "", "-f", file);
    return `HostKey ${file}`;
  });
  const file = path.join(directory, "config");
  const lines = [
    ...config.filter((line) => !/^Match /i.test(line) && !line.startsWith(" ")),
    `Port ${port}`,
    `ListenAddress ${listen}`,
    ...hostKeys,
    `PidFile ${path.join(directory, "pid")}`,
    "UsePAM no",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "LogLevel VERBOSE",
    "MaxStartups 100",
    // Homes of a test's users may lie below a directory of another owner.
    "StrictModes no",
    "Subsystem sftp internal-sftp",
    ...config.filter((line) => /^Match /i.test(line) || line.startsWith(" ")),
  ];
  fs.writeFileSync(file, `${lines.join("\n")}\n`);
  const log = path.join(directory, "log");
  fs.writeFileSync(log, "");
  const mark = process.env["CLIO_RELAY_TEST_RUN"];
  const listener = () =>
    Bun.spawn([...prefix, program, "-D", "-f", file, "-E", log], {
      env: { ...ROOT_ENV, ...(mark === undefined ? {} : { CLIO_RELAY_TEST_RUN: mark }) },
      stdin: "ignore",
      stdout: "ignore",
      stderr: Bun.file(path.join(directory, "stderr")),
      detached: true,
    });
  const child = listener();
  const sshd = new Sshd(directory, listen, port, child, listener);
  try {
    await eventually(
      () => {
        return child.exitCode !== null || sshd.log.includes("Server listening on ");
      },
      { what: "sshd" },
    );
    if (child.exitCode !== null) throw new Error(`sshd ended: ${sshd.log}${fs.readFileSync(path.join(directory, "stderr"), "utf8")}`);
    return sshd;
  } catch (error) {
    await sshd[Symbol.asyncDispose]();
    throw error;
  }
}

/** An ssh-agent with some keys. */
export class SshAgent implements AsyncDisposable {
  private constructor(
    readonly socket: string,
    private readonly directory: string,
    private readonly child: Bun.Subprocess,
  ) {}

  static async start(...keys: readonly string[]): Promise<SshAgent> {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-agent-"));
    const socket = path.join(directory, "agent");
    const child = Bun.spawn(["ssh-agent", "-D", "-a", socket], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    const env = { ...ROOT_ENV, SSH_AUTH_SOCK: socket };
    // Its socket is there before anybody listens on it; 2 is for an agent that cannot be reached (ssh-add(1)).
    await eventually(() => fs.existsSync(socket) && spawnSync("ssh-add", ["-l"], { env }).status !== 2, { what: "the agent" });
    for (const key of keys) {
      const added = spawnSync("ssh-add", ["-q", key], { env, encoding: "utf8" });
      if (added.status !== 0) throw new Error(`ssh-add ended with ${added.status}: ${added.stderr}`);
    }
    return new SshAgent(socket, directory, child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill();
    await this.child.exited;
    fs.rmSync(this.directory, { recursive: true, force: true });
  }
}
