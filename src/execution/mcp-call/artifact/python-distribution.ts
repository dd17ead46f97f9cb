import fs from "node:fs";
import path from "node:path";
import type { ServerArtifact } from "../../../domain/mcp-call.ts";
import { canonicalJson, sha256Hex } from "../../../lib/digest.ts";
import { readRegular } from "../../../lib/regular-file.ts";
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

/** The distribution that has installed a console script. @throws Mutable */
export function consoleScript(file: string, interpreter: string, home: string): ServerArtifact {
  const real = fs.realpathSync(file);
  const name = path.basename(real);
  const prefixes = [prefixOf(interpreter), prefixOf(file), prefixOf(real), path.join(home, ".local")];
  for (const site of sitesOf(prefixes)) {
    const found = distributions(site).find(
      ({ record }) =>
        record.includes(`/${name},`) &&
        entriesOf(record).some((entry) => entry.path.endsWith(`/${name}`) && isSame(path.resolve(site, entry.path), real)),
    );
    if (found !== undefined) return verified(site, found);
  }
  throw new Mutable("script", "a script that no installed distribution has recorded", file);
}

/** The distribution that has installed a module. @throws Mutable */
export function moduleOf(module: string, interpreter: string, home: string): ServerArtifact {
  const place = module.replaceAll(".", "/");
  const wanted = new Set([`${place}.py`, `${place}/__main__.py`]);
  for (const site of sitesOf([prefixOf(interpreter), path.join(home, ".local")])) {
    const found = distributions(site).find(
      ({ record }) => record.includes(place) && entriesOf(record).some((entry) => wanted.has(entry.path)),
    );
    if (found !== undefined) return verified(site, found);
  }
  throw new Mutable("interpreter", `no installed distribution has recorded the module ${module.slice(0, 200)}`, interpreter);
}

const prefixOf = (program: string): string => path.dirname(path.dirname(program));

const isSame = (one: string, real: string): boolean => {
  try {
    return fs.realpathSync(one) === real;
  } catch {
    return false;
  }
};

/** Where distributions of an installation lie. */
function* sitesOf(prefixes: readonly string[]): Generator<string> {
  const seen = new Set<string>();
  for (const prefix of prefixes) {
    for (const lib of ["lib", "lib64", "local/lib"]) {
      const directory = path.join(prefix, lib);
      for (const name of namesIn(directory).filter((one) => /^(?:python|pypy)[\d.]*$/.test(one))) {
        for (const packages of ["site-packages", "dist-packages"]) {
          const site = path.join(directory, name, packages);
          if (seen.has(site) || !fs.existsSync(site)) continue;
          seen.add(site);
          yield site;
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

function verified(site: string, { directory, record }: Distribution): ServerArtifact {
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
