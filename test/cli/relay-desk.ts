import fs from "node:fs";
import path from "node:path";
import { desktopKey } from "../../src/roles/desktop/desktop-key.ts";
import { publicKeyOf } from "../../src/transport/session/key-pair.ts";
import { lineOfPublicKey } from "../../src/transport/session/keys.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { initialized, MAIN, type SourceRelay } from "./source-relay.ts";
import { farLink } from "./ssh-desk.ts";

export const TOKEN = "a-token-of-a-test-0123456789-abcdefgh";

export interface TestRelayHostOptions {
  /** Files in PEM. Without them it is as behind an edge: `ws`. */
  readonly certificate?: { readonly cert: string; readonly key: string };
  /** Plain TCP in place of what an edge would hand on. */
  readonly plain?: boolean;
  /** Address that it listens on; loopback when left out. */
  readonly address?: string;
  /** What its command begins with. */
  readonly before?: readonly string[];
}

/** A relay-host, as a process, on a port that stays its own over restarts. */
export class TestRelayHost implements AsyncDisposable {
  readonly #files = temporaryDirectory();
  readonly tokenFile = path.join(this.#files.path, "token");
  #child: Bun.Subprocess<"ignore", "pipe", "pipe"> | null = null;
  port = 0;
  /** What it has written to its log, all starts together. */
  log = "";

  private constructor(private readonly options: TestRelayHostOptions) {
    fs.writeFileSync(this.tokenFile, `${TOKEN}\n`, { mode: 0o600 });
  }

  static async start(options: TestRelayHostOptions = {}): Promise<TestRelayHost> {
    const host = new TestRelayHost(options);
    await host.start();
    return host;
  }

  async start(): Promise<void> {
    const { certificate, plain = false, address = "127.0.0.1", before = [] } = this.options;
    const at = `${address}:${this.port}`;
    const listen =
      certificate === undefined
        ? [plain ? "--listen-tcp" : "--listen-ws", at]
        : ["--listen", at, "--tls-cert", certificate.cert, "--tls-key", certificate.key];
    const { PATH = "", CLIO_RELAY_TEST_RUN } = process.env;
    const child = Bun.spawn(
      [...before, process.execPath, MAIN, "relay-host", "serve", ...listen, "--token-file", this.tokenFile, "--json"],
      {
        env: {
          PATH,
          HOME: this.#files.path,
          CLIO_RELAY_HOME: path.join(this.#files.path, "home"),
          ...(CLIO_RELAY_TEST_RUN === undefined ? {} : { CLIO_RELAY_TEST_RUN }),
        },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    this.#child = child;
    void this.#keepLog(child.stderr);
    let said = "";
    for await (const chunk of child.stdout) {
      said += Buffer.from(chunk).toString("utf8");
      if (said.includes("\n")) break;
    }
    if (said === "") throw new Error(`the relay-host did not start: ${this.log}`);
    const { listening } = JSON.parse(said) as { listening: [{ port: number }] };
    this.port = listening[0].port;
  }

  async #keepLog(stderr: ReadableStream<Uint8Array>): Promise<void> {
    for await (const chunk of stderr) this.log += Buffer.from(chunk).toString("utf8");
  }

  /** SIGKILL, or a signal that lets it take its leave; until it is gone. */
  async end(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    const child = this.#child;
    this.#child = null;
    child?.kill(signal);
    await child?.exited;
  }

  /** Its process. @throws where it does not run */
  get pid(): number {
    if (this.#child === null) throw new Error("the relay-host does not run");
    return this.#child.pid;
  }

  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.#child?.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGCONT");
    await this.end();
    this.#files[Symbol.dispose]();
  }
}

export interface MeetingDeskOptions {
  /** Address of the relay-host, as both sides dial it. */
  readonly url: string;
  /** As the desktop dials it; the same when left out. */
  readonly deskUrl?: string;
  /** Further variables of either side. */
  readonly env?: Readonly<Record<string, string>>;
  /** What commands of each side begin with. */
  readonly before?: { readonly cluster: readonly string[]; readonly desk: readonly string[] };
}

/** An installation, of the source or of the executable. */
interface Installed {
  readonly home: string;
  run(
    args: readonly string[],
    options: { readonly stdin?: string },
  ): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>;
  json<T = Record<string, unknown>>(...args: string[]): Promise<T>;
}

/** Configure a worker as bootstrap would: `way` is what it has to know of where it is met. @returns its host key */
export async function configureFor(worker: Installed, desk: Pick<Installed, "home">, cluster: string, way: object): Promise<string> {
  const configuration = {
    schema_version: "clio-relay.worker-configuration.v1",
    cluster,
    env_setup: null,
    worker_capacity: { concurrency: 3, control_query_concurrency: 1, kind_concurrency: {} },
    client_keys: [lineOfPublicKey(publicKeyOf(desktopKey(path.join(desk.home, "config"))))],
    ...way,
  };
  const { code, stdout, stderr } = await worker.run(["worker", "configure"], { stdin: JSON.stringify(configuration) });
  if (code !== 0) throw new Error(stderr);
  return (JSON.parse(stdout) as { host_key: string }).host_key;
}

export const configureForRelay = (worker: Installed, desk: Pick<Installed, "home">, cluster: string, url: string): Promise<string> =>
  configureFor(worker, desk, cluster, { relay: { relay_host: url, token: TOKEN } });

/** Have a desk know who has to answer, as bootstrap or pairing would. */
export async function pinWorkerKey(desk: Installed, cluster: string, hostKey: string): Promise<void> {
  const { route_revision: _revision, ...known } = await desk.json("cluster", "show", cluster);
  const response = await fetch("http://relay/clusters", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...known, worker_key: hostKey }),
    unix: path.join(desk.home, "run", "desktop.sock"),
  } as RequestInit);
  if (!response.ok) throw new Error(await response.text());
}

/** A cluster `far` on one installation, whose worker is met at a relay-host, and another installation that meets it there. Their keys are exchanged as bootstrap would. */
export class MeetingDesk implements AsyncDisposable {
  readonly #files = temporaryDirectory();
  readonly tokenFile: string;

  private constructor(
    readonly cluster: SourceRelay,
    readonly desk: SourceRelay,
    private readonly options: MeetingDeskOptions,
  ) {
    this.tokenFile = path.join(this.#files.path, "token");
    fs.writeFileSync(this.tokenFile, `${TOKEN}\n`, { mode: 0o600 });
  }

  static async start(options: MeetingDeskOptions): Promise<MeetingDesk> {
    const env = { CLIO_RELAY_CLUSTER: "far", ...options.env };
    const [cluster, desk] = await Promise.all([initialized(env, options.before?.cluster), initialized(env, options.before?.desk)]);
    const both = new MeetingDesk(cluster, desk, options);
    await both.#introduce();
    return both;
  }

  async #introduce(): Promise<void> {
    const hostKey = await configureForRelay(this.cluster, this.desk, "far", this.options.url);
    await this.startWorker();
    const url = this.options.deskUrl ?? this.options.url;
    await this.desk.ok("cluster", "add", "--name", "far", "--relay-host", url, "--relay-token-file", this.tokenFile);
    await pinWorkerKey(this.desk, "far", hostKey);
  }

  async startWorker(): Promise<void> {
    await this.cluster.ok("worker", "start", "--cluster", "far");
  }

  /** Wait until the link is up. */
  async up(): Promise<void> {
    await eventually(async () => (await farLink(this.desk)).state === "up", { what: "a link that is up" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.desk[Symbol.asyncDispose]();
    await this.cluster[Symbol.asyncDispose]();
    this.#files[Symbol.dispose]();
  }
}
