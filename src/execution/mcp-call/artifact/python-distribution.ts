import fs from "node:fs";
import path from "node:path";
import type { ServerArtifact } from "../../../domain/mcp-call.ts";
import { canonicalJson, sha256Hex } from "../../../lib/digest.ts";
import { readRegular } from "../../../lib/files/regular-file.ts";
import { hashOf } from "./hash-of.ts";
import { ARTIFACT_BOUNDS, Mutable, ReadSoFar } from "./mutable.ts";

/** One installed distribution (Python packaging, Recording installed projects). */
interface Distribution {
  /** Its `NAME-VERSION.dist-info`. */
  readonly directory: string;
  readonly record: string;
}

/** Entries of RECORD that have no digest by its own rule, or are made by the interpreter. */
const WITHOUT_DIGEST = /(?:\.dist-info\/RECORD(?:\.jws|\.p7s)?|(?:^|\/)__pycache__\/[^/]+\.pyc)$/;
/** What an import of a package's directory would find. */
const IMPORTED = /\.(?:py|pyc|so|pyd)$/;
const EDITABLE = /__editable__|\.egg-link$|(?:^|\/)[^/]+\.pth$/;

/** Where Python is, and where it looks. */
export interface PythonAround {
  /** Its program, by the name that it is called by: in a virtual environment that is a link. */
  readonly interpreter: string;
  readonly home: string;
  readonly workdir: string;
}

/** The distribution that has installed a console script. @throws Mutable */
export function consoleScript(file: string, around: PythonAround): ServerArtifact {
  const real = fs.realpathSync(file);
  const name = path.basename(real);
  const isOf = (site: string, record: string): boolean =>
    record.includes(`/${name},`) &&
    entriesOf(record).some((entry) => entry.path.endsWith(`/${name}`) && isSame(path.resolve(site, entry.path), real));
  for (const site of sitesOf(around)) {
    const found = distributions(site).find(({ record }) => isOf(site, record));
    // Its directory is the first that is looked in (sys.path).
    if (found !== undefined) return verified(site, found, path.dirname(real));
  }
  throw new Mutable("script", "a script that no distribution of its Python has recorded", file);
}

/** The distribution that has installed a module. @throws Mutable */
export function moduleOf(module: string, around: PythonAround): ServerArtifact {
  const place = module.replaceAll(".", "/");
  const wanted = new Set([`${place}.py`, `${place}/__main__.py`]);
  for (const site of sitesOf(around)) {
    const found = distributions(site).find(
      ({ record }) => record.includes(place) && entriesOf(record).some((entry) => wanted.has(entry.path)),
    );
    // With -m, the working directory is the first that is looked in.
    if (found !== undefined) return verified(site, found, around.workdir);
  }
  throw new Mutable("interpreter", `no installed distribution has recorded the module ${module.slice(0, 200)}`, around.interpreter);
}

const isSame = (one: string, real: string): boolean => {
  try {
    return fs.realpathSync(one) === real;
  } catch {
    return false;
  }
};

/** Where a Python's distributions lie, in the order in which it looks: the user's own come first, but for virtual environments. */
function* sitesOf({ interpreter, home }: PythonAround): Generator<string> {
  const prefix = path.dirname(path.dirname(interpreter));
  const isVirtual = fs.existsSync(path.join(prefix, "pyvenv.cfg"));
  for (const place of isVirtual ? [prefix] : [path.join(home, ".local"), prefix]) {
    for (const lib of ["lib", "lib64", "local/lib"]) {
      const directory = path.join(place, lib);
      for (const name of namesIn(directory).filter((one) => /^(?:python|pypy)[\d.]*$/.test(one))) {
        for (const packages of ["site-packages", "dist-packages"]) {
          const site = path.join(directory, name, packages);
          if (fs.existsSync(site)) yield site;
        }
      }
    }
  }
}

const namesIn = (directory: string): string[] => {
  try {
    return fs.readdirSync(directory);
  } catch {
    return [];
  }
};

const distributions = (site: string): Distribution[] =>
  namesIn(site)
    .filter((name) => name.endsWith(".dist-info"))
    .flatMap((directory) => {
      const read = readRegular(path.join(site, directory, "RECORD"), ARTIFACT_BOUNDS.manifestBytes, "follow");
      return typeof read === "string" ? [] : [{ directory, record: read.text }];
    });

interface Entry {
  readonly path: string;
  readonly hash: string;
}

/** Lines of RECORD: path, digest, size; a path may be quoted (RFC 4180). */
const entriesOf = (record: string): Entry[] =>
  record.split(/\r?\n/).flatMap((line) => {
    const fields = /^(?:"((?:[^"]|"")*)"|([^,]*)),([^,]*),/.exec(line);
    return fields === null ? [] : [{ path: (fields[1] ?? fields[2] ?? "").replaceAll('""', '"'), hash: fields[3] ?? "" }];
  });

function verified(site: string, { directory, record }: Distribution, first: string): ServerArtifact {
  const place = path.join(site, directory);
  const [, name = "", version = ""] = /^(.+?)-(.+)\.dist-info$/.exec(directory) ?? [];
  const entries = entriesOf(record);
  if (entries.some((entry) => EDITABLE.test(entry.path))) throw new Mutable("no_manifest", "it is installed as editable", place);
  const read = new ReadSoFar();
  for (const entry of entries) {
    if (entry.hash === "" && WITHOUT_DIGEST.test(entry.path)) continue;
    const [, algorithm, digest] = /^(sha256)=([\w-]+)$/.exec(entry.hash) ?? [];
    if (algorithm === undefined) throw new Mutable("no_manifest", `RECORD has no SHA-256 of ${entry.path.slice(0, 500)}`, place);
    const file = path.resolve(site, entry.path);
    const stat = fs.statSync(file, { throwIfNoEntry: false });
    if (!stat?.isFile()) throw new Mutable("changed_file", "a file of it is missing", file);
    read.add(stat.size, place);
    if (hashOf(file, "sha256", "base64url") !== digest)
      throw new Mutable("changed_file", "a file of it is not the one that was installed", file);
  }
  refuseForeign(site, entries);
  refuseShadow(first, site, entries);
  const manifest = sha256Hex(record);
  const digest = sha256Hex(canonicalJson({ kind: "python_distribution", name, version, manifest }));
  return { immutable: true, kind: "python_distribution", digest, path: path.join(place, "RECORD"), name, version, files: read.files };
}

/** What lies beside its files, and would be imported as one of them. */
function refuseForeign(site: string, entries: readonly Entry[]): void {
  const own = new Set(entries.map((entry) => path.resolve(site, entry.path)));
  const packages = new Set(
    entries.filter((entry) => entry.path.endsWith(".py")).map((entry) => path.dirname(path.resolve(site, entry.path))),
  );
  packages.delete(path.resolve(site));
  for (const directory of packages) {
    for (const name of namesIn(directory)) {
      const file = path.join(directory, name);
      if (IMPORTED.test(name) && !own.has(file)) throw new Mutable("foreign_file", "a file beside it was not installed with it", file);
    }
  }
}

/** What would be imported in place of its own packages, because it is looked at first. */
function refuseShadow(first: string, site: string, entries: readonly Entry[]): void {
  if (path.resolve(first) === path.resolve(site)) return;
  const tops = new Set(entries.map((entry) => entry.path.split("/")[0]!).filter((top) => top !== ".." && !top.includes(".dist-info")));
  for (const top of tops) {
    const module = top.replace(/\.py$/, "");
    for (const name of [module, `${module}.py`]) {
      const file = path.join(first, name);
      const stat = fs.statSync(file, { throwIfNoEntry: false });
      // The script itself may be called as its package is.
      const counts = name === module ? stat?.isDirectory() : stat?.isFile();
      if (counts === true) throw new Mutable("foreign_file", "it would be imported in place of what was installed", file);
    }
  }
}
