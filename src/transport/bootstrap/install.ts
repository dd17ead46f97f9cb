import { RelayError } from "../../domain/errors.ts";
import { type Clock, timestamp } from "../../lib/waiting/clock.ts";
import type { Answer } from "../script/frame.ts";
import layout from "../script/layout.sh" with { type: "text" };
import lock from "../script/lock.sh" with { type: "text" };
import { accepted } from "../script/refusal.ts";
import type { Remote, Script } from "../script/remote.ts";
import type { Artifact } from "./artifact.ts";
import { ELSEWHERE } from "./choose.ts";
import installText from "./install.sh" with { type: "text" };
import prepareText from "./prepare.sh" with { type: "text" };
import receiveText from "./receive.sh" with { type: "text" };
import rollbackText from "./rollback.sh" with { type: "text" };
import uninstallText from "./uninstall.sh" with { type: "text" };

const PREPARE: Script = { name: "prepare", text: layout + lock + prepareText };
const RECEIVE: Script = { name: "receive", text: layout + receiveText };
const INSTALL: Script = { name: "install", text: layout + lock + installText };
const ROLLBACK: Script = { name: "rollback", text: `${layout}${lock}${installText}\n${rollbackText}` };
const UNINSTALL: Script = { name: "uninstall", text: layout + lock + uninstallText };

/** Uploads go on at multiples of this. */
const BLOCK_BYTES = 1024 * 1024;
/** Room that has to be left when the executable is there. */
const SPARE_BYTES = 16 * 1024 * 1024;
const SPARE_INODES = 16;
/** How often a send that failed is taken up again while the connection is up. */
const SENDS = 3;
/** How many versions are kept besides the current and the previous one, and those that run. */
const KEPT = 2;
const DIGEST_MS = 10 * 60_000;
const SEND_MS = 30 * 60_000;

/** Where an installation is changed. */
export interface Place {
  /** The installation's directory on the host; null for the usual place. */
  readonly home: string | null;
  /** Where its jobs write; null, or left out: below the installation's. */
  readonly spool?: string | null;
  readonly signal: AbortSignal;
}

export interface Prepared {
  readonly installed: boolean;
  /** What is there of an upload, in bytes. */
  readonly received: number;
  readonly freeBytes: number | null;
  readonly freeInodes: number | null;
}

/**
 * Make the installation's directories, put right what a run that was cut left behind, and say what is there of a version.
 *
 * @throws RelayError host_unfit, state_conflict while another run changes the installation, and as Remote.run
 */
export async function prepare(remote: Remote, digest: string, { home, signal }: Place): Promise<Prepared> {
  const answer = await remote.run(PREPARE, { values: { a_digest: digest, a_home: home ?? "" }, signal, withinMs: DIGEST_MS });
  accepted(answer, PREPARE);
  const kib = answer.count("free_kib");
  return {
    installed: answer.last("installed") === "yes",
    received: answer.count("received") ?? 0,
    freeBytes: kib === null ? null : kib * 1_024,
    freeInodes: answer.count("free_inodes"),
  };
}

/**
 * Send an executable, from where an earlier upload was cut.
 *
 * @param onSent called with the bytes that are on their way or there, of the artifact's size
 * @returns the bytes that went over the connection
 * @throws RelayError storage_admission_refused before a byte is sent where there is no room, and when the room ends meanwhile; as Remote.feed
 */
export async function send(
  remote: Remote,
  artifact: Artifact,
  prepared: Prepared,
  { home, signal }: Place,
  onSent: (bytes: number) => void = () => undefined,
): Promise<number> {
  refuseWithoutRoom(artifact, prepared);
  let { received } = prepared;
  let sent = 0;
  for (let left = SENDS; ; left--) {
    // What is there of the last block may not be all of it.
    const skip = Math.floor(Math.min(received, artifact.size) / BLOCK_BYTES);
    const from = received === artifact.size ? artifact.size : skip * BLOCK_BYTES;
    const counted = async function* (): AsyncGenerator<Uint8Array> {
      let at = from;
      onSent(at);
      for await (const chunk of from === artifact.size ? nothing() : artifact.read(from)) {
        const { length } = chunk;
        yield chunk;
        at += length;
        sent += length;
        onSent(at);
      }
    };
    const values = {
      a_digest: artifact.digest,
      a_home: home ?? "",
      a_block: String(BLOCK_BYTES),
      a_skip: String(skip),
      a_size: String(artifact.size),
    };
    const answer = await remote.feed(RECEIVE, counted(), { values, signal, withinMs: SEND_MS });
    if (answer.last("refused") !== "incomplete" || left <= 1) {
      accepted(answer, RECEIVE);
      return sent;
    }
    received = answer.count("received") ?? 0;
  }
}

const ROOM = `make room there, or ${ELSEWHERE}`;

async function* nothing(): AsyncGenerator<Uint8Array> {}

function refuseWithoutRoom({ size }: Artifact, { received, freeBytes, freeInodes }: Prepared): void {
  const needed = Math.max(0, size - received) + SPARE_BYTES;
  if (freeBytes !== null && freeBytes < needed) {
    const data = { reason: "no_room", free_bytes: freeBytes, needed_bytes: needed };
    throw new RelayError("storage_admission_refused", `the host has ${freeBytes} bytes left, and ${needed} are needed`, data, ROOM);
  }
  // File systems that make inodes as they need them say that there are none.
  if (freeInodes !== null && freeInodes > 0 && freeInodes < SPARE_INODES) {
    const data = { reason: "no_room", free_inodes: freeInodes };
    throw new RelayError(
      "storage_admission_refused",
      `the host has room for ${freeInodes} more files, and ${SPARE_INODES} are needed`,
      data,
      ROOM,
    );
  }
}

export interface Installed {
  /** Whether the version was put in its place by this run. */
  readonly placed: boolean;
  /** What it said when it was asked for its version. */
  readonly version: string;
  /** What was current before; null where nothing was. */
  readonly before: string | null;
  readonly removed: readonly string[];
  readonly root: string;
  /** Of the current version, by a name that stays. */
  readonly executable: string;
  /** `~/.local/bin/clio-relay`: made, as it was, something else of the user's, or impossible. */
  readonly launcher: "made" | "kept" | "other" | "failed";
}

/**
 * Put what was sent in its place: SHA-256, flush, a trial of its own, the switch of `current`, `previous`. The same again changes nothing.
 *
 * @param whole whether `prepare` has just found the version there, and whole: then it is not read once more
 * @throws RelayError artifact_unfit when it does not start there, script_failed with reason `digest_differs` when something else arrived (it is removed),
 *   host_unfit, state_conflict, and as Remote.run
 */
export async function install(
  remote: Remote,
  digest: string,
  { home, spool, signal }: Place,
  clock: Clock,
  whole = false,
): Promise<Installed> {
  const values = {
    a_digest: digest,
    a_home: home ?? "",
    a_own_home: home === null ? "no" : "yes",
    a_spool: spool ?? "",
    a_keep: String(KEPT),
    a_at: timestamp(clock),
    a_whole: whole ? "yes" : "no",
  };
  const answer = accepted(await remote.run(INSTALL, { values, signal, withinMs: DIGEST_MS }), INSTALL);
  return {
    placed: answer.one("placed") === "new",
    version: versionIn(answer),
    before: answer.last("before") || null,
    removed: answer.all("removed"),
    root: answer.one("root"),
    executable: answer.one("executable"),
    launcher: launcherOf(answer.one("launcher")),
  };
}

const launcherOf = (text: string): Installed["launcher"] => (text === "made" || text === "kept" || text === "other" ? text : "failed");

/** The version among what the executable said; a banner of some wrapper, or a suffix, does not matter (semver.org, 2). */
function versionIn(answer: Answer): string {
  const said = answer.one("trial_said");
  const found = /(?:^|[\s"'v])(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)/m.exec(said);
  if (found === null) {
    throw new RelayError("artifact_unfit", `the executable says no version when it is started on that host: ${said.slice(0, 200)}`, {
      said,
    });
  }
  return found[1]!;
}

export interface DeliverHooks {
  /** As `send` has it. */
  readonly onSent?: (bytes: number) => void;
  /** Called when the bytes are there, with those that were sent for it. */
  readonly onThere?: (sent: number) => void;
}

/** Send and install, once more from the beginning where something else arrived: a machine that crashed during an upload may have lost its middle. */
export async function deliver(
  remote: Remote,
  artifact: Artifact,
  place: Place,
  clock: Clock,
  { onSent, onThere }: DeliverHooks = {},
): Promise<Installed & { readonly sent: number }> {
  let sent = 0;
  for (let again = false; ; again = true) {
    const prepared = await prepare(remote, artifact.digest, place);
    sent += prepared.installed ? 0 : await send(remote, artifact, prepared, place, onSent);
    onThere?.(sent);
    try {
      return { ...(await install(remote, artifact.digest, place, clock, prepared.installed)), sent };
    } catch (error) {
      const differs = error instanceof RelayError && error.data["reason"] === "digest_differs";
      if (!differs || again || prepared.received === 0) throw error;
    }
  }
}

/** Switch back to the version before, which is tried first. @throws RelayError state_conflict where there is none, and as `install` */
export async function rollback(
  remote: Remote,
  { home, signal }: Place,
  clock: Clock,
): Promise<{ readonly before: string | null; readonly now: string; readonly version: string }> {
  const values = { a_home: home ?? "", a_at: timestamp(clock) };
  const answer = accepted(await remote.run(ROLLBACK, { values, signal, withinMs: DIGEST_MS }), ROLLBACK);
  return { before: answer.last("before") || null, now: answer.one("now"), version: versionIn(answer) };
}

export interface Uninstalled {
  readonly removed: readonly string[];
  /** Versions that stay because something of them runs. */
  readonly running: readonly string[];
  readonly remains: readonly { readonly path: string; readonly kib: number }[];
}

/**
 * Remove versions and links, and list what remains. With `purge` the cluster's queue and spool go, too; whoever asks for that has made sure that no job
 * is active.
 *
 * @throws RelayError state_conflict while a worker of another cluster belongs to the installation
 */
export async function uninstall(
  remote: Remote,
  { home, signal }: Place,
  { cluster, purge }: { readonly cluster: string; readonly purge: boolean },
): Promise<Uninstalled> {
  const values = { a_home: home ?? "", a_cluster: cluster, a_purge: purge ? "yes" : "no" };
  const answer = accepted(await remote.run(UNINSTALL, { values, signal, withinMs: DIGEST_MS }), UNINSTALL);
  return {
    removed: answer.all("removed"),
    running: answer.all("running"),
    remains: answer.all("remains").map((line) => {
      const [, kib = "0", path = ""] = /^(\d*) (.*)$/s.exec(line) ?? [];
      return { path, kib: Number(kib) };
    }),
  };
}
