import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { unreadableFile } from "../../config/named-file.ts";
import { RelayError } from "../../domain/errors.ts";
import { sha256Hex } from "../../lib/digest.ts";
import { isErrno, makePrivateDirectory, writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { type InstalledFrp, installedFrps, ownPlatform, programFile, recordInstalled } from "./programs.ts";
import { FRP_VERSION, PINNED, type PinnedRelease, releaseUrl } from "./release.ts";
import { kindOf, type Programs, unpack } from "./unpack.ts";

const MAX_BYTES = 128 * 1024 * 1024;
const FETCH_MS = 10 * 60_000;
const TRIAL_MS = 10_000;

export interface FrpInstallation {
  /** As frp names it: OS_ARCHITECTURE. */
  readonly platform: string;
  /** A file (absolute) or an address in place of the release's. */
  readonly from: string | null;
  /** What it has to have, or the frpc in it, in place of what is pinned. */
  readonly sha256: string | null;
  /** Where programs lie. */
  readonly directory: string;
  readonly fetch: (url: string, init: { signal: AbortSignal }) => Promise<Response>;
  readonly signal: AbortSignal;
  /** What is known of releases, by the kind of machine; left out: PINNED. */
  readonly pins?: Readonly<Record<string, PinnedRelease>>;
}

export interface FrpInstalled extends InstalledFrp {
  /** `kept`: it was there already. */
  readonly state: "installed" | "kept";
  readonly paths: { readonly frpc: string; readonly frps: string | null };
}

/**
 * Have a frpc (and a frps, where one comes with it) for a kind of machine, under the SHA-256 of its bytes. Nothing is kept, and nothing is started, that has not the digest that
 * is pinned, or given.
 *
 * @throws RelayError platform_unsupported where nothing is pinned and nothing given; digest_mismatch; local_file_missing, local_file_unusable; download_failed; artifact_unfit
 */
export async function installFrp(request: FrpInstallation): Promise<FrpInstalled> {
  const { platform, from, sha256, directory } = request;
  const pinned = pinOf(request);
  const wanted = sha256 ?? pinned?.frpc;
  const there = installedFrps(directory).find((one) => one.platform === platform);
  // What somebody trusted by a digest of his own stays until another one is named.
  const chosen = from === null && sha256 === null && there?.verified.by === "given";
  if (there !== undefined && (chosen || there.frpc === wanted || there.verified.sha256 === wanted) && isWhole(directory, there)) {
    return { ...there, state: "kept", paths: pathsOf(directory, there) };
  }
  if (pinned === undefined && (from === null || sha256 === null)) throw unpinned(platform);
  const place = from ?? releaseUrl(pinned!);
  const isUrl = /^https?:\/\//.test(place);
  const bytes = isUrl ? await download(place, request) : readFile(place);
  const source = isUrl ? shownUrl(place) : place;
  const { programs, verified } = await verify(bytes, source, request);
  const one: InstalledFrp = {
    platform,
    frpc: putBy(directory, "frpc", programs.frpc),
    frps: programs.frps === null ? null : putBy(directory, "frps", programs.frps),
    version: null,
    source: source.slice(0, 4_096),
    verified,
  };
  const tried = { ...one, version: platform === ownPlatform() ? trial(pathsOf(directory, one).frpc) : null };
  recordInstalled(directory, tried);
  return { ...tried, state: "installed", paths: pathsOf(directory, tried) };
}

const pinOf = ({ platform, pins = PINNED }: FrpInstallation): PinnedRelease | undefined => pins[platform];

const pathsOf = (directory: string, { frpc, frps }: InstalledFrp): FrpInstalled["paths"] => ({
  frpc: programFile(directory, frpc, "frpc"),
  frps: frps === null ? null : programFile(directory, frps, "frps"),
});

/** How what is there already is taken. */
const INSTALL = "clio-relay install-frp --from FILE";

const unpinned = (platform: string): RelayError =>
  new RelayError(
    "platform_unsupported",
    `of frp ${FRP_VERSION} for ${platform} no SHA-256 is known here (known: ${Object.keys(PINNED).join(", ")})`,
    { platform, version: FRP_VERSION, known: Object.keys(PINNED) },
    `${INSTALL} --platform ${platform.replace("_", "-")} --sha256 HEX, of an archive or of frpc itself, as somebody whom you trust says`,
  );

function isWhole(directory: string, { frpc, frps }: InstalledFrp): boolean {
  const has = (digest: string, name: "frpc" | "frps"): boolean =>
    sha256Hex(fs.readFileSync(programFile(directory, digest, name))) === digest;
  try {
    return has(frpc, "frpc") && (frps === null || has(frps, "frps"));
  } catch (error) {
    if (isErrno(error, "ENOENT")) return false;
    throw error;
  }
}

function readFile(file: string): Uint8Array {
  try {
    const stat = fs.statSync(file);
    if (!stat.isFile()) throw new Error("it is no regular file");
    if (stat.size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`);
    return fs.readFileSync(file);
  } catch (cause) {
    throw unreadableFile(file, cause);
  }
}

/** An address as it may be shown: a name and a password in it are left out (RFC 3986, section 3.2.1), and so is what stands behind the path, which may be a token. */
function shownUrl(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    return `${protocol}//${host}${pathname}`;
  } catch {
    return "that address";
  }
}

/** @throws RelayError download_failed */
async function download(url: string, { fetch, signal }: FrpInstallation): Promise<Uint8Array> {
  const shown = shownUrl(url);
  const failed = (why: string): RelayError =>
    new RelayError("download_failed", `${shown} cannot be fetched: ${why}`, { url: shown }, `fetch it by other means, then ${INSTALL}`);
  try {
    const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(FETCH_MS)]) });
    if (!response.ok || response.body === null) throw failed(`the answer is ${response.status}`);
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of response.body) {
      size += part.length;
      if (size > MAX_BYTES) throw failed(`it has more than ${MAX_BYTES} bytes`);
      parts.push(part);
    }
    return Buffer.concat(parts);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RelayError) throw error;
    // What fetch says may repeat the address.
    throw failed(typeof (error as { code?: unknown }).code === "string" ? (error as { code: string }).code : (error as Error).name);
  }
}

/** The programs in what was fetched, once its digest, or that of its frpc, is the right one. */
async function verify(
  bytes: Uint8Array,
  source: string,
  request: FrpInstallation,
): Promise<{ programs: Programs; verified: InstalledFrp["verified"] }> {
  const { sha256, directory } = request;
  const pinned = sha256 === null ? pinOf(request)! : null;
  const by = sha256 === null ? "pinned" : "given";
  const digest = sha256Hex(bytes);
  const kind = kindOf(bytes);
  if (kind === "other")
    throw new RelayError("artifact_unfit", `${source} is neither an archive of a release of frp nor a program`, { source });
  const wanted = sha256 ?? (kind === "program" ? pinned!.frpc : (pinned!.archive_sha256 ?? pinned!.frpc));
  if (kind === "program") {
    if (digest !== wanted) throw mismatch(source, digest, wanted);
    return { programs: { frpc: bytes, frps: null }, verified: { what: "binary", sha256: digest, by } };
  }
  const whole = digest === wanted;
  // A digest that was given may be that of the program inside.
  if (!whole && pinned !== null && pinned.archive_sha256 !== null) throw mismatch(source, digest, wanted);
  const programs = await inScratch(directory, (scratch) => unpack(bytes, kind, scratch));
  if (whole) return { programs, verified: { what: "archive", sha256: digest, by } };
  const inner = sha256Hex(programs.frpc);
  if (inner !== wanted) throw mismatch(source, digest, wanted, inner);
  // Of what comes with it somebody may have said nothing.
  const known = programs.frps !== null && pinned !== null && sha256Hex(programs.frps) === pinned.frps;
  return { programs: { frpc: programs.frpc, frps: known ? programs.frps : null }, verified: { what: "binary", sha256: inner, by } };
}

const mismatch = (source: string, digest: string, expected: string, frpc?: string): RelayError =>
  new RelayError(
    "digest_mismatch",
    `${source} has the SHA-256 ${digest}${frpc === undefined ? "" : `, the frpc in it ${frpc}`}, and not ${expected}`,
    { source, digest, expected: [expected], ...(frpc === undefined ? {} : { frpc }) },
    `fetch it anew; one that is meant to be another has its digest from somebody whom you trust: ${INSTALL} --sha256 HEX`,
  );

async function inScratch<T>(directory: string, work: (scratch: string) => Promise<T>): Promise<T> {
  makePrivateDirectory(directory);
  const scratch = fs.mkdtempSync(path.join(directory, ".unpack-"));
  try {
    return await work(scratch);
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

function putBy(directory: string, name: "frpc" | "frps", bytes: Uint8Array): string {
  const digest = sha256Hex(bytes);
  const file = programFile(directory, digest, name);
  makePrivateDirectory(path.dirname(file));
  writeFileAtomic(file, bytes, { mode: 0o500 });
  return digest;
}

/** @throws RelayError artifact_unfit where it does not start */
function trial(frpc: string): string {
  const { status, stdout, error } = spawnSync(frpc, ["--version"], {
    encoding: "utf8",
    timeout: TRIAL_MS,
    env: {},
    stdio: ["ignore", "pipe", "ignore"],
  });
  const version = /\d+\.\d+\.\d+\S{0,32}/.exec(stdout ?? "")?.[0];
  if (status === 0 && version !== undefined) return version;
  throw new RelayError("artifact_unfit", `that frpc does not start here: ${error?.message ?? `it ended with ${status}`}`, { path: frpc });
}
