import { once } from "node:events";
import type { Duplex } from "node:stream";
import { isRelayError, RelayError } from "../../domain/errors.ts";
import type { ExecChannel, Session } from "../session/session.ts";
import { untilAborted } from "../until-aborted.ts";
import frameText from "./frame.sh" with { type: "text" };
import { type Answer, FrameReader } from "./frame.ts";
import { assignments } from "./shell-word.ts";
import { notBegun, unanswered } from "./unanswered.ts";

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
   *   as Session.exec; observation_timeout, also when the account's login shell has not begun it within 30 s; the signal's reason. None of these waits for
   *   the other side
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
/** How long the account's login shell may take to begin a script; less where the script itself has less. */
const BEGIN_MS = 30_000;
/** How long a payload may wait until some of it is taken. */
const STALLED_MS = 120_000;
/** How long a script's channel may take to close behind its answer, before it is closed from here; and the same where the command has ended. */
const CLOSING_MS = 5_000;
const ENDED_MS = 200;
/** What a command has printed may come this long after its end, where something that it left behind holds its outputs. */
const TRAILING_MS = 2_000;
/** A site that allows one channel frees it a moment after it was closed. */
const REFUSED_TRIES = 10;
const REFUSED_PAUSE_MS = 200;

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
  return answer(session, commandOf(nonce, "exec /bin/sh -s"), nonce, script, options, async ({ stream }) => {
    stream.end(text);
  });
}

function runFed(session: Pick<Session, "exec">, script: Script, payload: AsyncIterable<Uint8Array>, options: RunOptions): Promise<Answer> {
  const nonce = newNonce();
  const program = Buffer.from(`${programOf(nonce, script, options)}clio_run main\n`);
  // dd takes the script and not a byte more.
  const command = commandOf(nonce, `eval "$(dd bs=1 count=${program.length} 2>/dev/null)"`);
  return answer(session, command, nonce, script, options, async ({ stream }, over) => {
    stream.write(program);
    for await (const chunk of payload) {
      if (over.aborted) return;
      if (!stream.write(chunk)) await drained(stream, over);
    }
    stream.end();
  });
}

/** @throws RelayError observation_timeout */
async function drained(stream: Duplex, over: AbortSignal): Promise<void> {
  const limit = AbortSignal.timeout(STALLED_MS);
  await once(stream, "drain", { signal: AbortSignal.any([over, limit]) }).catch(() => undefined);
  if (limit.aborted && !over.aborted)
    throw new RelayError("observation_timeout", `the cluster's host has taken nothing of what is sent for ${STALLED_MS / 1_000} s`);
}

const newNonce = (): string => crypto.randomUUID().replaceAll("-", "");

/** The command of a script, which every login shell reads alike. It says that it is what reads the input from here on: a profile may have put something else there. */
const commandOf = (nonce: string, reads: string): string => `exec /bin/sh -c 'printf "\\nclio-relay ${nonce} ready\\n"; ${reads}'`;

const programOf = (nonce: string, script: Script, { values = {} }: RunOptions): string =>
  `CLIO_NONCE='${nonce}'\n${frameText}${assignments(values)}${script.text}`;

/** @param send writes to the channel, once the command reads; `over` is aborted when there is nobody to write to any more */
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
  const reader = new FrameReader(nonce, options.onRecord);
  let channel: ExecChannel | null = null;
  const over = new AbortController();
  try {
    channel = await execInTurn(session, command, signal);
    return await untilAborted(
      heard(channel, script, reader, (open) => send(open, over.signal)),
      signal,
    );
  } catch (error) {
    if (!signal.aborted) throw error;
    if (options.signal.aborted) throw options.signal.reason;
    if (channel !== null && !reader.isReady) throw notBegun(script, reader.noise);
    throw new RelayError("observation_timeout", `the program "${script.name}" on the cluster's host has not answered in time`);
  } finally {
    over.abort();
    channel?.close();
  }
}

async function heard(
  channel: ExecChannel,
  script: Script,
  reader: FrameReader,
  send: (channel: ExecChannel) => Promise<void>,
): Promise<Answer> {
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  const { ready, ended } = listen(channel, reader, fail);
  const impatient = setTimeout(() => fail(notBegun(script, reader.noise)), BEGIN_MS);
  ready
    .then(() => {
      clearTimeout(impatient);
      return send(channel);
    })
    // An answer counts even where not everything was sent: the script was done with it.
    .catch((error: unknown) => setImmediate(() => fail(error)));
  try {
    const broken = await Promise.race([ended, failed, channel.ended.then(() => Bun.sleep(TRAILING_MS))]);
    const whole = reader.end();
    if (whole === null) {
      if (broken instanceof RelayError) throw broken;
      const status = await Promise.race([channel.ended, failed, Bun.sleep(CLOSING_MS).then(() => null)]);
      throw unanswered(script, status, reader);
    }
    // The next channel may have to wait for the end of this one.
    await Promise.race([channel.exited, channel.ended.then(() => Bun.sleep(ENDED_MS)), Bun.sleep(CLOSING_MS)]);
    return whole;
  } finally {
    clearTimeout(impatient);
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

interface Heard {
  /** Resolves when the command reads its input; never where it does not. */
  readonly ready: Promise<void>;
  /** Resolves when the frame or the output has ended, to what broke the channel. */
  readonly ended: Promise<Error | null>;
}

/** Read both outputs. @param fail gets RelayError answer_malformed */
function listen({ stream, stderr }: ExecChannel, reader: FrameReader, fail: (error: unknown) => void): Heard {
  const ready = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Error | null>();
  const into = (push: (chunk: Uint8Array) => void) => (chunk: Uint8Array) => {
    try {
      push(chunk);
    } catch (error) {
      fail(error);
    }
    if (reader.isReady) ready.resolve();
    if (reader.end() !== null) ended.resolve(null);
  };
  stream.on(
    "data",
    into((chunk) => reader.push(chunk)),
  );
  stderr.on(
    "data",
    into((chunk) => reader.pushAside(chunk)),
  );
  stderr.on("error", () => undefined);
  stream.on("error", (error: Error) => ended.resolve(error));
  for (const end of ["end", "close"]) stream.on(end, () => ended.resolve(null));
  return { ready: ready.promise, ended: ended.promise };
}
