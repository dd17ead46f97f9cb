import fs from "node:fs";
import path from "node:path";
import { sha256Hex } from "../../src/lib/digest.ts";
import { frpProgram } from "../rigs/frp/programs.ts";
import { Frps } from "../rigs/frp/server.ts";
import { eventually } from "../runner/wait.ts";
import type { SourceRelay } from "./source-relay.ts";
import { FarSite, farLink } from "./ssh-desk.ts";

/** A site whose worker is met through a frps: set up once over SSH, and from then on without it. */
export class FrpSite implements AsyncDisposable {
  private constructor(
    readonly site: FarSite,
    readonly frps: Frps,
    readonly relay: SourceRelay,
  ) {}

  /** @param options further ones of cluster add; `server` in place of the frps itself: an edge before it */
  static async start({
    server,
    options = [],
  }: {
    server?: (frps: Frps) => Promise<readonly string[]>;
    options?: readonly string[];
  } = {}): Promise<FrpSite> {
    const [site, frps] = await Promise.all([FarSite.start(), Frps.start()]);
    const relay = await site.desk();
    const own = new FrpSite(site, frps, relay);
    try {
      await relay.ok("install-frp", "--from", frpProgram("frpc"), "--sha256", sha256Hex(fs.readFileSync(frpProgram("frpc"))));
      const token = path.join(relay.directory, "frp-token");
      fs.writeFileSync(token, `${frps.token}\n`, { mode: 0o600 });
      const direct = ["--frp-server-addr", "127.0.0.1", "--frp-server-port", String(frps.port), "--frp-protocol", "tcp"];
      const way = server === undefined ? direct : await server(frps);
      await relay.ok("cluster", "add", "far", ...way, "--frp-token-file", token, ...options);
      await relay.ok("worker", "start", "--cluster", "far", "--ssh");
      return own;
    } catch (error) {
      await own[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Wait until the link is up, by itself. */
  up(): Promise<Awaited<ReturnType<typeof farLink>>> {
    return eventually(
      async () => {
        const link = await farLink(this.relay);
        return link.state === "up" ? link : null;
      },
      { what: "the link" },
    );
  }

  /** Processes of frpc: on the desktop, and on the cluster. */
  frpcs(side: "visitor" | "worker"): number[] {
    return fs
      .readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => {
        try {
          const line = fs.readFileSync(`/proc/${pid}/cmdline`, "utf8");
          return line.includes("frpc\0-c") && !line.startsWith("/bin/sh") && line.includes(`${side}-far.`) && this.#isOurs(pid);
        } catch {
          return false;
        }
      });
  }

  #isOurs(pid: number): boolean {
    return (
      fs.statSync(`/proc/${pid}`).uid === this.site.user.uid ||
      fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(this.relay.directory)
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.relay[Symbol.asyncDispose]();
    await this.site[Symbol.asyncDispose]();
    await this.frps[Symbol.asyncDispose]();
  }
}
