import * as v from "valibot";
import { RelayError } from "../../domain/errors.ts";
import { Count, looseText, Sha256 } from "../../domain/primitives.ts";
import { sha256Hex } from "../../lib/digest.ts";
import layout from "../script/layout.sh" with { type: "text" };
import { accepted } from "../script/refusal.ts";
import type { Remote, Script } from "../script/remote.ts";
import take from "../script/take.sh" with { type: "text" };
import installProgram from "./install.py" with { type: "text" };
import installText from "./install.sh" with { type: "text" };
import lookText from "./look.sh" with { type: "text" };
import python from "./python.sh" with { type: "text" };
import receiveText from "./receive.sh" with { type: "text" };
import { jarvisSource, type Payload, wholeFile } from "./source.ts";

const LOOK: Script = { name: "look for JARVIS-CD", text: layout + python + lookText };
const RECEIVE: Script = { name: "receive JARVIS-CD", text: layout + take + receiveText };
const INSTALL: Script = { name: "install JARVIS-CD", text: layout + python + installText };
const SEND_MS = 20 * 60_000;
const INSTALL_MS = 10 * 60_000;
const PIECE_BYTES = 256 * 1024;

/** A JARVIS-CD that a host is to have. */
export interface JarvisWanted {
  /** An archive or a source tree on this machine; absolute. */
  readonly source: string;
  /** SHA-256 that the archive has to have; null: whatever it has. */
  readonly expectedDigest: string | null;
  /** A wheel of PyYAML; null: the host's Python has it. */
  readonly wheel: string | null;
}

/** A copy of JARVIS-CD on a host. */
export const JarvisInstalled = v.strictObject({
  program: looseText(4_096),
  /** The Python that runs it. */
  python: looseText(4_096),
  source: looseText(4_096),
  /** SHA-256 of the archive; of a source tree, of the one that was made of it. */
  digest: Sha256,
  /** SHA-256 of the wheel of PyYAML; null: the host's own. */
  wheel: v.nullable(Sha256),
  sent_bytes: Count,
  /** Whether JARVIS was initialized for this, or had been. */
  initialized: v.picklist(["made", "kept"]),
});
export type JarvisInstalled = v.InferOutput<typeof JarvisInstalled>;

export interface JarvisDelivery {
  /** The installation's directory on the host; null for the usual place. */
  readonly home: string | null;
  /** Shell text that comes before every job of the cluster, which may be what brings Python; null for none. */
  readonly envSetup: string | null;
  readonly signal: AbortSignal;
  readonly onSent: (bytes: number, total: number) => void;
}

/** What has to be sent, read before anything is done. @throws RelayError as jarvisSource and wholeFile; artifact_unfit where it is another one than is expected */
export async function jarvisPayloads({ source, expectedDigest, wheel }: JarvisWanted): Promise<readonly [Payload, ...Payload[]]> {
  const archive = await jarvisSource(source);
  if (expectedDigest !== null && archive.digest !== expectedDigest)
    throw new RelayError("artifact_unfit", `${source} has the SHA-256 ${archive.digest}, not ${expectedDigest}`, {
      digest: archive.digest,
      expected: expectedDigest,
    });
  return wheel === null ? [archive] : [archive, await wholeFile(wheel)];
}

/**
 * Have a copy of JARVIS-CD on a host, in a place that is named by what it was made of, and JARVIS initialized there. Nothing is sent where it is there already.
 *
 * @throws RelayError host_unfit where there is no Python for it; artifact_unfit where it is none or does not run there; storage_admission_refused,
 *   script_failed; as Remote.run
 */
export async function deliverJarvis(
  remote: Remote,
  payloads: readonly [Payload, ...Payload[]],
  { home, envSetup, signal, onSent }: JarvisDelivery,
): Promise<JarvisInstalled> {
  const [archive, wheel] = payloads;
  const key = wheel === undefined ? archive.digest : sha256Hex(`${archive.digest} ${wheel.digest}`);
  const values = { a_home: home ?? "", a_key: key, a_setup: envSetup ?? "" };
  const look = accepted(await remote.run(LOOK, { values, signal }), LOOK);
  const found = look.one("python");
  const sending = look.one("there") === "yes" ? [] : payloads;
  const total = sending.reduce((sum, { bytes }) => sum + bytes.length, 0);
  let sent = 0;
  for (const { bytes, digest } of sending) {
    const options = { values: { a_home: home ?? "", a_digest: digest }, signal, withinMs: SEND_MS };
    const counted = inPieces(bytes, (at) => onSent(sent + at, total));
    accepted(await remote.feed(RECEIVE, counted, options), RECEIVE);
    sent += bytes.length;
  }
  const digests = { a_archive: sending[0]?.digest ?? "", a_wheel: sending[1]?.digest ?? "" };
  const installing = { values: { ...values, ...digests, a_python: found, a_program: installProgram }, signal, withinMs: INSTALL_MS };
  const installed = accepted(await remote.run(INSTALL, installing), INSTALL);
  return {
    program: installed.one("program"),
    python: found,
    source: archive.file.slice(0, 4_096),
    digest: archive.digest,
    wheel: wheel?.digest ?? null,
    sent_bytes: sent,
    initialized: installed.one("initialized") === "made" ? "made" : "kept",
  };
}

async function* inPieces(bytes: Uint8Array, onAt: (at: number) => void): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; ) {
    const piece = bytes.subarray(at, at + PIECE_BYTES);
    yield piece;
    at += piece.length;
    onAt(at);
  }
}
