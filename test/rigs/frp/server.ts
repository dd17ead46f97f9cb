import fs from "node:fs";
import path from "node:path";
import { type FrpServer, frpsConfiguration } from "../../../src/transport/frp/configuration.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { freePort } from "../free-port.ts";
import { frpProgram } from "./programs.ts";

/** A frps of its own, which can be killed and started again on the same port. */
export class Frps implements AsyncDisposable {
  readonly token = crypto.randomUUID();
  readonly #directory = temporaryDirectory();
  #child: Bun.Subprocess | null = null;

  private constructor(
    readonly port: number,
    private readonly listen: string,
    private readonly prefix: readonly string[],
  ) {}

  /** @param prefix what starts it: `ip netns exec NAME` */
  static async start({ listen = "127.0.0.1", prefix = [] }: { listen?: string; prefix?: readonly string[] } = {}): Promise<Frps> {
    const frps = new Frps(await freePort(), listen, prefix);
    await frps.again();
    return frps;
  }

  /** How a frpc reaches it. */
  server(more: Partial<FrpServer> = {}): FrpServer {
    return { address: this.listen, port: this.port, protocol: "tcp", token: this.token, ...more };
  }

  get log(): string {
    return fs.readFileSync(path.join(this.#directory.path, "log"), "utf8");
  }

  async again(): Promise<void> {
    const file = path.join(this.#directory.path, "frps.toml");
    fs.writeFileSync(file, frpsConfiguration({ port: this.port, address: this.listen, token: this.token }), { mode: 0o600 });
    const log = fs.openSync(path.join(this.#directory.path, "log"), "a");
    const before = fs.fstatSync(log).size;
    this.#child = Bun.spawn([...this.prefix, frpProgram("frps"), "-c", file], { stdin: "ignore", stdout: log, stderr: log });
    fs.closeSync(log);
    await eventually(() => this.log.slice(before).includes("frps started successfully"), { what: "frps" });
  }

  async kill(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#child?.exited;
  }

  stop(): void {
    this.#child?.kill("SIGSTOP");
  }

  goOn(): void {
    this.#child?.kill("SIGCONT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.#directory[Symbol.dispose]();
  }
}
