/**
 * Builds the executable: `bun build.ts [--outdir DIR] [--target bun-linux-arm64] [--if-stale] [--digest]`, or a release:
 * `bun build.ts --release [--outdir DIR] [--target …] [--releases-url URL]`.
 * Two builds of one source give the same bytes, wherever they are made; only the file's name is part of them.
 */
import fs from "node:fs";
import path from "node:path";
import manifest from "./package.json";
import { loadedTogether } from "./scripts/loaded-together.ts";
import { optionsOf } from "./scripts/options.ts";

const root = import.meta.dir;
const started = process.cwd();

const { values: options } = optionsOf({
  options: {
    /** Directory that the executable is put into. */
    outdir: { type: "string" },
    /** A Bun compile target. When left out: this platform, or of a release all that there are. */
    target: { type: "string" },
    /** Do nothing when the executable there was made from these very sources. */
    "if-stale": { type: "boolean", default: false },
    /** Print size and SHA-256. */
    digest: { type: "boolean", default: false },
    /** Everything that is published, into dist/release. */
    release: { type: "boolean", default: false },
    /** The page where releases are published, for the installer. */
    "releases-url": { type: "string" },
  },
  strict: true,
});

/** What decides about the executable besides its sources. */
const MADE_WITH = ["package.json", "package-lock.json", "build.ts", "scripts/loaded-together.ts", "tsconfig.json"];

function git(...args: string[]): string | null {
  try {
    const result = Bun.spawnSync(["git", ...args], { cwd: root, stderr: "ignore" });
    return result.success ? result.stdout.toString().trim() : null;
  } catch {
    return null; // no git on this machine
  }
}

function commit(): string {
  const head = git("rev-parse", "HEAD");
  if (head === null) return "unknown";
  const changes = git("status", "--porcelain", "--untracked-files=no", "--", "src", ...MADE_WITH);
  return changes === "" ? head : `${head}+changes`;
}

/** Digest of everything that the executable is made from, Bun included. */
function sourcesDigest(builtCommit: string): string {
  const hash = new Bun.CryptoHasher("sha256");
  const files = [...new Bun.Glob("src/**/*").scanSync({ cwd: root, onlyFiles: true })].sort();
  for (const file of [...files, ...MADE_WITH]) {
    const bytes = fs.readFileSync(path.join(root, file));
    hash.update(`${file}\0${bytes.length}\0`).update(bytes);
  }
  return hash.update(`\0${builtCommit}\0${Bun.version}\0${options.target ?? ""}`).digest("hex");
}

/** Where Bun's list of inputs has modules that only say that they are missing. */
const LEFT_OUT = "left-out";

/**
 * ssh2 tries these native addons and goes on without. They are left out here rather than marked as external, for then the executable would look
 * for them where it is started.
 */
const withoutAddons: Bun.BunPlugin = {
  name: "without the addons of ssh2",
  setup(builder) {
    const namespace = LEFT_OUT;
    builder.onResolve({ filter: /^cpu-features$|\/sshcrypto\.node$/ }, (found) => ({ path: found.path, namespace }));
    builder.onLoad({ filter: /./, namespace }, (found) => ({
      loader: "js",
      contents: `module.exports = {}; throw new Error(${JSON.stringify(`${found.path} is left out`)});`,
    }));
  },
};

/**
 * citty finds the verb; what the words after it mean is decided by src/cli/arguments.ts. Its own parsing, of which nothing is used, needs node:util, which takes a tenth
 * of a short command's time to load. What is put in its place answers as citty goes on where it cannot parse a line.
 */
const withoutSecondParsing: Bun.BunPlugin = {
  name: "without the parsing of citty",
  setup(builder) {
    builder.onLoad({ filter: /[/\\]citty[/\\]dist[/\\]index\.mjs$/ }, ({ path: file }) => {
      const [before, after, ...more] = fs.readFileSync(file, "utf8").split('import { parseArgs as parseArgs$1 } from "node:util";');
      if (after === undefined || more.length > 0) throw new Error(`${file} does not import parseArgs as it did`);
      return { loader: "js", contents: `${before}const parseArgs$1 = ({ args }) => ({ values: {}, positionals: args });${after}` };
    });
  },
};

/**
 * The SDK of MCP brings a validator of JSON Schema along, for what a client of before 2026-07-28 answers to a server that asks it for something meanwhile. None here does, and
 * the validator would take a twentieth of the time that `mcp-server` needs to be there.
 */
const withoutSchemaValidator: Bun.BunPlugin = {
  name: "without the validator of the SDK of MCP",
  setup(builder) {
    const namespace = "no-validator";
    builder.onResolve({ filter: /^@modelcontextprotocol\/server\/_shims$/ }, ({ path: module }) => ({ path: module, namespace }));
    builder.onLoad({ filter: /./, namespace }, () => ({
      loader: "js",
      contents:
        'import process from "node:process"; export { process }; export class DefaultJsonSchemaValidator { getValidator() { throw new Error("there is no validator"); } }',
    }));
  },
};

interface Platform {
  readonly target?: Bun.Build.CompileTarget | undefined;
  /** The runtime that becomes part of the executable; else Bun's own, or what it downloads. */
  readonly executablePath?: string;
}

/** @returns the files that the executable was made from, relative to the project */
async function build(outfile: string, builtCommit: string, { target, executablePath }: Platform): Promise<readonly string[]> {
  // Built beside its place and renamed: a running executable keeps its file, and nobody ever starts half of one.
  const temporary = fs.mkdtempSync(path.join(path.dirname(outfile), ".build-"));
  try {
    const built = path.join(temporary, path.basename(outfile));
    // The bytes depend on the way from the working directory to the sources.
    process.chdir(root);
    const result = await Bun.build({
      entrypoints: [path.join(root, "src/main.ts")],
      root,
      target: "bun",
      format: "esm",
      minify: true,
      bytecode: true,
      // Lazily imported modules become chunks of their own, so that a shim loads nothing but itself.
      splitting: true,
      metafile: true,
      plugins: [withoutAddons, withoutSecondParsing, withoutSchemaValidator, loadedTogether(path.join(root, "src"))],
      define: { CLIO_RELAY_COMMIT: JSON.stringify(builtCommit) },
      compile: {
        outfile: built,
        ...(target === undefined ? {} : { target }),
        ...(executablePath === undefined ? {} : { executablePath }),
        // What lies in the user's working directory must not change what the program does.
        autoloadDotenv: false,
        autoloadBunfig: false,
        autoloadTsconfig: false,
        autoloadPackageJson: false,
      },
    });
    const inputs = Object.keys(result.metafile?.inputs ?? {});
    if (inputs.length === 0) throw new Error("Bun named no inputs, so nothing is known about embedded files");
    const addons = inputs.filter((file) => file.endsWith(".node") && !file.startsWith(`${LEFT_OUT}:`));
    if (addons.length > 0) throw new Error(`native addons would be embedded: ${addons.join(", ")}`);
    const validator = inputs.find((file) => file.includes("@modelcontextprotocol/server/dist/ajvProvider"));
    if (validator !== undefined) throw new Error(`${validator} would be part of it`);
    fs.renameSync(built, outfile);
    return inputs;
  } finally {
    process.chdir(started);
    fs.rmSync(temporary, { recursive: true, force: true });
  }
}

async function buildRelease(): Promise<void> {
  const { makeRelease } = await import("./scripts/release/release.ts");
  const builtCommit = commit();
  if (builtCommit.endsWith("+changes"))
    console.error("warning: there are changes that are not committed; nobody can build this release again");
  const sums = await makeRelease({
    root,
    outdir: path.resolve(options.outdir ?? path.join(root, "dist", "release")),
    only: options.target === undefined ? [] : [options.target],
    version: manifest.version,
    commit: builtCommit,
    releasesUrl: options["releases-url"],
    build: (outfile, { target }, executablePath) => build(outfile, builtCommit, { target, executablePath }),
  });
  console.log(sums.join("\n"));
}

async function buildOne(): Promise<void> {
  const outdir = path.resolve(options.outdir ?? path.join(root, "dist"));
  const forWindows = (options.target ?? `bun-${process.platform}`).startsWith("bun-win");
  const name = `clio-relay${options.target === undefined ? "" : options.target.replace(/^bun/, "")}${forWindows ? ".exe" : ""}`;
  const outfile = path.join(outdir, name);
  const stamp = path.join(outdir, `.${name}.sources`);

  const builtCommit = commit();
  const sources = sourcesDigest(builtCommit);
  const current = options["if-stale"] && fs.existsSync(outfile) && fs.existsSync(stamp) && fs.readFileSync(stamp, "utf8") === sources;
  if (!current) {
    fs.mkdirSync(outdir, { recursive: true });
    fs.rmSync(stamp, { force: true });
    await build(outfile, builtCommit, { target: options.target as Bun.Build.CompileTarget | undefined });
    fs.writeFileSync(stamp, sources);
  }

  const shown = path.relative(process.cwd(), outfile);
  if (options.digest) {
    const bytes = fs.readFileSync(outfile);
    console.log(`${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}  ${shown}  ${bytes.length} bytes`);
  } else if (!current) {
    console.log(`built ${shown}, version ${manifest.version}, from ${builtCommit}`);
  }
}

await (options.release ? buildRelease() : buildOne());
