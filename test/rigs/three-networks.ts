import { execFileSync, spawnSync } from "node:child_process";

const ip = (...args: string[]): void => void execFileSync("ip", args, { stdio: "pipe" });

/**
 * Three network namespaces: a desk and a cluster, each of which reaches the one between them, and nothing else; that one reaches both, and hands nothing on.
 */
export class ThreeNetworks implements Disposable {
  readonly #name: string;
  readonly #subnet: number;

  constructor() {
    this.#name = `relay-${process.pid}-${crypto.randomUUID().slice(0, 4)}`;
    this.#subnet = 2 * (1 + (process.pid % 120));
    for (const place of ["desk", "middle", "cluster"] as const) {
      ip("netns", "add", this.#netns(place));
      ip("-n", this.#netns(place), "link", "set", "lo", "up");
    }
    for (const [place, third] of [
      ["desk", this.#subnet],
      ["cluster", this.#subnet + 1],
    ] as const) {
      ip("-n", this.#netns("middle"), "link", "add", place, "type", "veth", "peer", "name", "middle", "netns", this.#netns(place));
      ip("-n", this.#netns("middle"), "addr", "add", `10.97.${third}.1/24`, "dev", place);
      ip("-n", this.#netns(place), "addr", "add", `10.97.${third}.2/24`, "dev", "middle");
      ip("-n", this.#netns("middle"), "link", "set", place, "up");
      ip("-n", this.#netns(place), "link", "set", "middle", "up");
      ip("-n", this.#netns(place), "route", "add", "default", "via", `10.97.${third}.1`);
    }
    execFileSync("ip", ["netns", "exec", this.#netns("middle"), "sysctl", "-qw", "net.ipv4.ip_forward=0"], { stdio: "pipe" });
  }

  #netns(place: "desk" | "middle" | "cluster"): string {
    return `${this.#name}-${place}`;
  }

  /** What a command begins with that is to run there. */
  inside(place: "desk" | "middle" | "cluster"): readonly string[] {
    return ["ip", "netns", "exec", this.#netns(place)];
  }

  /** The address at which the middle is found from one of the others. */
  middleFrom(place: "desk" | "cluster"): string {
    return `10.97.${place === "desk" ? this.#subnet : this.#subnet + 1}.1`;
  }

  /** Whether one answers a ping of another. */
  reaches(from: "desk" | "cluster", address: string): boolean {
    const script = `exec 3<>/dev/tcp/${address}/9`;
    // A port that nobody listens on answers at once where there is a way.
    const [command, ...args] = [...this.inside(from), "timeout", "2", "bash", "-c", script];
    return /refused/i.test(spawnSync(command!, args, { encoding: "utf8", env: { ...process.env, LANG: "C" } }).stderr);
  }

  /** The desk is carried to another place: it has another address from now on, and nothing comes to the old one. */
  moveDesk(): void {
    const netns = this.#netns("desk");
    ip("-n", netns, "addr", "flush", "dev", "middle");
    ip("-n", netns, "addr", "add", `10.97.${this.#subnet}.77/24`, "dev", "middle");
    ip("-n", netns, "route", "add", "default", "via", this.middleFrom("desk"));
  }

  /** Nothing gets from the middle to one of the others any more, and nobody is told; or it does again. */
  silence(place: "desk" | "cluster", silent: boolean): void {
    const third = place === "desk" ? this.#subnet : this.#subnet + 1;
    ip("-n", this.#netns("middle"), "route", silent ? "add" : "del", "blackhole", `10.97.${third}.2/32`);
  }

  [Symbol.dispose](): void {
    for (const place of ["desk", "middle", "cluster"] as const)
      spawnSync("ip", ["netns", "delete", this.#netns(place)], { stdio: "ignore" });
  }
}
