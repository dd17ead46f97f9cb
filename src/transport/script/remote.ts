import { once } from "node:events";
import type { Readable } from "node:stream";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { ExecChannel, ExecStatus, Session } from "../session/session.ts";
import frameText from "./frame.sh" with { type: "text" };
import { type Answer, FRAME_LIMITS, FrameReader } from "./frame.ts";
import { assignments } from "./shell-word.ts";

/** A program in POSIX sh that defines `main`, and may use what frame.sh defines. */
export interface Script {
  /** For error texts. */
  readonly name: string;
  readonly text: string;
}

export interface RunOptions {
  /** Variables that the script begins with. */
  readonly values?: Readonly<Record<string, string>>;
  /** The request that it belongs to. */
  readonly signal: AbortSignal;
  /** How long it may take, in milliseconds; 2 minutes when left out. */
  readonly withinMs?: number;
  /** Called with each record as it comes. */
  readonly onRecord?: (name: string, value: string) => void;
}

/** A host on which scripts of ours can be run, one after the other: sites may allow no more than one channel at a time. */
export interface Remote {
  /**
   * Run a script whose standard input is empty.
   *
   * @returns its answer, whatever its exit status
   * @throws RelayError script_failed when the answer did not come to its end, with what was said instead; answer_malformed; channel_refused and link_down
   *   as Session.exec; observation_timeout; the signal's reason
   */
  run(script: Script, options: RunOptions): Promise<Answer>;
  /**
   * Run a script with a payload on its standard input. A script that ends before it has read everything is not waited for; its answer counts.
   *
   * @throws RelayError as `run`, and what the payload throws
   */
  feed(script: Script, payload: AsyncIterable<Uint8Array>, options: RunOptions): Promise<Answer>;
}

const WITHIN_MS = 120_000;
/** How long a script's channel may take to close behind its answer, before it is closed from here. */
const CLOSING_MS = 5_000;
/** A site that allows one channel frees it a moment after it was closed. */
const REFUSED_TRIES = 10;
const REFUSED_PAUSE_MS = 200;
/** How much of what was said instead of an answer is shown. */
const SAID_BYTES = 1_024;

/** Run scripts over a session, each on an exec channel of its own. */
export function remoteOver(session: Pick<Session, "exec">): Remote {
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = last.then(work, work);
    last = mine;
    return mine;
  };
  return {
    run: (script, options) => inTurn(() => runPlain(session, script, options)),
    feed: (script, payload, options) => inTurn(() => runFed(session, script, payload, options)),
  };
}

function runPlain(session: Pick<Session, "exec">, script: Script, options: RunOptions): Promise<Answer> {
  const nonce = newNonce();
  const text = `${programOf(nonce, script, options)}clio_run main </dev/null\n`;
  // The shell may read ahead on its input, so nothing but the script is on it.
  return answer(session, "exec /bin/sh -s", nonce, script, options, async (channel) => {
    channel.stream.end(text);
  });
}

function runFed(session: Pick<Session, "exec">, script: Script, payload: AsyncIterable<Uint8Array>, options: RunOptions): Promise<Answer> {
  const nonce = newNonce();
  const program = Buffer.from(`${programOf(nonce, script, options)}clio_run main\n`);
  // dd takes the script and not a byte more; every login shell reads this line alike.
  const command = `exec /bin/sh -c 'eval "$(dd bs=1 count=${program.length} 2>/dev/null)"'`;
  return answer(session, command, nonce, script, options, async (channel, over) => {
    channel.stream.write(program);
    for await (const chunk of payload) {
      if (over.aborted) return;
      if (!channel.stream.write(chunk)) await once(channel.stream, "drain", { signal: over }).catch(() => undefined);
    }
    channel.stream.end();
  });
}

const newNonce = (): string => crypto.randomUUID().replaceAll("-", "");

const programOf = (nonce: string, script: Script, { values = {} }: RunOptions): string =>
  `CLIO_NONCE='${nonce}'\n${frameText}${assignments(values)}${script.text}`;

/** @param send writes to the channel; `over` is aborted when there is nobody to write to any more */
async function answer(
  session: Pick<Session, "exec">,
  command: string,
  nonce: string,
  script: Script,
  options: RunOptions,
  send: (channel: ExecChannel, over: AbortSignal) => Promise<void>,
): Promise<Answer> {
  const limit = AbortSignal.timeout(options.withinMs ?? WITHIN_MS);
  const signal = AbortSignal.any([options.signal, limit]);
  const late = (): unknown =>
    options.signal.aborted
      ? options.signal.reason
      : new RelayError("observation_timeout", `the program "${script.name}" on the cluster's host has not answered in time`);
  const channel = await execInTurn(session, command, signal).catch((error: unknown) => {
    throw signal.aborted ? late() : error;
  });
  const over = new AbortController();
  const cut = (): void => channel.close();
  signal.addEventListener("abort", cut, { once: true });
  try {
    const reader = new FrameReader(nonce, options.onRecord);
    const said = readText(channel.stderr);
    const ended = readFrame(channel, reader);
    let unsent: { readonly error: unknown } | null = null;
    void send(channel, over.signal).catch((error: unknown) => {
      unsent = { error };
      channel.close();
    });
    const broken = await ended;
    const whole = reader.end();
    // An answer counts even where not everything was sent: the script was done with it.
    if (whole !== null) {
      over.abort();
      // The next channel may have to wait for the end of this one.
      await Promise.race([channel.exited, Bun.sleep(CLOSING_MS)]);
      return whole;
    }
    if (signal.aborted) throw late();
    if (unsent !== null) throw (unsent as { readonly error: unknown }).error;
    if (broken instanceof RelayError) throw broken;
    throw failed(script, await channel.exited, `${reader.noise}${await said}`);
  } finally {
    signal.removeEventListener("abort", cut);
    over.abort();
    channel.close();
  }
}

/**
 * Run a command where a site may allow one at a time, and the last one was closed a moment ago. Nothing has run where a channel was refused, so that it
 * can be asked for again.
 *
 * @throws as Session.exec
 */
export async function execInTurn(session: Pick<Session, "exec">, command: string, signal: AbortSignal): Promise<ExecChannel> {
  for (let left = REFUSED_TRIES; ; left--) {
    try {
      return await session.exec(command, signal);
    } catch (error) {
      if (left <= 1 || !isRelayError(error, "channel_refused")) throw error;
      await Bun.sleep(REFUSED_PAUSE_MS);
    }
  }
}

/** Read until the frame or the channel has ended; resolves to what broke the channel. @throws RelayError answer_malformed */
function readFrame({ stream }: ExecChannel, reader: FrameReader): Promise<Error | null> {
  return new Promise((resolve, reject) => {
    stream.on("data", (chunk: Uint8Array) => {
      try {
        reader.push(chunk);
      } catch (error) {
        reject(error);
      }
      if (reader.end() !== null) resolve(null);
    });
    stream.on("error", resolve);
    for (const end of ["end", "close"]) stream.on(end, () => resolve(null));
  });
}

/** Its beginning; the rest is read and forgotten. */
function readText(stream: Readable): Promise<string> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let size = 0;
    stream.on("data", (chunk: Buffer) => {
      if (size < FRAME_LIMITS.noiseBytes) parts.push(chunk.subarray(0, FRAME_LIMITS.noiseBytes - size));
      size += chunk.length;
    });
    for (const end of ["end", "close", "error"]) stream.on(end, () => resolve(Buffer.concat(parts).toString("utf8")));
  });
}

function failed(script: Script, { code, signal }: ExecStatus, said: string): RelayError {
  // A program that ends has a status (RFC 4254, section 6.10): without one it is the connection that has ended.
  if (code === null && signal === null)
    return new RelayError("link_down", `the connection ended before the program "${script.name}" on the cluster's host had answered`);
  const how = code === null ? `was ended by ${signal}` : `ended with ${code}`;
  const shown = said.trim().slice(0, SAID_BYTES);
  return new RelayError("script_failed", `the program "${script.name}" on the cluster's host ${how}${shown === "" ? "" : `: ${shown}`}`, {
    script: script.name,
    exit_code: code,
    signal,
    said: shown,
  });
}
