import fs from "node:fs";
import path from "node:path";
import { npmPins } from "../lockfiles.ts";

interface Manifest {
  readonly version: string;
  readonly description?: string;
  readonly license?: string;
  /** The form of old packages. */
  readonly licenses?: readonly { readonly type: string }[];
  readonly dependencies?: Readonly<Record<string, string>>;
}

export interface SbomOptions {
  readonly root: string;
  /** The files that the executable was made from, relative to `root` with slashes, as Bun's metafile names them. */
  readonly inputs: readonly string[];
  readonly version: string;
  readonly commit: string;
}

/**
 * A bill of materials (CycloneDX 1.6, JSON; ECMA-424) of the executable: the packages that are really in it, by the bundler's own account, with the
 * digests that the lockfile pins, and the runtime. Says the same for the same source: there is neither a time nor a random number in it.
 *
 * @throws Error for a package that the lockfile does not know
 */
export function sbom({ root, inputs, version, commit }: SbomOptions): string {
  const pins = npmPins(fs.readFileSync(path.join(root, "package-lock.json"), "utf8"));
  const places = [...new Set([...inputs.map(packageOf).filter((place) => place !== null), "bun"])].sort();
  const own = readManifest(root);
  const components = places.map((place) => {
    const pin = pins.get(place);
    if (pin === undefined || pin.integrity === null) throw new Error(`package-lock.json gives no digest of ${place}`);
    const manifest = readManifest(path.join(root, directoryOf(place)));
    return {
      type: place === "bun" ? "platform" : "library",
      "bom-ref": refOf(pin),
      name: pin.name,
      version: pin.version,
      ...(manifest.description === undefined ? {} : { description: manifest.description }),
      hashes: [hashOf(pin.integrity)],
      licenses: [licenseOf(manifest, place)],
      purl: refOf(pin),
    };
  });
  const self = `pkg:generic/clio-relay@${version}`;
  const refs = new Map(places.map((place) => [place, refOf(pins.get(place)!)]));
  const needs = (manifest: Manifest, below: string): string[] =>
    Object.keys(manifest.dependencies ?? {})
      .map((name) => refs.get(`${below}/${name}`) ?? refs.get(name))
      .filter((ref) => ref !== undefined)
      .sort();
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": self,
        name: "clio-relay",
        version,
        licenses: [licenseOf(own, "clio-relay")],
        purl: self,
        properties: [{ name: "commit", value: commit }],
      },
    },
    components,
    dependencies: [
      { ref: self, dependsOn: [...needs(own, ""), refs.get("bun")!].sort() },
      ...places.map((place) => ({ ref: refs.get(place)!, dependsOn: needs(readManifest(path.join(root, directoryOf(place))), place) })),
    ],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** The place of the package that a file belongs to, as lockfiles name it: `a/b` is b in the node_modules of a. Null for our own files. */
function packageOf(input: string): string | null {
  const parts = input.split("node_modules/").slice(1);
  if (parts.length === 0) return null;
  return parts.map((part) => /^(?:@[^/]+\/)?[^/]+/.exec(part)![0]).join("/");
}

const directoryOf = (place: string): string => (place.match(/(?:@[^/]+\/)?[^/]+/g) ?? []).map((name) => `node_modules/${name}`).join("/");

const readManifest = (directory: string): Manifest => JSON.parse(fs.readFileSync(path.join(directory, "package.json"), "utf8")) as Manifest;

/** A package URL; the scope's @ is written as %40. */
const refOf = ({ name, version }: { readonly name: string; readonly version: string }): string =>
  `pkg:npm/${name.replace(/^@/, "%40")}@${version}`;

/** From the form of Subresource Integrity, `sha512-<base64>`. */
function hashOf(integrity: string): { alg: string; content: string } {
  const [algorithm, digest] = integrity.split("-", 2);
  if (algorithm !== "sha512" || digest === undefined) throw new Error(`an unexpected digest: ${integrity}`);
  return { alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") };
}

function licenseOf(manifest: Manifest, place: string) {
  const license = manifest.license ?? manifest.licenses?.[0]?.type;
  if (license === undefined) throw new Error(`${place} names no license`);
  return /^[\w.+-]+$/.test(license) ? { license: { id: license } } : { expression: license };
}
