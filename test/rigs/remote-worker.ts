import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { type RigUser, userFile } from "./sshd.ts";

const MAIN = path.resolve(import.meta.dir, "../../src/main.ts");

/** A version of no executable: that it is named like one is enough. */
const VERSION_NAME = "0".repeat(64);

/** An installation of the program as it is in the source, laid out as bootstrap does it in the home of another user, for one cluster. */
export class RemoteWorker {
  constructor(
    readonly user: RigUser,
    readonly cluster: string,
  ) {
    userFile(user, ".config/of-the-user", "");
    userFile(user, ".config/clio-relay/clusters.json", `${JSON.stringify({ version: 2, clusters: [{ name: cluster, mode: "local" }] })}\n`);
    const root = ".local/share/clio-relay";
    for (const directory of [".local", ".local/share", root, `${root}/versions`]) userFile(user, `${directory}/of-the-user`, "");
    const words = ["env", `PATH=${process.env["PATH"] ?? ""}`, process.execPath, MAIN].map((word) => `'${word}'`).join(" ");
    userFile(user, `${root}/versions/${VERSION_NAME}/clio-relay`, `#!/bin/sh\nexec ${words} "$@"\n`, 0o500);
    fs.symlinkSync(`versions/${VERSION_NAME}`, path.join(user.home, root, "current"));
  }

  /** Run a command there; its output. */
  run(...args: string[]): string {
    return this.#run({}, args);
  }

  #run(more: Readonly<Record<string, string>>, args: readonly string[]): string {
    const { name, home } = this.user;
    const mark = process.env["CLIO_RELAY_TEST_RUN"];
    const env = [
      `HOME=${home}`,
      `USER=${name}`,
      `PATH=${process.env["PATH"] ?? ""}`,
      "LANG=C.UTF-8",
      ...(mark === undefined ? [] : [`CLIO_RELAY_TEST_RUN=${mark}`]),
      ...Object.entries(more).map(([variable, value]) => `${variable}=${value}`),
    ];
    const result = spawnSync("runuser", ["-u", name, "--", "env", "-i", "-C", home, ...env, process.execPath, MAIN, ...args], {
      encoding: "utf8",
    });
    if (result.status !== 0) throw new Error(`clio-relay ${args.join(" ")} ended with ${result.status}: ${result.stderr}`);
    return result.stdout.trim();
  }

  start(): string {
    return this.run("worker", "start", "--cluster", this.cluster);
  }

  /** As in a session that has another runtime directory: its sockets lie elsewhere. */
  startElsewhere(): string {
    const runtime = path.join(this.user.home, "runtime");
    spawnSync("runuser", ["-u", this.user.name, "--", "mkdir", "-p", "-m", "700", runtime]);
    return this.#run({ XDG_RUNTIME_DIR: runtime }, ["worker", "start", "--cluster", this.cluster]);
  }

  stop(): string {
    return this.run("worker", "stop", "--cluster", this.cluster);
  }
}
