/**
 * What `import … from "clio-relay"` finds: one file of code for Bun and Node, and its types. `bun scripts/client-package.ts` builds them into dist/client, where the
 * sources have changed since.
 */
import fs from "node:fs";
import path from "node:path";

/** Made of other sources, it is another. */
function sourcesDigest(root: string): string {
  const hash = new Bun.CryptoHasher("sha256");
  const sources = [...new Bun.Glob("src/**/*.ts").scanSync({ cwd: root })].sort();
  for (const file of [...sources, "package-lock.json", "tsconfig.json", "scripts/client-package.ts", "scripts/client-types.json"]) {
    const bytes = fs.readFileSync(path.join(root, file));
    hash.update(`${file}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex");
}

/** @throws Error with what the compiler says */
async function build(root: string, directory: string): Promise<void> {
  const built = await Bun.build({
    entrypoints: [path.join(root, "src/package.ts")],
    outdir: directory,
    naming: "clio-relay.js",
    target: "node",
    format: "esm",
  });
  if (!built.success) throw new AggregateError(built.logs, "the client was not built");
  const compiler = path.join(root, "node_modules/typescript/bin/tsc");
  const config = path.join(root, "scripts/client-types.json");
  const emitted = Bun.spawnSync([process.execPath, compiler, "-p", config, "--outDir", path.join(directory, "types")]);
  if (!emitted.success) throw new Error(`the types of the client were not written: ${emitted.stdout.toString()}`);
}

async function main(root: string): Promise<void> {
  const outdir = path.join(root, "dist/client");
  const stamp = path.join(outdir, ".sources");
  const sources = sourcesDigest(root);
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, "utf8") === sources) return;
  fs.mkdirSync(path.dirname(outdir), { recursive: true });
  const temporary = fs.mkdtempSync(path.join(path.dirname(outdir), ".client-"));
  try {
    await build(root, temporary);
    fs.writeFileSync(path.join(temporary, ".sources"), sources);
    fs.chmodSync(temporary, 0o755);
    fs.rmSync(outdir, { recursive: true, force: true });
    fs.renameSync(temporary, outdir);
  } finally {
    fs.rmSync(temporary, { recursive: true, force: true });
  }
  console.log("built dist/client, the package for other programs");
}

await main(path.dirname(import.meta.dir));
