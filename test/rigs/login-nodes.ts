import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { must, type Sshd, startSshd } from "./sshd.ts";

/** A login node: a network namespace with a host name and a boot id of its own and an sshd on port 22. The nodes know each other by name. */
export interface LoginNode {
  readonly name: string;
  readonly address: string;
  readonly sshd: Sshd;
}

/**
 * Two login nodes on one network, that can reach each other, with this machine's users and homes: what a site has behind one name. Needs root and
 * iproute2.
 */
export class LoginNodes implements AsyncDisposable {
  private constructor(
    readonly nodes: readonly [LoginNode, LoginNode],
    private readonly remove: () => void,
  ) {}

  static async start(config: readonly string[] = []): Promise<LoginNodes> {
    const mark = crypto.randomUUID().slice(0, 6);
    const bridge = `rb${mark}`;
    const spaces = [`rig-${mark}-a`, `rig-${mark}-b`];
    const started: LoginNode[] = [];
    const files = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-nodes-"));
    const remove = (): void => {
      for (const space of spaces) fs.rmSync(path.join("/etc/netns", space), { recursive: true, force: true });
      fs.rmSync(files, { recursive: true, force: true });
      for (const space of spaces) spawnSync("ip", ["netns", "delete", space], { stdio: "ignore" });
      spawnSync("ip", ["link", "delete", bridge], { stdio: "ignore" });
    };
    try {
      const network = freeNetwork();
      must("ip", "link", "add", bridge, "type", "bridge");
      must("ip", "address", "add", `${network}.1/24`, "dev", bridge);
      must("ip", "link", "set", bridge, "up");
      const hosts = spaces.map((_space, index) => `${network}.${11 + index} node${index + 1}-${mark}\n`).join("");
      for (const [index, space] of spaces.entries()) {
        // ip-netns(8): what lies there is seen in place of /etc's.
        fs.mkdirSync(path.join("/etc/netns", space), { recursive: true });
        fs.writeFileSync(path.join("/etc/netns", space, "hosts"), `127.0.0.1 localhost\n${hosts}`);
        const bootId = path.join(files, `boot-id-${index}`);
        fs.writeFileSync(bootId, `${crypto.randomUUID()}\n`, { mode: 0o644 });
        const address = `${network}.${11 + index}`;
        const [outside, inside] = [`rv${mark}${index}`, `ri${mark}${index}`];
        must("ip", "netns", "add", space);
        must("ip", "link", "add", outside, "type", "veth", "peer", "name", inside);
        must("ip", "link", "set", inside, "netns", space);
        must("ip", "link", "set", outside, "master", bridge, "up");
        must("ip", "-n", space, "address", "add", `${address}/24`, "dev", inside);
        must("ip", "-n", space, "link", "set", inside, "up");
        must("ip", "-n", space, "link", "set", "lo", "up");
        const name = `node${index + 1}-${mark}`;
        const enter = 'hostname "$0" && mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"';
        const prefix = ["ip", "netns", "exec", space, "unshare", "--uts", "sh", "-c", enter, name, bootId];
        started.push({ name, address, sshd: await startSshd({ config, listen: address, prefix }) });
      }
      return new LoginNodes([started[0]!, started[1]!], remove);
    } catch (error) {
      for (const { sshd } of started) await sshd[Symbol.asyncDispose]();
      remove();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { sshd } of this.nodes) await sshd[Symbol.asyncDispose]();
    this.remove();
  }
}

/** The first three numbers of a private network that this machine has no route to. */
function freeNetwork(): string {
  const routes = must("ip", "-4", "route");
  for (let tries = 0; tries < 50; tries++) {
    const network = `10.213.${Math.floor(Math.random() * 250)}`;
    if (!routes.includes(`${network}.`)) return network;
  }
  throw new Error("every network of 10.213.0.0/16 is taken");
}
