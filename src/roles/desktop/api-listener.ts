import fs from "node:fs";
import path from "node:path";
import type { Hono } from "hono";
import type { ListenerControl, ListenerStatus } from "../../api/desktop/listener-views.ts";
import { type Access, namesOf } from "../../api/listener/access.ts";
import { checkListener, type ListenerRequest, readListener, removeListener, writeListener } from "../../config/api-listener.ts";
import { makeApiToken, readApiToken, rotateApiToken } from "../../config/api-token.ts";
import type { Environment } from "../../config/environment.ts";
import type { Paths } from "../../config/paths.ts";
import { readPem } from "../../config/pem.ts";
import { DirectoryWatch } from "../../lib/files/directory-watch.ts";
import { softLimit } from "../../lib/system/process-limits.ts";
import { type Clock, timestamp } from "../../lib/waiting/clock.ts";
import type { Level } from "../log-line.ts";
import { Rates } from "../sockets/quota.ts";
import { REFUSALS, type Refusal } from "./comer.ts";
import type { FrontBounds } from "./front.ts";
import { onTcp, type TcpServer } from "./listener.ts";
import { ASIDE_DESCRIPTORS, JOINED_DESCRIPTORS } from "./owned.ts";

/** Descriptors that are kept for everything else. */
const OTHER_DESCRIPTORS = 256;

export interface ApiListenerOptions {
  readonly paths: Pick<Paths, "runDir" | "listenerFile" | "apiTokenFile">;
  readonly env: Pick<Environment, "uid" | "platform">;
  readonly clock: Clock;
  /** Connections with the token at a time, as far as there are descriptors. */
  readonly connections: number;
  readonly bounds?: Partial<FrontBounds>;
  readonly log: (level: Level, message: string) => void;
  /** The app for it. */
  readonly appFor: (access: Access, where: () => string) => Hono;
}

/** The API on TCP: what was asked for is served until somebody says otherwise, and after each start of the daemon. */
export class ApiListener implements ListenerControl {
  #wanted: ListenerRequest | null = null;
  #server: TcpServer | null = null;
  #since: string | null = null;
  #token: string | null = null;
  #trouble: string | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #refused = new Map<Refusal, number>();
  readonly #watch: DirectoryWatch;
  readonly #told: Rates;
  readonly #descriptors: number;
  readonly #max: number;

  constructor(private readonly options: ApiListenerOptions) {
    this.#watch = new DirectoryWatch(() => this.#lookAtToken());
    this.#told = new Rates(1, () => options.clock.monotonic());
    const descriptors = (softLimit("Max open files") ?? Number.POSITIVE_INFINITY) - OTHER_DESCRIPTORS;
    this.#descriptors = Math.max(JOINED_DESCRIPTORS, descriptors);
    // As many as are set aside where one is asked something.
    const most = this.#descriptors - JOINED_DESCRIPTORS + ASIDE_DESCRIPTORS;
    this.#max = Math.max(1, Math.min(options.connections, most / ASIDE_DESCRIPTORS));
  }

  /** Serve what was asked for before this daemon was started. What keeps it from that is said in the log, and tried again by `look`. */
  resume(): Promise<void> {
    return this.#inTurn(() => Promise.resolve(this.#listenAgain()));
  }

  #listenAgain(): void {
    try {
      this.#wanted = readListener(this.options.paths, this.options.env);
      this.#trouble = null;
      if (this.#wanted !== null) this.#listen(this.#wanted);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Put right what may be right by now. */
  look(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#server?.lost() === true) await this.#end();
      if (this.#server !== null) this.#lookAtToken();
      else if (this.#wanted !== null || this.#trouble !== null) this.#listenAgain();
    });
  }

  start(request: ListenerRequest): Promise<ListenerStatus> {
    return this.#inTurn(async () => {
      checkListener(request);
      const tokenFile = request.token_file ?? this.options.paths.apiTokenFile;
      if (fs.lstatSync(tokenFile, { throwIfNoEntry: false }) === undefined) makeApiToken(tokenFile);
      readApiToken(tokenFile, this.options.env);
      const same = this.#server !== null && request.tls === null && Bun.deepEquals(request, this.#wanted);
      if (!same) await this.#replace(request);
      return this.status();
    });
  }

  /** Where the new one cannot be served, what was served before is served again. */
  async #replace(request: ListenerRequest): Promise<void> {
    const before = this.#server === null ? null : this.#wanted;
    await this.#end();
    try {
      const { port } = this.#listen(request);
      this.#wanted = { ...request, port };
      writeListener(this.options.paths, this.#wanted);
    } catch (error) {
      await this.#end();
      if (before !== null) this.#listen(before);
      throw error;
    }
  }

  stop(): Promise<ListenerStatus> {
    return this.#inTurn(async () => {
      removeListener(this.options.paths);
      if (this.#server !== null) this.options.log("info", `the API is no longer served on ${this.#where()}`);
      await this.#end();
      this.#wanted = null;
      this.#trouble = null;
      return this.status();
    });
  }

  rotate(): Promise<ListenerStatus> {
    return this.#inTurn(() => {
      rotateApiToken(this.#tokenFile());
      this.#lookAtToken();
      return Promise.resolve(this.status());
    });
  }

  status(): ListenerStatus {
    const listening = this.#server !== null && this.#trouble === null;
    return {
      state: listening ? "listening" : this.#trouble === null ? "stopped" : "failed",
      url: this.#server === null ? null : this.#where(),
      since: this.#since,
      listener: this.#wanted,
      token_file: this.#tokenFile(),
      detail: this.#trouble,
      connections: this.#server?.connections() ?? null,
      connections_max: this.#max,
      refused: Object.fromEntries(REFUSALS.map((why) => [why, this.#refused.get(why) ?? 0])),
    };
  }

  /** The daemon ends; what was asked for stays. */
  close(): Promise<void> {
    return this.#inTurn(() => this.#end());
  }

  /** One after the other, whatever becomes of each. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work, work);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  #tokenFile(): string {
    return this.#wanted?.token_file ?? this.options.paths.apiTokenFile;
  }

  #where(): string {
    const { host, tls } = this.#wanted ?? { host: "", tls: null };
    return `${tls === null ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${this.#server?.address.port ?? 0}`;
  }

  /** @throws RelayError configuration_error */
  #listen(request: ListenerRequest): { readonly port: number } {
    const { options } = this;
    this.#wanted = request;
    this.#token = readApiToken(this.#tokenFile(), options.env);
    const tls =
      request.tls === null
        ? null
        : { cert: readPem(request.tls.cert_file, "CERTIFICATE"), key: readPem(request.tls.key_file, "PRIVATE KEY") };
    this.#server = onTcp(
      {
        platform: options.env.platform,
        clock: options.clock,
        socket: path.join(options.paths.runDir, "api.sock"),
        address: { host: request.host, port: request.port },
        tls,
        token: () => this.#token,
        behindProxy: request.behind_proxy,
        bounds: { ...options.bounds, proven: this.#max, descriptors: this.#descriptors },
        onRefused: (why, address) => this.#refuse(why, address),
        onFault: (error) => options.log("error", error.stack ?? error.message),
      },
      ({ port }) => options.appFor(this.#accessOf(request, port), () => this.#where()),
    );
    this.#since = timestamp(options.clock);
    this.#trouble = null;
    this.#refused.clear();
    this.#watch.move(path.dirname(this.#tokenFile()));
    options.log("info", `the API is served on ${this.#where()}`);
    return { port: this.#server.address.port };
  }

  #accessOf(request: ListenerRequest, port: number): Access {
    return {
      token: () => this.#token,
      names: namesOf({ host: request.host, port, tls: request.tls !== null, allowed: request.allow_hosts }),
      origins: new Set(request.allow_origins),
      identity: null,
      foreign: true,
    };
  }

  async #end(): Promise<void> {
    this.#watch.close();
    const server = this.#server;
    this.#server = null;
    this.#since = null;
    this.#token = null;
    await server?.stop();
  }

  /** The file decides: another token ends what the old one opened, and without one nobody is let in. */
  #lookAtToken(): void {
    if (this.#server === null) return;
    let now: string | null = null;
    try {
      now = readApiToken(this.#tokenFile(), this.options.env);
      this.#trouble = null;
    } catch (error) {
      if (this.#token !== null || this.#trouble === null) this.#failed(error);
    }
    if (now === this.#token) return;
    this.#token = now;
    this.#server.endConnections();
    if (now !== null) this.options.log("info", "the API has another token; connections of the old one were ended");
  }

  #failed(error: unknown): void {
    this.#trouble = (error instanceof Error ? error.message : String(error)).slice(0, 2_000);
    this.options.log("error", `the API is not served on TCP: ${this.#trouble}`);
  }

  #refuse(why: Refusal, address: string): void {
    this.#refused.set(why, (this.#refused.get(why) ?? 0) + 1);
    // Whoever looks after the machine has to know, and a stranger must not fill the log.
    if (this.#told.take(`${why} ${address}`)) this.options.log("warn", `the API refused ${address}: ${why}`);
  }
}
