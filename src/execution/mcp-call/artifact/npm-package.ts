import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import type { ServerArtifact } from "../../../domain/mcp-call.ts";
import type { JsonObject } from "../../../domain/primitives.ts";
import { canonicalJson, sha256Hex } from "../../../lib/digest.ts";
import { readRegular } from "../../../lib/files/regular-file.ts";
import { isObject } from "../message.ts";
import { hashOf } from "./hash-of.ts";
import { ARTIFACT_BOUNDS, Mutable, ReadSoFar } from "./mutable.ts";

const TARBALL_BYTES = 128 * 1024 * 1024;
const UNPACKED_BYTES = 512 * 1024 * 1024;
/** What Node.js would load. */
const LOADED = /\.(?:[cm]?js|json|node|wasm)$/;

/** A package below a node_modules. */
interface Place {
  /** The directory that has the node_modules. */
  readonly root: string;
  /** Its key in the lockfile: path below the root. */
  readonly key: string;
  readonly directory: string;
}

/**
 * The installed package that a script belongs to.
 *
 * @param script without symbolic links
 * @param cache npm's cache (`npm config get cache`)
 * @throws Mutable
 */
export async function npmPackage(script: string, cache: string): Promise<ServerArtifact> {
  const place = placeOf(script);
  const { version, integrity } = lockedAt(place);
  const tarball = path.join(cache, "_cacache", "content-v2", "sha512", ...contentPath(integrity));
  const files = await unpacked(tarball, integrity);
  const read = new ReadSoFar();
  for (const [name, content] of files) await compare(path.join(place.directory, name), content, read);
  refuseForeign(place.directory, new Set([...files.keys()].map((name) => path.join(place.directory, name))), read);
  const name = place.key.slice(place.key.lastIndexOf("node_modules/") + "node_modules/".length);
  const digest = sha256Hex(canonicalJson({ kind: "npm_package", name, version, integrity }));
  return { immutable: true, kind: "npm_package", digest, path: place.directory, name, version, files: files.size };
}

function placeOf(script: string): Place {
  const found = /^(.*?)\/(node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)\//.exec(script);
  const [, root, key] = found ?? [];
  if (root === undefined || key === undefined) throw new Mutable("script", "a script that belongs to no installed package", script);
  return { root: root === "" ? "/" : root, key, directory: path.join(root, key) };
}

/** What the lockfile says of the package: the hidden one that describes what is there, else the project's (npm, package-lock.json). */
function lockedAt({ root, key, directory }: Place): { readonly version: string; readonly integrity: string } {
  for (const lockfile of [path.join(root, "node_modules", ".package-lock.json"), path.join(root, "package-lock.json")]) {
    const read = readRegular(lockfile, ARTIFACT_BOUNDS.manifestBytes, "follow");
    if (typeof read === "string") continue;
    const entry = entryOf(read.text, key);
    const integrity = typeof entry?.["integrity"] === "string" ? /(?:^|\s)(sha512-[\w+/]+={0,2})/.exec(entry["integrity"])?.[1] : undefined;
    if (entry === null || entry["link"] === true || integrity === undefined) continue;
    return { version: String(entry["version"] ?? ""), integrity };
  }
  throw new Mutable("no_manifest", "no lockfile gives its integrity", directory);
}

function entryOf(lockfile: string, key: string): JsonObject | null {
  try {
    const parsed: unknown = JSON.parse(lockfile);
    const packages = isObject(parsed) ? parsed["packages"] : null;
    const entry = isObject(packages) && Object.hasOwn(packages, key) ? packages[key] : null;
    return isObject(entry) ? entry : null;
  } catch {
    return null;
  }
}

/** Where npm's cache keeps a content (cacache): by its digest in hexadecimal digits. */
function contentPath(integrity: string): string[] {
  const hex = Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex");
  return [hex.slice(0, 2), hex.slice(2, 4), hex.slice(4)];
}

/** Files of a package's tarball by their path in the package. */
async function unpacked(tarball: string, integrity: string): Promise<ReadonlyMap<string, File>> {
  const stat = fs.statSync(tarball, { throwIfNoEntry: false });
  if (!stat?.isFile()) throw new Mutable("tarball_missing", "its tarball is not in npm's cache", tarball);
  if (stat.size > TARBALL_BYTES) throw new Mutable("too_large", `its tarball has ${stat.size} bytes`, tarball);
  if (`sha512-${hashOf(tarball, "sha512", "base64")}` !== integrity)
    throw new Mutable("changed_file", "its tarball in npm's cache has another digest", tarball);
  let entries: Map<string, File>;
  try {
    entries = await new Bun.Archive(zlib.gunzipSync(fs.readFileSync(tarball), { maxOutputLength: UNPACKED_BYTES })).files();
  } catch {
    throw new Mutable("unreadable", "its tarball cannot be unpacked", tarball);
  }
  // The first component is any name (npm strips it).
  return new Map([...entries].map(([name, file]) => [name.slice(name.indexOf("/") + 1), file]));
}

async function compare(installed: string, content: File, read: ReadSoFar): Promise<void> {
  const stat = fs.statSync(installed, { throwIfNoEntry: false });
  if (!stat?.isFile()) throw new Mutable("changed_file", "a file of it is missing", installed);
  read.add(stat.size, installed);
  const same = stat.size === content.size && fs.readFileSync(installed).equals(new Uint8Array(await content.arrayBuffer()));
  if (!same) throw new Mutable("changed_file", "a file of it is not the one of its tarball", installed);
}

/** What lies among its files, and could be loaded as one of them. */
function refuseForeign(directory: string, own: ReadonlySet<string>, read: ReadSoFar): void {
  for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
    const file = path.join(directory, entry.name);
    // Packages of its own have entries of their own in the lockfile.
    if (entry.name === "node_modules") continue;
    if (entry.isDirectory()) refuseForeign(file, own, read);
    else if (!own.has(file) && LOADED.test(entry.name))
      throw new Mutable("foreign_file", "a file beside it was not installed with it", file);
    else if (!own.has(file)) read.add(0, file);
  }
}
