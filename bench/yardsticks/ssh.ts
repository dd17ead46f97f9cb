import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import { makeKey, must, type Sshd, startSshd } from "../../test/rigs/sshd.ts";
import { eventually } from "../../test/runner/wait.ts";

/** An sshd of this machine that lets this user in, and OpenSSH's clients with nothing of the user's own configuration. */
export class SshYardstick implements AsyncDisposable {
  private constructor(
    readonly sshd: Sshd,
    /** Private key file. */
    readonly key: string,
    private readonly directory: string,
  ) {}

  static async start(directory: string): Promise<SshYardstick> {
    const key = makeKey(directory);
    const sshd = await startSshd({ config: [`AuthorizedKeysFile ${key}.pub`, "PermitRootLogin yes"] });
    fs.writeFileSync(path.join(directory, "known_hosts"), sshd.knownLine());
    return new SshYardstick(sshd, key, directory);
  }

  get user(): string {
    // os.userInfo() goes by the environment.
    return must("id", "-un").trim();
  }

  #options(): string[] {
    const settings = [`UserKnownHostsFile=${path.join(this.directory, "known_hosts")}`, "StrictHostKeyChecking=yes", "IdentitiesOnly=yes"];
    return ["-F", "/dev/null", "-i", this.key, "-c", "aes128-gcm@openssh.com", ...settings.flatMap((setting) => ["-o", setting])];
  }

  /** `ssh -L`: a Unix socket here that leads to one there. */
  async forward(remote: string, local: string): Promise<Disposable> {
    const to = [`${this.user}@${this.sshd.host}`, "-p", String(this.sshd.port)];
    const child = Bun.spawn(["ssh", ...this.#options(), "-N", "-o", "ExitOnForwardFailure=yes", "-L", `${local}:${remote}`, ...to], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "inherit",
    });
    await eventually(() => fs.existsSync(local), { what: "ssh -L" });
    return { [Symbol.dispose]: () => child.kill() };
  }

  /** `ssh host true`, in milliseconds. */
  async hostTrue(): Promise<number> {
    const began = performance.now();
    const child = Bun.spawn(["ssh", ...this.#options(), "-p", String(this.sshd.port), `${this.user}@${this.sshd.host}`, "true"], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "inherit",
    });
    if ((await child.exited) !== 0) throw new Error("ssh host true failed");
    return performance.now() - began;
  }

  /** `scp` of a file from a port through which the sshd is reached, in milliseconds. */
  async scp(file: string, port: number): Promise<number> {
    const target = path.join(this.directory, "copied");
    fs.writeFileSync(path.join(this.directory, "known_hosts"), `[127.0.0.1]:${port} ${this.sshd.hostKey()}\n`, { flag: "a" });
    const began = performance.now();
    const child = Bun.spawn(["scp", "-q", ...this.#options(), "-P", String(port), `${this.user}@127.0.0.1:${file}`, target], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "inherit",
    });
    if ((await child.exited) !== 0) throw new Error("scp failed");
    const took = performance.now() - began;
    fs.rmSync(target);
    return took;
  }

  /** A file through `ssh host cat`, to a file there that is flushed, in milliseconds. */
  async send(file: string): Promise<number> {
    const target = path.join(this.directory, "sent");
    const began = performance.now();
    const to = ["-p", String(this.sshd.port), `${this.user}@${this.sshd.host}`];
    const child = Bun.spawn(["ssh", ...this.#options(), ...to, `cat > '${target}' && sync '${target}'`], {
      stdin: Bun.file(file),
      stdout: "ignore",
      stderr: "inherit",
    });
    if ((await child.exited) !== 0) throw new Error("ssh host cat failed");
    const took = performance.now() - began;
    fs.rmSync(target);
    return took;
  }

  /** A connection to a port of this machine. */
  static connect(port: number): Promise<net.Socket> {
    return new Promise((resolve, reject) => {
      const socket = net.connect({ port, host: "127.0.0.1", noDelay: true } as net.NetConnectOpts);
      socket.once("connect", () => resolve(socket));
      socket.once("error", reject);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sshd[Symbol.asyncDispose]();
  }
}
