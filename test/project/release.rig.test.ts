import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import Ajv from "ajv";
import addFormats from "ajv-formats";
import manifest from "../../package.json";
import { npmPins } from "../../scripts/lockfiles.ts";
import { BESIDE } from "../../scripts/release/release.ts";
import { fileOf, TARGETS } from "../../scripts/release/targets.ts";
import { sha256Hex } from "../../src/lib/digest.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectories, temporaryDirectory } from "../runner/temporary.ts";
import { HOST_FILE, Installing } from "./installing.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));
const directories = temporaryDirectories();

/** A copy of the project as it is now, its commit included, that nobody changes while releases are made of it. */
function snapshot(directory: string): string {
  const root = path.join(directory, "project");
  const git = (...args: string[]): string => Bun.spawnSync(["git", ...args], { cwd: ROOT }).stdout.toString();
  git("clone", "--quiet", "--shared", "--no-checkout", ROOT, root);
  for (const file of git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")) {
    if (file !== "" && fs.existsSync(path.join(ROOT, file))) fs.cpSync(path.join(ROOT, file), path.join(root, file));
  }
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(root, "node_modules"));
  return root;
}

/** Make a release; `--target` limits it. */
function release(root: string, outdir: string, ...args: string[]): { code: number; stdout: string; stderr: string } {
  const made = Bun.spawnSync([process.execPath, "build.ts", "--release", "--outdir", outdir, ...args], { cwd: root });
  return { code: made.exitCode, stdout: made.stdout.toString(), stderr: made.stderr.toString() };
}

const HOST_TARGET = `bun-${HOST_FILE.slice("clio-relay-".length)}`;

describeWith(["linux", "curl"], "a release", () => {
  const directory = temporaryDirectory();
  const outdir = path.join(directory.path, "release");
  let root: string;
  beforeAll(() => {
    root = snapshot(directory.path);
    const made = release(root, outdir, "--releases-url", "https://releases.example/page");
    if (made.code !== 0) throw new Error(made.stderr);
  });
  afterAll(() => directory[Symbol.dispose]());

  const sums = (): Map<string, string> =>
    new Map(
      fs
        .readFileSync(path.join(outdir, "SHA256SUMS"), "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => [line.slice(66), line.slice(0, 64)]),
    );

  test("has an executable for each platform, and the digest of everything", () => {
    const names = [...TARGETS.map(fileOf), ...Object.keys(BESIDE), "clio-relay-sbom.cdx.json", "install.sh"].sort();
    expect([...sums().keys()]).toEqual(names);
    expect(fs.readdirSync(outdir).sort()).toEqual(["SHA256SUMS", ...names]);
    for (const [name, digest] of sums()) expect(sha256Hex(fs.readFileSync(path.join(outdir, name)))).toBe(digest);
    // ELF, Mach-O of 64 bits, PE.
    for (const target of TARGETS) {
      const magic = fs
        .readFileSync(path.join(outdir, fileOf(target)))
        .subarray(0, 4)
        .toString("hex");
      const expected = target.name.startsWith("linux") ? /^7f454c46/ : target.name.startsWith("darwin") ? /^cffaedfe/ : /^4d5a/;
      expect(magic, target.name).toMatch(expected);
    }
  });

  test("is the same when it is made again, elsewhere", () => {
    const again = path.join(directories(), "again");
    const made = release(root, again, "--target", HOST_TARGET, "--releases-url", "https://releases.example/page");
    expect(made.code, made.stderr).toBe(0);
    const lines = fs.readFileSync(path.join(again, "SHA256SUMS"), "utf8").trimEnd().split("\n");
    expect(lines.map((line) => line.slice(66))).toEqual(
      [HOST_FILE, ...Object.keys(BESIDE), "clio-relay-sbom.cdx.json", "install.sh"].sort(),
    );
    for (const line of lines) expect(sums().get(line.slice(66))).toBe(line.slice(0, 64));
    expect(made.stdout.trimEnd().split("\n")).toEqual(lines);
  });

  test("knows its version and the commit that it was made from", () => {
    const said = Bun.spawnSync([path.join(outdir, HOST_FILE), "version", "--json"]).stdout.toString();
    const head = Bun.spawnSync(["git", "rev-parse", "HEAD"], { cwd: root }).stdout.toString().trim();
    const { version, commit } = JSON.parse(said) as { version: string; commit: string };
    expect(version).toBe(manifest.version);
    expect(head).not.toBe("");
    expect(commit.replace(/\+changes$/, "")).toBe(head);
  });

  test("has the completions that the executable prints", () => {
    for (const [shell, name] of Object.entries({ bash: "clio-relay.bash", zsh: "_clio-relay", fish: "clio-relay.fish" })) {
      const printed = Bun.spawnSync([path.join(outdir, HOST_FILE), "completion", shell]).stdout.toString();
      expect([shell, printed]).toEqual([shell, fs.readFileSync(path.join(outdir, name), "utf8")]);
    }
  });

  test("starts from its bytecode", () => {
    const env = { ...process.env, BUN_JSC_verboseDiskCache: "1" };
    const started = Bun.spawnSync([path.join(outdir, HOST_FILE), "--version"], { env });
    expect(`${started.stdout}${started.stderr}`).toContain("[Disk Cache] Cache hit");
  });

  test("says what is in it, in a form that others read", () => {
    const schemas = fileURLToPath(new URL("res/schema", import.meta.resolve("@cyclonedx/cyclonedx-library/package.json")));
    const schema = (name: string): object =>
      JSON.parse(fs.readFileSync(path.join(schemas, `${name}.SNAPSHOT.schema.json`), "utf8")) as object;
    const ajv = new Ajv({ strict: false, formats: { "idn-email": /@/, "iri-reference": /^\S*$/ } });
    addFormats(ajv);
    for (const name of ["spdx", "jsf-0.82"]) ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
    const validate = ajv.compile(schema("bom-1.6"));
    const bom = JSON.parse(fs.readFileSync(path.join(outdir, "clio-relay-sbom.cdx.json"), "utf8")) as Bom;
    expect(validate(bom), JSON.stringify(validate.errors)).toBe(true);
    // The check can fail.
    expect(validate({ ...bom, components: [{ ...bom.components[0], type: "thing" }] })).toBe(false);

    const names = bom.components.map(({ name }) => name);
    expect(names).toContain("bun");
    for (const name of Object.keys(manifest.dependencies)) if (name !== "@valibot/to-json-schema") expect(names).toContain(name);
    for (const name of [...Object.keys(manifest.devDependencies).filter((name) => name !== "bun"), "cpu-features", "nan"])
      expect(names).not.toContain(name);
    const pins = npmPins(fs.readFileSync(path.join(ROOT, "package-lock.json"), "utf8"));
    for (const { name, version, hashes } of bom.components) {
      const pin = [...pins.values()].find((one) => one.name === name && one.version === version);
      expect(hashes).toEqual([{ alg: "SHA-512", content: Buffer.from(pin!.integrity!.slice(7), "base64").toString("hex") }]);
    }
    const refs = new Set([...bom.components.map((one) => one["bom-ref"]), bom.metadata.component["bom-ref"]]);
    for (const { ref, dependsOn } of bom.dependencies) for (const one of [ref, ...dependsOn]) expect(refs.has(one), one).toBe(true);
    expect(bom.dependencies.find(({ ref }) => ref.includes("/ssh2@"))?.dependsOn.map((ref) => ref.split("@")[0])).toEqual([
      "pkg:npm/asn1",
      "pkg:npm/bcrypt-pbkdf",
    ]);
  });

  test("refuses a target that is none, and leaves the release before as it is", () => {
    const before = fs.readFileSync(path.join(outdir, "SHA256SUMS"), "utf8");
    const made = release(root, outdir, "--target", "bun-plan9-mips");
    expect(made.code).toBe(1);
    expect(made.stderr).toContain("no release is made for bun-plan9-mips; there are bun-linux-x64");
    expect(fs.readFileSync(path.join(outdir, "SHA256SUMS"), "utf8")).toBe(before);
    expect(fs.readdirSync(path.dirname(outdir)).filter((name) => name.startsWith(".release-"))).toEqual([]);
  });

  test("is installed from its page by its own installer, and works", async () => {
    await using site = new Installing();
    const script = fs.readFileSync(path.join(outdir, "install.sh"), "utf8");
    expect(script).toContain(`RELEASED_VERSION='${manifest.version}'\nRELEASES_URL='https://releases.example/page'\n`);
    for (const name of ["SHA256SUMS", HOST_FILE]) site.files.set(`/${name}`, fs.readFileSync(path.join(outdir, name)));
    const run = await site.run({ script, args: ["--version", manifest.version] });
    expect(run, run.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining(`clio-relay ${manifest.version} is installed`) });
    const launcher = path.join(site.home, ".local/bin/clio-relay");
    const init = Bun.spawnSync([launcher, "init", "--json"], { env: { HOME: site.home, PATH: process.env.PATH ?? "" } });
    expect(init.exitCode, init.stderr.toString()).toBe(0);
    expect(JSON.parse(init.stdout.toString())).toMatchObject({ cluster_names: ["local"] });
  });
});

interface Bom {
  readonly metadata: { readonly component: { readonly "bom-ref": string } };
  readonly components: readonly {
    readonly "bom-ref": string;
    readonly name: string;
    readonly version: string;
    readonly hashes: readonly { readonly alg: string; readonly content: string }[];
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}
