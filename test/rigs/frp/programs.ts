import fs from "node:fs";
import path from "node:path";
import { cached } from "../cached.ts";

const GO = ["/usr/local/go/bin/go", "/usr/lib/go/bin/go"];
const MODULE = import.meta.dir;

/** frpc and frps of release 0.69.1, from their source as go.mod and go.sum pin it: 50 s once on two processors. */
const frp = cached({
  name: "frp",
  pins: ["go.mod", "go.sum"].map((file) => path.join(MODULE, file)),
  holds: ["frpc", "frps"],
  async fill(directory) {
    const go = Bun.which("go") ?? GO.find((file) => fs.existsSync(file));
    if (go === undefined) return false;
    const child = Bun.spawn(
      [
        go,
        "build",
        "-mod=readonly",
        "-buildvcs=false",
        "-trimpath",
        "-ldflags=-s -w",
        "-tags=noweb",
        `-o=${directory}/`,
        "github.com/fatedier/frp/cmd/frpc",
        "github.com/fatedier/frp/cmd/frps",
      ],
      { cwd: MODULE, env: { ...process.env, CGO_ENABLED: "0" }, stdin: "ignore", stdout: "ignore", stderr: "inherit", timeout: 600_000 },
    );
    return (await child.exited) === 0;
  },
});

/** Executables of frp, release 0.69.1, as the rig builds them from its source. */
export const frpProgram = (name: "frpc" | "frps"): string => path.join(frp.directory(), name);

/** Why frp is not there; null when it is. */
export const noFrp = frp.missing;

/** Build frpc and frps from their source. Resolves to whether they are there. */
export const buildFrp = frp.make;
