import fs from "node:fs";
import path from "node:path";
import { installerScript } from "./installer.ts";
import { runtimesOf } from "./runtimes.ts";
import { sbom } from "./sbom.ts";
import { fileOf, TARGETS, type Target } from "./targets.ts";

export interface ReleaseOptions {
  readonly root: string;
  /** Where the release is put, whole; what lay there is replaced. */
  readonly outdir: string;
  /** Bun's names of the targets; all where there are none. */
  readonly only: readonly string[];
  readonly version: string;
  readonly commit: string;
  /** Where the released files will be found; the installer then needs no address. A page below which `download/vVERSION/` lies. */
  readonly releasesUrl: string | undefined;
  /** Build one executable and return the files that it was made from. */
  readonly build: (outfile: string, target: Target, runtime: string) => Promise<readonly string[]>;
}

/** What a package of a system would put where such files lie, under the names that they have there. */
export const BESIDE: Readonly<Record<string, string>> = {
  "clio-relay.1": "docs/clio-relay.1",
  "clio-relay.bash": "src/cli/complete/script.bash",
  "_clio-relay": "src/cli/complete/script.zsh",
  "clio-relay.fish": "src/cli/complete/script.fish",
};

/**
 * Make a release: an executable for each target, the installer, the manual page, completions of shells, a bill of materials, and SHA256SUMS of them all.
 *
 * @returns one line of `sha256sum` for each file
 */
export async function makeRelease(options: ReleaseOptions): Promise<readonly string[]> {
  const { root, outdir, only, version, commit, releasesUrl } = options;
  const targets = only.length === 0 ? TARGETS : TARGETS.filter(({ target }) => only.includes(target));
  const unknown = only.filter((name) => !TARGETS.some(({ target }) => target === name));
  if (unknown.length > 0)
    throw new Error(`no release is made for ${unknown.join(", ")}; there are ${TARGETS.map(({ target }) => target).join(", ")}`);
  fs.mkdirSync(path.dirname(outdir), { recursive: true });
  const temporary = fs.mkdtempSync(path.join(path.dirname(outdir), ".release-"));
  try {
    const runtimes = runtimesOf(root, targets, path.join(temporary, "runtimes"));
    const made = path.join(temporary, "release");
    fs.mkdirSync(made);
    const inputs = new Set<string>();
    for (const target of targets) {
      for (const input of await options.build(path.join(made, fileOf(target)), target, runtimes.get(target)!)) inputs.add(input);
    }
    fs.writeFileSync(path.join(made, "clio-relay-sbom.cdx.json"), sbom({ root, inputs: [...inputs], version, commit }));
    fs.writeFileSync(path.join(made, "install.sh"), installerScript(root, version, releasesUrl), { mode: 0o755 });
    for (const [name, source] of Object.entries(BESIDE)) fs.copyFileSync(path.join(root, source), path.join(made, name));
    const sums = fs
      .readdirSync(made)
      .sort()
      .map((name) => `${digestOf(path.join(made, name))}  ${name}`);
    fs.writeFileSync(path.join(made, "SHA256SUMS"), `${sums.join("\n")}\n`);
    fs.rmSync(outdir, { recursive: true, force: true });
    fs.renameSync(made, outdir);
    return sums;
  } finally {
    fs.rmSync(temporary, { recursive: true, force: true });
  }
}

const digestOf = (file: string): string => new Bun.CryptoHasher("sha256").update(fs.readFileSync(file)).digest("hex");
