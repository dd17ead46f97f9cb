import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import type { Session } from "../../../src/transport/session/session.ts";
import { freePort } from "../../rigs/free-port.ts";
import type { Sshd } from "../../rigs/sshd.ts";
import { eventually } from "../../runner/wait.ts";
import { channelOf } from "../script/shells.ts";

const RIG = path.resolve(import.meta.dir, "../../rigs/systemd-overlay");

/** A machine of its own with a real systemd, user managers and logins. */
export class SystemdRig {
  readonly directory = fs.mkdtempSync("/var/tmp/clio-relay-service-");
  readonly #env = { ...process.env, RIG_DIR: this.directory };

  start(): void {
    this.#rig("start");
  }

  stop(): void {
    this.#rig("stop");
    fs.rmSync(this.directory, { recursive: true, force: true });
  }

  #rig(...args: string[]): string {
    const { status, stdout, stderr } = spawnSync(RIG, args, { encoding: "utf8", env: this.#env, timeout: 180_000 });
    if (status !== 0) throw new Error(`${args.join(" ")} ended with ${status}: ${stderr}`);
    return stdout;
  }

  /** As root on that machine. */
  run(...command: string[]): string {
    return this.#rig("run", ...command);
  }

  succeeds(...command: string[]): boolean {
    return spawnSync(RIG, ["run", ...command], { env: this.#env, timeout: 180_000 }).status === 0;
  }

  /** Let a user's manager run without a session, and wait until it can be asked. */
  linger(name: string): void {
    this.run("loginctl", "enable-linger", name);
    const bus = `/run/user/${this.run("id", "-u", name).trim()}/bus`;
    this.run("sh", "-c", 'for i in $(seq 600); do [ ! -S "$0" ] || exit 0; sleep 0.1; done; exit 1', bus);
  }

  addUser(name: string): void {
    this.run("useradd", "--create-home", "--shell", "/bin/bash", name);
  }

  /** A file of that machine, as it is seen from this one. */
  file(name: string): string {
    return path.join(this.directory, "root", name);
  }

  /**
   * An sshd on that machine, whose sessions are logind's. The network is this machine's, too.
   *
   * @param keys for each user the public keys that let in, one a line
   */
  async sshd(keys: Readonly<Record<string, string>>): Promise<Pick<Sshd, "host" | "port" | "knownLine" | "connections">> {
    const [host, port] = ["127.0.0.1", await freePort()];
    this.run("sh", "-c", "mkdir -p /run/sshd /etc/rig && ssh-keygen -q -t ed25519 -N '' -f /etc/rig/host");
    for (const [user, lines] of Object.entries(keys)) fs.writeFileSync(this.file(`etc/rig/${user}.keys`), lines, { mode: 0o644 });
    const config = [
      `Port ${port}`,
      `ListenAddress ${host}`,
      "HostKey /etc/rig/host",
      "AuthorizedKeysFile /etc/rig/%u.keys",
      "PidFile none",
      "UsePAM yes",
      "PasswordAuthentication no",
      "KbdInteractiveAuthentication no",
      "LogLevel VERBOSE",
    ];
    fs.writeFileSync(this.file("etc/rig/sshd_config"), `${config.join("\n")}\n`);
    this.run("systemd-run", "--quiet", "--unit=rig-sshd", "/usr/sbin/sshd", "-D", "-f", "/etc/rig/sshd_config", "-E", "/etc/rig/log");
    const log = () => fs.readFileSync(this.file("etc/rig/log"), "utf8");
    await eventually(() => fs.existsSync(this.file("etc/rig/log")) && log().includes("Server listening on "), { what: "sshd" });
    const [type, key] = fs.readFileSync(this.file("etc/rig/host.pub"), "utf8").split(" ");
    return {
      host,
      port,
      knownLine: () => `[${host}]:${port} ${type} ${key}\n`,
      connections: () => log().match(/^Connection from /gm)?.length ?? 0,
    };
  }

  /** Commands of a user who logs in for each of them, as over ssh: a session of logind's, which ends with the command. */
  login(user: string): Pick<Session, "exec"> {
    const init = fs.readFileSync(path.join(this.directory, "init"), "utf8").trim();
    return {
      exec: async (command, signal) => {
        signal?.throwIfAborted();
        const session = ["systemd-run", "--quiet", "--pipe", "--wait", "--collect", "-p", "PAMName=login", "-p", `User=${user}`];
        const argv = ["--target", init, "--all", "env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", ...session];
        const home = ["-p", `WorkingDirectory=/home/${user}`, `--setenv=HOME=/home/${user}`, "--setenv=CLIO_RELAY_MIN_FREE_BYTES=0"];
        return channelOf(
          spawn("nsenter", [...argv, ...home, "/bin/sh", "-c", command], { stdio: ["pipe", "pipe", "pipe"], detached: true }),
        );
      },
    };
  }

  /** The same without a login: no session, and no manager in reach. */
  plain(user: string): Pick<Session, "exec"> {
    const init = fs.readFileSync(path.join(this.directory, "init"), "utf8").trim();
    const argv = ["--target", init, "--all", "setpriv", `--reuid=${user}`, `--regid=${user}`, "--init-groups", "env", "-i"];
    const env = ["PATH=/usr/local/bin:/usr/bin:/bin", `HOME=/home/${user}`, `USER=${user}`, "CLIO_RELAY_MIN_FREE_BYTES=0"];
    return {
      exec: async (command, signal) => {
        signal?.throwIfAborted();
        return channelOf(
          spawn("nsenter", [...argv, ...env, "/bin/sh", "-c", command], { stdio: ["pipe", "pipe", "pipe"], detached: true }),
        );
      },
    };
  }
}
