import type { Duplex, Readable } from "node:stream";
import type { RelayError } from "../../domain/errors.ts";

/** How a command at the other side ended (RFC 4254, section 6.10). Both are null when the channel closed without a word about it. */
export interface ExecStatus {
  readonly code: number | null;
  /** `SIGKILL` and the like. */
  readonly signal: string | null;
}

/** A command at the other side. Both outputs must be read: they share one window, and one that fills up stops the other. */
export interface ExecChannel {
  /** Its standard output; what is written is its standard input, and `end()` is the end of that. */
  readonly stream: Duplex;
  readonly stderr: Readable;
  /** Resolves when the command has said how it ended, or the channel is closed; a process that it left behind may still hold its outputs. Never rejects. */
  readonly ended: Promise<ExecStatus>;
  /** Resolves when the channel is closed, from whichever side; never rejects. */
  readonly exited: Promise<ExecStatus>;
  /** Close the channel at once, whatever the other side does. The command at the other side sees its input and outputs gone; it is not signalled. */
  close(): void;
}

/** What went over the wire, the session's own messages included. */
export interface SessionStats {
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/**
 * An SSH-protocol session with an identity on both sides that has been proven.
 *
 * A channel that fails to open rejects with RelayError `channel_refused`, whose data say as `reason` what RFC 4254, section 5.1 has:
 * `administratively_prohibited`, `connect_failed`, `unknown_channel_type`, `resource_shortage`, or `exec_refused`; the session and its other
 * channels go on. When the session is over, opening rejects with `link_down`, and every open channel is destroyed with that error.
 *
 * An aborted signal rejects with its reason; a channel that opens later nevertheless is closed.
 */
export interface Session {
  /** A connection to a Unix socket at the other side, as `direct-streamlocal@openssh.com` (OpenSSH PROTOCOL, section 2.4). */
  openSocket(path: string, signal?: AbortSignal): Promise<Duplex>;
  /** A connection to a TCP port as the other side sees it (RFC 4254, section 7.2). */
  openTcp(host: string, port: number, signal?: AbortSignal): Promise<Duplex>;
  /** Run a command by the other side's login shell (RFC 4254, section 6.5). No terminal, no variables. */
  exec(command: string, signal?: AbortSignal): Promise<ExecChannel>;
  /** Resolves when the session is over: null after a `close` without a reason, else why. Never rejects. */
  readonly closed: Promise<RelayError | null>;
  stats(): SessionStats;
  /** Milliseconds that the other side's protocol needs for an answer; a global request that it does not know. */
  roundTrip(signal?: AbortSignal): Promise<number>;
  /** Say good-bye and end, without waiting for the other side. Twice is harmless. @param why where nobody wanted it: what `closed` resolves with */
  close(why?: RelayError): void;
}
