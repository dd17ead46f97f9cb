import fs from "node:fs";
import net from "node:net";
import { RelayError } from "../../../domain/errors.ts";
import type { Clock } from "../../../lib/waiting/clock.ts";
import { Fields, FrameSplitter, frame } from "./mux-frames.ts";
import { type Holder, MuxSession } from "./mux-session.ts";

/** OpenSSH PROTOCOL.mux, section 11, and mux.c for the two that are missing there. */
const MUX = { hello: 0x00000001, version: 4, proxy: 0x1000000f, proxied: 0x8000000f } as const;
/** How often it is looked whether ssh listens, and how long it may then take to answer; milliseconds. */
const LOOK_MS = 50;
const ANSWER_MS = 10_000;

/**
 * The session over the connection that an ssh holds, once it has one: ssh makes its control socket when it is let in, and a person may take their time.
 *
 * @throws RelayError configuration_error where this ssh does not do it; what the holder ended with
 */
export async function openMuxSession(path: string, holder: Holder, clock: Clock): Promise<MuxSession> {
  let why: RelayError | null = null;
  void holder.over.then((reason) => {
    why = reason;
  });
  while (!fs.existsSync(path)) {
    if (why !== null) throw why;
    await Promise.race([holder.over, Bun.sleep(LOOK_MS)]);
  }
  const socket = net.connect({ path });
  const splitter = new FrameSplitter();
  try {
    await enterProxyMode(socket, splitter);
  } catch (error) {
    socket.destroy();
    throw why ?? error;
  }
  return new MuxSession(socket, splitter, holder, clock);
}

/** PROTOCOL.mux, sections 1 and 9. Nothing comes behind the last answer before something is sent. */
function enterProxyMode(socket: net.Socket, splitter: FrameSplitter): Promise<void> {
  return new Promise((resolve, reject) => {
    let greeted = false;
    const done = (error: unknown): void => {
      clearTimeout(timer);
      socket.removeAllListeners();
      socket.on("error", () => undefined);
      if (error === null) resolve();
      else reject(error);
    };
    const timer = setTimeout(() => done(tooOld(`it did not answer within ${ANSWER_MS / 1_000} s`)), ANSWER_MS);
    const answered = (fields: Fields): void => {
      const type = fields.uint32();
      if (!greeted && (type !== MUX.hello || fields.uint32() !== MUX.version)) throw tooOld("it speaks another version");
      if (greeted && type !== MUX.proxied) throw tooOld(`it answered ${type.toString(16)}`);
      if (greeted) done(null);
      else socket.write(Buffer.concat([frame(MUX.hello, MUX.version), frame(MUX.proxy, 0)]));
      greeted = true;
    };
    socket.on("data", (chunk: Buffer) => {
      try {
        for (const message of splitter.push(chunk)) answered(new Fields(message));
      } catch (error) {
        done(error);
      }
    });
    socket.on("error", (error) => done(tooOld(error.message)));
    socket.on("close", () => done(tooOld("it ended the connection")));
  });
}

const tooOld = (what: string): RelayError =>
  new RelayError(
    "configuration_error",
    `ssh's control socket cannot be used: ${what}`,
    {},
    'ssh_client = "openssh" needs OpenSSH 7.4 or newer on this machine',
  );
