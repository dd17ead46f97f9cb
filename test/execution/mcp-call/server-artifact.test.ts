import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import zlib from "node:zlib";
import type { ServerArtifact } from "../../../src/domain/mcp-call.ts";
import { serverArtifact } from "../../../src/execution/mcp-call/artifact/server-artifact.ts";

let root: string;
beforeAll(() => {
  root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-artifact-")));
});
afterAll(() => fs.rmSync(root, { recursive: true, force: true }));

const of = (file: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<ServerArtifact> => {
  const home = path.join(root, "home");
  const own = { PATH: "/usr/bin:/bin", HOME: home, npm_config_cache: path.join(root, "npm-cache") };
  return serverArtifact({ file, args, env: { ...own, ...env }, workdir: home });
};
const causeOf = async (file: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<string> => {
  const found = await of(file, args, env);
  return found.immutable ? `immutable ${found.kind}` : found.cause;
};

function write(file: string, content: string | Uint8Array, mode = 0o644): string {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, content);
  fs.chmodSync(file, mode);
  return file;
}

const ELF = Buffer.concat([Buffer.from([0x7f, 0x45, 0x4c, 0x46]), Buffer.alloc(64, 1)]);
const digestOf = (bytes: string | Uint8Array, algorithm: "sha256" | "sha512", encoding: "hex" | "base64" | "base64url"): string =>
  new Bun.CryptoHasher(algorithm).update(bytes).digest(encoding);

describe("an executable", () => {
  test("stands for itself, by its own bytes", async () => {
    const file = write(path.join(root, "bin", "science-mcp"), ELF, 0o755);
    const link = path.join(root, "bin", "linked");
    fs.symlinkSync(file, link);
    const expected = { immutable: true, kind: "executable", digest: digestOf(ELF, "sha256", "hex"), path: file, files: 1 };
    expect(await of(file, ["--data", "/x"])).toMatchObject(expected);
    expect(await of(link)).toMatchObject(expected);
    write(file, Buffer.concat([ELF, Buffer.from("x")]), 0o755);
    expect(await of(file)).not.toMatchObject({ digest: expected.digest });
  });

  test("is mutable where others write, where it runs something else, and where it is not there", async () => {
    expect(await causeOf(write(path.join(root, "open"), ELF, 0o775))).toBe("writable");
    for (const [name, cause] of [
      ["npx", "launcher"],
      ["uvx", "launcher"],
      ["env", "launcher"],
      ["docker", "launcher"],
      ["bash", "interpreter"],
      ["perl5.36", "interpreter"],
      ["python3.11", "interpreter"],
      ["node", "interpreter"],
    ])
      expect([name, await causeOf(write(path.join(root, "run", name!), ELF, 0o755), ["pkg==1.2.3"])]).toEqual([name, cause!]);
    // By its own name, too, whatever the link that leads to it is called.
    const python = write(path.join(root, "run", "python3"), ELF, 0o755);
    fs.symlinkSync(python, path.join(root, "run", "my-server"));
    expect(await causeOf(path.join(root, "run", "my-server"), ["-c", "print()"])).toBe("interpreter");
    expect(await causeOf(path.join(root, "nowhere"))).toBe("unreadable");
    expect(await causeOf(write(path.join(root, "fastmcp"), "#!/usr/bin/python3\n", 0o755), ["run", "x.py"])).toBe("launcher");
    expect(await causeOf(write(path.join(root, "a.sh"), "#!/bin/sh\nexec x\n", 0o755))).toBe("script");
    expect(await causeOf(write(path.join(root, "text"), "no first line\n", 0o755))).toBe("script");
  });
});

/** An installation of Python with one distribution, as pip leaves it. */
class Environment {
  readonly prefix = fs.mkdtempSync(path.join(root, "venv-"));
  readonly python = write(path.join(this.prefix, "bin", "python3"), ELF, 0o755);
  readonly site = path.join(this.prefix, "lib", "python3.11", "site-packages");
  readonly script = write(path.join(this.prefix, "bin", "science"), `#!${this.python}\nfrom science.server import main\nmain()\n`, 0o755);
  readonly #files: Record<string, string> = {
    "science/__init__.py": "",
    "science/server.py": "def main(): pass\n",
    'science/"odd", name.py': "x = 1\n",
    "science-1.2.3.dist-info/METADATA": "Name: science\n",
    "../../../bin/science": fs.readFileSync(this.script, "utf8"),
  };

  constructor(extra: readonly string[] = []) {
    for (const [name, content] of Object.entries(this.#files)) if (!name.startsWith("..")) write(path.join(this.site, name), content);
    const lines = Object.entries(this.#files).map(([name, content]) => {
      const shown = /[",]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
      return `${shown},sha256=${digestOf(content, "sha256", "base64url").replaceAll("=", "")},${Buffer.byteLength(content)}`;
    });
    const record = [...lines, "science/__pycache__/server.cpython-311.pyc,,", "science-1.2.3.dist-info/RECORD,,", ...extra];
    write(path.join(this.site, "science-1.2.3.dist-info", "RECORD"), `${record.join("\n")}\n`);
    // Of another one, which has a script of the same beginning.
    write(path.join(this.site, "other-1.dist-info", "RECORD"), "../../../bin/science-too,,\n");
  }
}

describe("an installed distribution of Python", () => {
  test("verifies by its RECORD, as a console script, by its interpreter, and as a module", async () => {
    const { script, python, site } = new Environment();
    const found = await of(script);
    expect(found).toMatchObject({ immutable: true, kind: "python_distribution", name: "science", version: "1.2.3", files: 5 });
    expect(found.path).toBe(path.join(site, "science-1.2.3.dist-info", "RECORD"));
    expect(await of(python, ["-u", script])).toEqual(found);
    expect(await of(python, ["-m", "science.server"])).toEqual(found);
    // The same of another place has the same digest.
    const again = await of(new Environment().script);
    expect(again.immutable).toBe(true);
    const long = new Environment();
    write(long.script, `#!/bin/sh\n'''exec' "${long.python}" "$0" "$@"\n' '''\nimport x\n`, 0o755);
    expect(await causeOf(long.script)).toBe("changed_file");
  });

  test("does not, where a file is another one, is missing, is beside it, or has no digest", async () => {
    const changed = new Environment();
    write(path.join(changed.site, "science", "server.py"), "def main(): evil()\n");
    expect(await causeOf(changed.script)).toBe("changed_file");
    const missing = new Environment();
    fs.rmSync(path.join(missing.site, "science", "server.py"));
    expect(await causeOf(missing.script)).toBe("changed_file");
    const foreign = new Environment();
    write(path.join(foreign.site, "science", "extra.py"), "");
    expect(await causeOf(foreign.script)).toBe("foreign_file");
    expect(await causeOf(new Environment(["science/late.py,,"]).script)).toBe("no_manifest");
    expect(await causeOf(new Environment(["__editable__.science.pth,sha256=x,1"]).script)).toBe("no_manifest");
  });

  test("does not, where something else would be imported in its place", async () => {
    const { script, python, prefix, site } = new Environment();
    const home = path.join(root, "home");
    const shadow = write(path.join(home, "science.py"), "");
    expect(await causeOf(python, ["-m", "science.server"])).toBe("foreign_file");
    expect(await causeOf(script)).toBe("immutable python_distribution");
    fs.rmSync(shadow);
    fs.mkdirSync(path.join(prefix, "bin", "science.d"));
    write(path.join(prefix, "bin", "science.py"), "");
    expect(await causeOf(script)).toBe("foreign_file");
    fs.rmSync(path.join(prefix, "bin", "science.py"));
    for (const name of ["PYTHONPATH", "PYTHONHOME", "LD_PRELOAD"]) expect(await causeOf(script, [], { [name]: "/x" })).toBe("interpreter");
    // Another Python has other distributions.
    const other = write(path.join(fs.mkdtempSync(path.join(root, "usr-")), "bin", "python3"), ELF, 0o755);
    expect(await causeOf(other, [script])).toBe("script");
    // The user's own come before those of an installation, and not before those of a virtual environment.
    write(path.join(home, ".local", "lib", "python3.11", "site-packages", "mine-1.dist-info", "RECORD"), "science/server.py,,\n");
    expect(await causeOf(python, ["-m", "science.server"])).toBe("no_manifest");
    write(path.join(prefix, "pyvenv.cfg"), "");
    expect(await causeOf(python, ["-m", "science.server"])).toBe("immutable python_distribution");
    fs.rmSync(path.join(home, ".local"), { recursive: true });
    expect(site).toStartWith(prefix);
  });

  test("is none where nothing has recorded the script or the module, and where the interpreter is told something else", async () => {
    const { prefix, python } = new Environment();
    const own = write(path.join(prefix, "bin", "own"), `#!${python}\nprint()\n`, 0o755);
    expect(await causeOf(own)).toBe("script");
    expect(await causeOf(python, ["-m", "nothing"])).toBe("interpreter");
    expect(await causeOf(python, ["-c", "print()"])).toBe("interpreter");
    expect(await causeOf(python, ["relative.py"])).toBe("interpreter");
    expect(await causeOf(python, ["-X", "importtime", own])).toBe("interpreter");
  });
});

/** A project with one installed package, and npm's cache. */
class Project {
  readonly root = fs.mkdtempSync(path.join(root, "project-"));
  readonly directory = path.join(this.root, "node_modules", "@s", "tools");
  readonly script = path.join(this.directory, "dist", "index.js");
  readonly link = path.join(this.root, "node_modules", ".bin", "tools");
  readonly tarball: Buffer;
  readonly integrity: string;

  constructor() {
    const files = {
      "package.json": '{"name":"@s/tools","version":"2.0.0"}',
      "dist/index.js": `#!/usr/bin/env node\nrequire('./a')\n// ${this.root}\n`,
      "dist/a.js": "",
    };
    for (const [name, content] of Object.entries(files))
      write(path.join(this.directory, name), content, name.endsWith("index.js") ? 0o755 : 0o644);
    const packed = path.join(this.root, "packed");
    for (const [name, content] of Object.entries(files)) write(path.join(packed, "package", name), content);
    const { stdout } = Bun.spawnSync(["tar", "-C", packed, "-cf", "-", "package"]);
    this.tarball = zlib.gzipSync(stdout);
    this.integrity = `sha512-${digestOf(this.tarball, "sha512", "base64")}`;
    this.lock({ version: "2.0.0", integrity: this.integrity });
    this.cache(this.tarball);
    fs.mkdirSync(path.dirname(this.link), { recursive: true });
    fs.symlinkSync("../@s/tools/dist/index.js", this.link);
  }

  lock(entry: object): void {
    write(path.join(this.root, "node_modules", ".package-lock.json"), JSON.stringify({ packages: { "node_modules/@s/tools": entry } }));
  }

  cache(content: Uint8Array): void {
    const hex = Buffer.from(this.integrity.slice("sha512-".length), "base64").toString("hex");
    write(path.join(root, "npm-cache", "_cacache", "content-v2", "sha512", hex.slice(0, 2), hex.slice(2, 4), hex.slice(4)), content);
  }
}

describe("an installed package of npm", () => {
  test("verifies by its lockfile and its tarball", async () => {
    const project = new Project();
    // env(1) has to find node, whichever it is.
    const node = write(path.join(root, "node-bin", "node"), ELF, 0o755);
    const found = await of(node, [project.script]);
    expect(found).toMatchObject({
      immutable: true,
      kind: "npm_package",
      name: "@s/tools",
      version: "2.0.0",
      files: 3,
      path: project.directory,
    });
    expect(await of(node, ["--no-warnings", project.link])).toEqual(found);
    const linked = await of(project.link, [], { PATH: path.dirname(node) });
    expect(linked).toEqual(found);
  });

  test("does not, where a file is another one or beside it, or lockfile or tarball say nothing", async () => {
    const node = write(path.join(root, "node-bin", "node"), ELF, 0o755);
    const changed = new Project();
    fs.appendFileSync(path.join(changed.directory, "dist", "a.js"), "evil()");
    expect(await causeOf(node, [changed.script])).toBe("changed_file");
    const foreign = new Project();
    write(path.join(foreign.directory, "dist", "b.mjs"), "");
    expect(await causeOf(node, [foreign.script])).toBe("foreign_file");
    const unlocked = new Project();
    unlocked.lock({ version: "2.0.0", link: true, integrity: unlocked.integrity });
    expect(await causeOf(node, [unlocked.script])).toBe("no_manifest");
    const weak = new Project();
    weak.lock({ version: "2.0.0", integrity: "sha1-AAAA" });
    expect(await causeOf(node, [weak.script])).toBe("no_manifest");
    const missing = new Project();
    fs.rmSync(path.join(root, "npm-cache"), { recursive: true });
    expect(await causeOf(node, [missing.script])).toBe("tarball_missing");
    const torn = new Project();
    torn.cache(Buffer.from("not the tarball"));
    expect(await causeOf(node, [torn.script])).toBe("changed_file");
    expect(await causeOf(node, [write(path.join(root, "alone.js"), "")])).toBe("script");
    expect(await causeOf(node, ["-r", "/x.js", torn.script])).toBe("interpreter");
    expect(await causeOf(node, [torn.script], { NODE_OPTIONS: "-r /x.js" })).toBe("interpreter");
  });
});
