import type { Duplex } from "node:stream";
import { systemTimers, type Timers } from "../../lib/waiting/timers.ts";
import type { Refusal } from "./codes.ts";
import { ControlStream, codeOf } from "./control-stream.ts";
import { SILENCE_MS } from "./join.ts";
import { type Comer, OPENING_MS, open, proven, unexpected } from "./opening.ts";
import { roomOf } from "./proof.ts";

/** How long a worker is silent before it pings, in milliseconds. */
const PING_MS = 20_000;

/** A desktop that wants to come in. Its key is what the relay-host says; the session inside proves it. */
export interface Joining {
  /** Of this registration. */
  readonly join: number;
  /** The desktop's public key in the format of RFC 8709, section 4. */
  readonly key: Buffer;
  /** For `accept`, once. */
  readonly ticket: Buffer;
  /** Milliseconds until the ticket is over. */
  readonly expires: number;
  /** Whether the desktop says that its key is that of a pairing code. */
  readonly pairing: boolean;
  /** Whence it came, for the log. */
  readonly address: string;
  /** Do not let it in. Nothing once the registration is over, whose number it is. */
  refuse(reason: Refusal): void;
}

export interface RegisterOptions extends Comer {
  /** Called for each desktop. Whoever admits it dials and calls `accept`; whoever does not calls its `refuse`. */
  readonly onJoining: (joining: Joining) => void;
  readonly signal?: AbortSignal;
  readonly timers?: Timers;
  /** Milliseconds; for tests. */
  readonly pingMs?: number;
  readonly silenceMs?: number;
}

/** A room that is registered, for as long as its control connection is there. */
export interface Registration {
  /** Resolves when it is over: null after `close` or the signal, else why (RelayError, its data a MeetingEnd). Never rejects. */
  readonly closed: Promise<Error | null>;
  close(): void;
}

/**
 * A worker: register the room of its host key.
 *
 * @throws RelayError relay_token_refused and what else a `close` means (its data are a MeetingEnd), link_down, meeting_malformed, relay_host_unproven,
 *   version_mismatch; the signal's reason. The Duplex is then closed
 */
export async function register(duplex: Duplex, options: RegisterOptions): Promise<Registration> {
  const { signer, signal, timers = systemTimers } = options;
  const control = new ControlStream(duplex, timers);
  try {
    const answer = await open(control, options, roomOf(signer.key), { type: "register" }, signal);
    const message = await control.receive(OPENING_MS, signal);
    if (message.type !== "registered") throw unexpected(control, message.type);
    proven(control, message.proof, answer);
  } catch (error) {
    control.close(codeOf(error));
    throw error;
  }
  return parked(control, options, timers);
}

function parked(control: ControlStream, options: RegisterOptions, timers: Timers): Registration {
  const { onJoining, signal, pingMs = PING_MS, silenceMs = SILENCE_MS } = options;
  const over = new AbortController();
  const end = (): void => over.abort();
  if (signal?.aborted === true) end();
  signal?.addEventListener("abort", end, { once: true });

  let pings = 0;
  let preventPing = (): void => undefined;
  const pingLater = (): void => {
    preventPing();
    preventPing = timers.after(pingMs, () => send({ type: "ping", id: pings++ }));
  };
  let ended = false;
  const send = (message: Parameters<ControlStream["send"]>[0]): void => {
    if (ended) return;
    control.send(message);
    pingLater();
  };
  pingLater();

  const serve = async (): Promise<Error | null> => {
    try {
      for (;;) {
        const message = await control.receive(silenceMs, over.signal);
        if (message.type === "ping") send({ type: "pong", id: message.id });
        else if (message.type === "joining") {
          const { join } = message;
          onJoining({ ...message, refuse: (reason) => send({ type: "refuse", join, reason }) });
        } else if (message.type !== "pong") throw unexpected(control, message.type);
      }
    } catch (error) {
      if (over.signal.aborted) control.close("done");
      else if (codeOf(error) === "done") control.destroy();
      else control.close(codeOf(error));
      return over.signal.aborted ? null : (error as Error);
    } finally {
      ended = true;
      preventPing();
      signal?.removeEventListener("abort", end);
    }
  };
  return { closed: serve(), close: end };
}
