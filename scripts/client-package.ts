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

/** What its types are made of besides: whoever installs it gets that, and nothing of what the executable is made of. */
const TYPES_OF = ["valibot"];

/** The manifest by which `npm pack ./dist` makes a package of the executable and the client. */
function writeManifest(root: string, directory: string): void {
  const own = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8")) as Record<string, unknown> & {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  const { name, version, description, license, type } = own;
  const manifest = {
    ...{ name, version, description, license, type },
    bin: { "clio-relay": process.platform === "win32" ? "clio-relay.exe" : "clio-relay" },
    exports: { ".": { types: "./client/types/package.d.ts", default: "./client/clio-relay.js" } },
    files: ["client"],
    engines: { node: ">=20" },
    dependencies: Object.fromEntries(TYPES_OF.map((one) => [one, own.dependencies[one]])),
  };
  fs.writeFileSync(path.join(directory, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  fs.copyFileSync(path.join(root, "LICENSE"), path.join(directory, "LICENSE"));
}

async function main(root: string): Promise<void> {
  const outdir = path.join(root, "dist/client");
  fs.mkdirSync(path.dirname(outdir), { recursive: true });
  writeManifest(root, path.dirname(outdir));
  const stamp = path.join(outdir, ".sources");
  const sources = sourcesDigest(root);
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, "utf8") === sources) return;
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
