import type { Duplex } from "node:stream";
import { systemTimers, type Timers } from "../../lib/waiting/timers.ts";
import { ControlStream, codeOf } from "./control-stream.ts";
import { type Comer, OPENING_MS, open, proven, unexpected } from "./opening.ts";
import { roomOf } from "./proof.ts";

/** Whoever hears nothing for so long gives up (docs/wire.md, Parked connections). */
export const SILENCE_MS = 50_000;

export interface JoinOptions extends Comer {
  /** The SHA-256 of the worker's host key. */
  readonly room: Buffer;
  /** Milliseconds to wait for a worker that is not registered, at most MAX_WAIT_MS. */
  readonly waitMs: number;
  /** Whether the key is that of a pairing code, and not one that the worker lets in. */
  readonly pairing?: boolean;
  /** What is waited for: the worker to register, or its word. */
  readonly onWaiting?: (what: "worker" | "admission") => void;
  readonly signal?: AbortSignal;
  readonly timers?: Timers;
}

/**
 * A desktop: meet the worker of a room. Resolves to the same Duplex, paused, on which the worker is from its next byte on.
 *
 * @throws RelayError worker_absent, join_refused, relay_token_refused and what else a `close` means (its data are a MeetingEnd), link_down, meeting_malformed,
 *   relay_host_unproven, version_mismatch; the signal's reason. The Duplex is then closed
 */
export async function join(duplex: Duplex, options: JoinOptions): Promise<Duplex> {
  const { room, waitMs, pairing = false, onWaiting, signal } = options;
  return await joining(duplex, options, async (control) => {
    const answer = await open(control, options, room, { type: "join", wait: waitMs, pairing }, signal);
    for (let withinMs = OPENING_MS; ; withinMs = SILENCE_MS) {
      const message = await control.receive(withinMs, signal);
      if (message.type === "ping") control.send({ type: "pong", id: message.id });
      else if (message.type === "waiting") {
        proven(control, message.proof, answer);
        onWaiting?.(message.for);
      } else if (message.type === "joined") return proven(control, message.proof, answer);
      else throw unexpected(control, message.type);
    }
  });
}

export interface AcceptOptions extends Comer {
  /** What `joining` brought. */
  readonly ticket: Buffer;
  readonly signal?: AbortSignal;
  readonly timers?: Timers;
}

/**
 * A worker: come for a desktop that it lets in. Resolves to the same Duplex, paused, on which the desktop is from its next byte on; its key is proven only by the session
 * inside.
 *
 * @throws RelayError as `join` does; link_down for a ticket that is over
 */
export async function accept(duplex: Duplex, options: AcceptOptions): Promise<Duplex> {
  const { ticket, signal, signer } = options;
  return await joining(duplex, options, async (control) => {
    const answer = await open(control, options, roomOf(signer.key), { type: "accept", ticket }, signal);
    for (;;) {
      const message = await control.receive(OPENING_MS, signal);
      if (message.type === "ping") control.send({ type: "pong", id: message.id });
      else if (message.type === "joined") return proven(control, message.proof, answer);
      else throw unexpected(control, message.type);
    }
  });
}

async function joining(
  duplex: Duplex,
  options: { readonly timers?: Timers },
  meet: (control: ControlStream) => Promise<void>,
): Promise<Duplex> {
  const control = new ControlStream(duplex, options.timers ?? systemTimers);
  try {
    await meet(control);
    return control.release();
  } catch (error) {
    control.close(codeOf(error));
    throw error;
  }
}
