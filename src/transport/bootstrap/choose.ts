import { RelayError } from "../../domain/errors.ts";
import type { Artifact, Platform } from "./artifact.ts";
import type { HostProbe } from "./probe.ts";

/** The oldest glibc that the executables start with. */
const GLIBC = { major: 2, minor: 17 } as const;

/**
 * Refuse a host on which nothing could be installed, before anything is.
 *
 * @throws RelayError host_unfit with a `reason`: platform, libc, foreign, read_only, unwritable, noexec
 */
export function refuseUnfit({ os, machine, machine_name, libc, libc_version, storage, installation }: HostProbe): void {
  if (os !== "Linux" || machine === "other")
    throw unfit("platform", `workers run on Linux on x64 and arm64; that host is ${os} on ${machine_name}`);
  if (libc === "glibc" && isOlder(libc_version)) {
    throw unfit("libc", `that host has glibc ${libc_version}; ${GLIBC.major}.${GLIBC.minor} is the oldest that will do`);
  }
  if (installation.foreign !== null)
    throw unfit("foreign", `${installation.foreign} is in the way: it is no symbolic link`, "move it away");
  if (!storage.writable) {
    const full = storage.free_bytes !== null && storage.free_bytes < 4_096;
    if (full) {
      throw new RelayError("storage_admission_refused", `there is no room left where ${storage.root} would lie`, { reason: "no_room" });
    }
    throw unfit(storage.read_only ? "read_only" : "unwritable", `${storage.place} cannot be written to`, ELSEWHERE);
  }
  if (storage.starts === false)
    throw unfit("noexec", `programs that lie in ${storage.place} cannot be started (noexec, most of the time)`, ELSEWHERE);
}

/** What a person can do about a place that does not take an installation. */
export const ELSEWHERE = "another place: clio-relay cluster add NAME --core-dir DIR";

const unfit = (reason: string, message: string, hint?: string): RelayError => new RelayError("host_unfit", message, { reason }, hint);

function isOlder(version: string | null): boolean {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version ?? "") ?? [];
  if (major === undefined || minor === undefined) return false;
  return Number(major) < GLIBC.major || (Number(major) === GLIBC.major && Number(minor) < GLIBC.minor);
}

/** The file of a release that a host needs. */
export function neededFile({ machine, libc, avx2 }: Pick<HostProbe, "machine" | "libc" | "avx2">): string {
  const variant = libc === "musl" ? "-musl" : machine === "x64" && !avx2 ? "-baseline" : "";
  return `clio-relay-linux-${machine}${variant}`;
}

/**
 * The first of some executables that fits a host.
 *
 * @throws RelayError artifact_unfit, which names the platform and the file that is needed
 */
export function chooseArtifact(probe: HostProbe, candidates: readonly Artifact[]): Artifact {
  const found = candidates.find(({ platform }) => fits(platform, probe));
  if (found !== undefined) return found;
  const needed = neededFile(probe);
  throw new RelayError(
    "artifact_unfit",
    `that host is ${probe.os} on ${probe.machine_name} with ${probe.libc}${probe.machine === "x64" && !probe.avx2 ? ", without AVX2" : ""}: ` +
      `${candidates.length === 0 ? "no executable is at hand" : `${candidates.map(({ file }) => file).join(", ")} does not run there`}`,
    { needed, machine: probe.machine, libc: probe.libc, avx2: probe.avx2 },
    `--artifact FILE with ${needed} of a release`,
  );
}

function fits({ os, machine, libc, baseline }: Platform, probe: HostProbe): boolean {
  if (os !== "linux" || machine !== probe.machine) return false;
  // What kind of library an unknown one is shows in the trial.
  if (probe.libc !== "unknown" && libc !== probe.libc) return false;
  return machine !== "x64" || probe.avx2 || baseline === true;
}

/**
 * Compare versions by their numbers (semver.org, 11), what follows them left out: below 0 when `a` is older. Null where one of them is none.
 */
export function compareVersions(a: string, b: string): number | null {
  const [one, two] = [a, b].map((text) => /^(\d+)\.(\d+)\.(\d+)/.exec(text)?.slice(1).map(Number));
  if (one === undefined || two === undefined) return null;
  for (let index = 0; index < 3; index++) if (one[index] !== two[index]) return one[index]! - two[index]!;
  return 0;
}
