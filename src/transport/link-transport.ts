import type { Duplex } from "node:stream";
import type { ExpectedWorker } from "./link-version.ts";
import type { Waiting } from "./regain.ts";
import type { Session } from "./session/session.ts";

/** What a bring-up leads to. */
export interface LinkTransport {
  readonly session: Session;
  /** Whether the session is kept for what else is done with the connection: then it stays where no link comes of it. Left out: it is the link's alone. */
  readonly held?: boolean;
  /** A new channel to the worker's HTTP socket. */
  open(signal?: AbortSignal): Promise<Duplex>;
  /** Resolves when new channels go another way than those before; left out: they never do. Never rejects. */
  readonly rerouted?: Promise<void>;
}

/** Dials, proves identities, finds the worker's socket. What it has opened is its own to close when it rejects. */
export type BringUp = (signal: AbortSignal) => Promise<LinkTransport>;

/** How a link that was lost is had again without anybody. */
export interface Regain extends Waiting {
  readonly bringUp: BringUp;
  readonly expected: () => ExpectedWorker;
  /** Aborted, with the reason, when there is nothing any more over which it could be had. */
  readonly until: AbortSignal;
  /** Gets failures that are not RelayErrors. */
  readonly report: (error: unknown) => void;
}
