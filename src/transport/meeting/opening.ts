import { randomBytes } from "node:crypto";
import { RelayError } from "../../domain/errors.ts";
import type { RelayUrl } from "../../domain/relay-url.ts";
import { type CloseCode, closedBy } from "./codes.ts";
import type { ControlStream } from "./control-stream.ts";
import { NEWEST_VERSION, OLDEST_VERSION, type OpeningMessage, PREFACE, WORD_BYTES } from "./messages.ts";
import { prove, type Signer, same } from "./proof.ts";

/** Who comes to a relay-host, and to which. */
export interface Comer {
  /** The address that was dialed; by its scheme it is known whether a preface has to be sent. */
  readonly relay: Pick<RelayUrl, "scheme" | "authority">;
  /** One that the relay-host knows. */
  readonly token: string;
  /** The worker's host key, or the desktop's user key. */
  readonly signer: Signer;
}

/** What makes an opening one of its kind. */
type Kind =
  | { readonly type: "register" }
  | { readonly type: "join"; readonly wait: number; readonly pairing: boolean }
  | { readonly type: "accept"; readonly ticket: Buffer };

/** The same deadline as the relay-host's. */
export const OPENING_MS = 10_000;
const NOTHING = Buffer.alloc(0);

/** A failure that is this side's finding, about which the relay-host is told. */
function gaveUp(control: ControlStream, code: CloseCode, text?: string): RelayError {
  control.close(code);
  const { code: error, message, data } = closedBy(code, 0);
  return new RelayError(error, text ?? message, data);
}

/**
 * Say and prove who is there. Resolves to what the relay-host has to answer with, if it knows the token.
 *
 * @throws RelayError version_mismatch, meeting_malformed, link_down, or what a `close` means; the signal's reason
 */
export async function open(control: ControlStream, comer: Comer, room: Buffer, kind: Kind, signal?: AbortSignal): Promise<Buffer> {
  const { scheme, authority } = comer.relay;
  if (scheme === "tcp" || scheme === "tls") control.preface(PREFACE);
  const hello = await control.receive(OPENING_MS, signal);
  if (hello.type !== "hello") throw gaveUp(control, "malformed", `the relay-host began with ${hello.type}`);
  const version = Math.min(hello.newest, NEWEST_VERSION);
  if (version < hello.oldest || version < OLDEST_VERSION) {
    const older = hello.newest < OLDEST_VERSION ? "the relay-host" : "this side";
    throw gaveUp(
      control,
      "version",
      `${older} has to be upgraded: the relay-host speaks versions ${hello.oldest} to ${hello.newest} of the meeting protocol`,
    );
  }
  const nonce = randomBytes(WORD_BYTES);
  const { key } = comer.signer;
  const { signature, proof, answer } = prove(
    {
      version,
      role: kind.type,
      room,
      relay: authority,
      relayNonce: hello.nonce,
      clientNonce: nonce,
      key,
      ticket: kind.type === "accept" ? kind.ticket : NOTHING,
    },
    comer.token,
    comer.signer,
  );
  control.send({ ...kind, version, relay: authority, nonce, key, room, signature, proof } as OpeningMessage);
  return answer;
}

/** @throws RelayError relay_host_unproven unless the relay-host has shown that it knows the token */
export function proven(control: ControlStream, proof: Buffer, answer: Buffer): void {
  if (!same(proof, answer)) throw gaveUp(control, "proof");
}

/** A message that the state does not expect. */
export const unexpected = (control: ControlStream, type: string): RelayError =>
  gaveUp(control, "malformed", `the relay-host sent ${type} where the meeting protocol has none`);
