import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { RemoteWorker } from "../rigs/remote-worker.ts";
import { authorize, makeKey, makeUser, type RigUser, removeUser, type Sshd, type SshdOptions, startSshd } from "../rigs/sshd.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { initialized, type SourceRelay } from "./source-relay.ts";

export interface SshDeskOptions {
  /** Where its ssh configuration lies. */
  readonly directory: string;
  readonly sshd: Pick<Sshd, "host" | "port" | "knownLine">;
  readonly user: Pick<RigUser, "name">;
  /** A private key file; none when left out. */
  readonly key?: string;
  /** known_hosts; the server's key when left out. */
  readonly known?: string;
  /** Further lines of the ssh configuration; they come first. */
  readonly more?: readonly string[];
  /** Further variables for every command. */
  readonly env?: Readonly<Record<string, string>>;
}

/** An installation whose cluster `far` is behind an sshd, with an ssh configuration of its own. */
export async function sshDesk({
  directory,
  sshd,
  user,
  key = "none",
  known = sshd.knownLine(),
  more = [],
  env = {},
}: SshDeskOptions): Promise<SourceRelay> {
  const config = path.join(directory, `config-${crypto.randomUUID()}`);
  fs.writeFileSync(`${config}.known`, known, { mode: 0o600 });
  const lines = [
    ...more,
    "Host login",
    `  HostName ${sshd.host}`,
    `  Port ${sshd.port}`,
    `  User ${user.name}`,
    `  IdentityFile ${key}`,
    "  IdentityAgent none",
    `  UserKnownHostsFile ${config}.known`,
    "  GlobalKnownHostsFile /dev/null",
  ];
  fs.writeFileSync(config, `${lines.join("\n")}\n`, { mode: 0o600 });
  const relay = await initialized({ CLIO_RELAY_SSH_CONFIG: config, CLIO_RELAY_CLUSTER: "far", ...env });
  await relay.ok("cluster", "add", "--name", "far", "--ssh-host", "login");
  return relay;
}

/** A login node with a user of its own, who has a key, and a worker of `far` that is there and does not run yet. */
export class FarSite implements AsyncDisposable {
  readonly #keys = temporaryDirectory();
  readonly user: RigUser;
  readonly key: string;
  readonly worker: RemoteWorker;

  private constructor(readonly sshd: Sshd) {
    this.user = makeUser();
    this.key = makeKey(this.#keys.path);
    authorize(this.user, `${this.key}.pub`);
    this.worker = new RemoteWorker(this.user, "far");
  }

  static async start(options: SshdOptions = {}): Promise<FarSite> {
    return new FarSite(await startSshd(options));
  }

  /** An installation that reaches it. */
  desk(options: Partial<SshDeskOptions> = {}): Promise<SourceRelay> {
    return sshDesk({ directory: this.#keys.path, sshd: this.sshd, user: this.user, key: this.key, ...options });
  }

  /** Signal what sshd has running for the user, whose name is like no other's. */
  signalSessions(signal: "KILL" | "STOP" | "CONT"): void {
    spawnSync("pkill", [`-${signal}`, "-f", `^sshd: ${this.user.name}`]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sshd[Symbol.asyncDispose]();
    removeUser(this.user);
    this.#keys[Symbol.dispose]();
  }
}

/** The link to `far`, as link list has it. */
export interface FarLink {
  readonly cluster: string;
  readonly state: string;
  readonly detail: string | null;
  readonly ledger: readonly {
    readonly client: string;
    readonly purpose: string;
    readonly outcome: string | null;
    readonly requested_by: string;
  }[];
  readonly carrier?: string | null;
  readonly ssh_connections_since_bring_up: number | null;
  readonly bytes_in: number | null;
  readonly bytes_out: number | null;
}

export async function farLink(relay: SourceRelay): Promise<FarLink> {
  const { links } = await relay.json<{ links: FarLink[] }>("link", "list");
  return links.find(({ cluster }) => cluster === "far")!;
}
