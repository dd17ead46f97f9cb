import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const GO = ["/usr/local/go/bin/go", "/usr/lib/go/bin/go"];
const MODULE = import.meta.dir;

/** Where the programs of these versions lie once they are built, outside of the checkout: a fresh clone finds them again. */
function place(): string {
  const hash = new Bun.CryptoHasher("sha256");
  for (const file of ["go.mod", "go.sum"]) hash.update(fs.readFileSync(path.join(MODULE, file)));
  return path.join(os.homedir(), ".cache", "clio-relay-rigs", `frp-${hash.digest("hex").slice(0, 16)}`);
}

/** Executables of frp, release 0.69.1, as the rig builds them from its source. */
export const frpProgram = (name: "frpc" | "frps"): string => path.join(place(), name);

/** Why frp is not there; null when it is. */
export const noFrp = (): string | null =>
  (["frpc", "frps"] as const).every((name) => fs.existsSync(frpProgram(name))) ? null : `frp is not built (${place()})`;

/** Build frpc and frps from their source, as go.mod and go.sum pin it: 50 s once on two processors. Resolves to whether they are there. */
export async function buildFrp(): Promise<boolean> {
  const go = Bun.which("go") ?? GO.find((file) => fs.existsSync(file));
  if (go === undefined) return false;
  const target = place();
  fs.mkdirSync(path.dirname(target), { recursive: true });
  const building = fs.mkdtempSync(`${target}-`);
  try {
    const child = Bun.spawn(
      [
        go,
        "build",
        "-mod=readonly",
        "-buildvcs=false",
        "-trimpath",
        "-ldflags=-s -w",
        "-tags=noweb",
        `-o=${building}/`,
        "github.com/fatedier/frp/cmd/frpc",
        "github.com/fatedier/frp/cmd/frps",
      ],
      { cwd: MODULE, env: { ...process.env, CGO_ENABLED: "0" }, stdin: "ignore", stdout: "ignore", stderr: "inherit", timeout: 600_000 },
    );
    if ((await child.exited) !== 0) return false;
    // Somebody else may have been faster.
    if (!fs.existsSync(target)) fs.renameSync(building, target);
    return true;
  } finally {
    fs.rmSync(building, { recursive: true, force: true });
  }
}
