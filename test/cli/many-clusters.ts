import fs from "node:fs";
import path from "node:path";
import { TcpProxy } from "../rigs/proxy/tcp-proxy.ts";
import { temporaryDirectory } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";
import { configureForRelay, TestRelayHost, TOKEN } from "./relay-desk.ts";
import { initialized, type SourceRelay } from "./source-relay.ts";
import type { FarLink } from "./ssh-desk.ts";

/** In which way clusters are dead: the worker hangs; the path swallows everything; nobody listens; who listens says nothing; the worker is gone. */
const DEATHS = ["hung", "swallowed", "refused", "mute", "absent"] as const;
export type Death = (typeof DEATHS)[number];

/** What the daemon answered; the body is read. */
export interface Answered {
  readonly status: number;
  readonly body: string;
}

/**
 * A desk with many clusters, all met at one relay-host. Most names lead to one worker, each over a link of its own; those that are going to die have what they
 * die of to themselves.
 */
export class ManyClusters implements AsyncDisposable {
  readonly #files = temporaryDirectory();
  readonly #tokenFile = path.join(this.#files.path, "token");
  /** Installations that have a worker of a cluster `far`: of all others, and of two that die. */
  readonly #workers = new Map<"everybody" | "hung" | "absent", SourceRelay>();
  readonly #ways = new Map<Death, TcpProxy>();
  /** Those that stay. */
  readonly living: readonly string[];
  readonly dead: readonly Death[] = DEATHS;

  private constructor(
    private readonly host: TestRelayHost,
    readonly desk: SourceRelay,
    count: number,
  ) {
    this.living = Array.from({ length: count - DEATHS.length }, (_, n) => `living-${n + 1}`);
    fs.writeFileSync(this.#tokenFile, `${TOKEN}\n`, { mode: 0o600 });
  }

  /** @param count clusters, the five that are going to die included; the links of all are up */
  static async start(count: number): Promise<ManyClusters> {
    const [host, desk] = await Promise.all([TestRelayHost.start(), initialized()]);
    const many = new ManyClusters(host, desk, count);
    try {
      await many.#meet();
      return many;
    } catch (error) {
      await many[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #meet(): Promise<void> {
    // The daemon is there from the first command on that needs it.
    await this.desk.ok("link", "list");
    const [everybody, hung, absent] = await Promise.all([this.#worker("everybody"), this.#worker("hung"), this.#worker("absent")]);
    for (const death of ["swallowed", "refused", "mute"] as const)
      this.#ways.set(death, await TcpProxy.start({ host: "127.0.0.1", port: this.host.port }));
    for (const name of this.living) await this.#add(name, everybody, this.host.port);
    for (const death of DEATHS) {
      const hostKey = death === "hung" ? hung : death === "absent" ? absent : everybody;
      await this.#add(death, hostKey, this.#ways.get(death)?.port ?? this.host.port);
    }
    await eventually(async () => [...(await this.states()).values()].every((state) => state === "up"), {
      what: "the links of all clusters",
      everyMs: 100,
    });
  }

  /** @returns its host key */
  async #worker(name: "everybody" | "hung" | "absent"): Promise<string> {
    const relay = await initialized({ CLIO_RELAY_CLUSTER: "far" });
    this.#workers.set(name, relay);
    const hostKey = await configureForRelay(relay, this.desk, "far", `ws://127.0.0.1:${this.host.port}`);
    await relay.ok("worker", "start", "--cluster", "far");
    return hostKey;
  }

  /** As bootstrap would have made it. */
  async #add(name: string, hostKey: string, port: number): Promise<void> {
    const { status, body } = await this.ask("/clusters", {
      name,
      mode: "relay",
      relay_host: `ws://127.0.0.1:${port}`,
      relay_token_file: this.#tokenFile,
      worker_key: hostKey,
      worker_cluster: "far",
    });
    if (status >= 300) throw new Error(body);
  }

  /** A request of the daemon; a POST where there is something to say, bytes as they are and all else as JSON. */
  async ask(target: string, said?: object): Promise<Answered> {
    const body = said instanceof Uint8Array ? (said as Uint8Array<ArrayBuffer>) : JSON.stringify(said);
    const answer = await fetch(`http://relay${target}`, {
      ...(said === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body }),
      unix: path.join(this.desk.home, "run", "desktop.sock"),
      timeout: false,
      proxy: false,
      // What is open afterwards is the daemon's own.
      keepalive: false,
    } as RequestInit);
    return { status: answer.status, body: await answer.text() };
  }

  async links(): Promise<readonly FarLink[]> {
    const { links } = JSON.parse((await this.ask("/links")).body) as { links: FarLink[] };
    return links.filter(({ cluster }) => cluster !== "local");
  }

  async states(): Promise<ReadonlyMap<string, string>> {
    return new Map((await this.links()).map(({ cluster, state }) => [cluster, state]));
  }

  /** The five die, each in its way. */
  async die(): Promise<void> {
    const worker = (name: "hung" | "absent"): number => this.#workers.get(name)!.processes("worker run")[0]!;
    process.kill(worker("hung"), "SIGSTOP");
    this.#ways.get("swallowed")!.weather.blackhole = true;
    await this.#ways.get("refused")![Symbol.asyncDispose]();
    this.#ways.delete("refused");
    // From here on a connection is taken, and nothing follows.
    this.#ways.get("mute")!.weather.blackhole = true;
    this.#ways.get("mute")!.cut();
    await this.#workers.get("absent")!.kill(worker("absent"));
  }

  /** Connections that came for one that swallows them. */
  taken(death: "swallowed" | "mute"): number {
    return this.#ways.get(death)!.accepted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.desk[Symbol.asyncDispose]();
    for (const relay of this.#workers.values()) await relay[Symbol.asyncDispose]();
    for (const way of this.#ways.values()) await way[Symbol.asyncDispose]();
    await this.host[Symbol.asyncDispose]();
    this.#files[Symbol.dispose]();
  }
}
