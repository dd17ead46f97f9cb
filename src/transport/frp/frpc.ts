import fs from "node:fs";
import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import { makePrivateDirectory } from "../../lib/files/atomic-file.ts";
import { startInside } from "../dial.ts";
import type { ProcessStream } from "../process-stream.ts";
import { endLeftOver, recordProcess } from "./left-over.ts";

/**
 * Becomes the program that is named, in whose process group a child of the shell then waits for the end of a pipe which only the owner holds: however the
 * owner ends, the group ends with it. The child is a member of the group itself, so that its number is nobody else's.
 */
const OWNED = 'exec 3<&0 </dev/null; { read -r _ <&3; kill -s KILL -- "-$$"; } >/dev/null 2>&1 & exec "$@" 3<&-';

/** What frpc may know of its surroundings: nothing of the relay's, and no proxy but the one in its configuration. */
const KEPT = /^(?:PATH|HOME|TZ|LANG|LC_ALL|TMPDIR|SystemRoot|USERPROFILE|TEMP|TMP)$/i;

/**
 * For runtimes of Go. What comes through frps comes in small pieces, and for each of them threads on several processors wake one another: on one it takes frpc a third less, and it still
 * carries more than a session brings. Whoever punches holes speaks QUIC, which takes more; it has them all.
 */
export const ON_ONE_PROCESSOR = { GOMAXPROCS: "1" };

/** How much of what it said last is kept, in UTF-16 units. */
const MAX_SAID = 16 * 1024;
/** It reads its configuration before it says anything; one that says nothing has it after so long, in milliseconds. */
const READ_MS = 5_000;

export interface FrpcRequest {
  readonly frpc: string;
  readonly configuration: string;
  /** Whether what it carries may go from peer to peer. */
  readonly direct: boolean;
  /** Of the user alone, on this machine. */
  readonly directory: string;
  /** One frpc of a name at a time; for its files. */
  readonly name: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Not to be repeated, whoever says them. */
  readonly secrets: readonly string[];
  /** Gets what does not end it. */
  readonly onTrouble: (error: unknown) => void;
}

/** A frpc that runs, and ends with this process at the latest. */
export interface Frpc {
  readonly pid: number | undefined;
  /** Resolves when it is over, with its exit code; never rejects. */
  readonly ended: Promise<number | null>;
  /** What it said last, for people. */
  said(): string;
  /** Resolves when it is gone. */
  stop(): Promise<void>;
}

/**
 * Start frpc. Its configuration lies in a file of mode 0600 until it has been read. One of the same name that an owner left behind is ended first.
 *
 * @param record writes down which process it is
 * @throws RelayError local_file_unusable where the directory, the configuration or the record of its process cannot be written; nothing of it runs then
 */
export async function startFrpc(request: FrpcRequest, record = recordProcess): Promise<Frpc> {
  const { directory, name, frpc, onTrouble } = request;
  const owned = path.join(directory, `${name}.json`);
  const file = path.join(directory, `${name}.${crypto.randomUUID()}.toml`);
  try {
    makePrivateDirectory(directory);
    await endLeftOver(owned);
    // Of one that was killed before its frpc had read it.
    const own = path.basename(file).length;
    for (const left of fs.readdirSync(directory)) {
      // A name may begin with another one and a dot.
      if (left.startsWith(`${name}.`) && left.endsWith(".toml") && left.length === own) fs.rmSync(path.join(directory, left));
    }
    fs.writeFileSync(file, request.configuration, { mode: 0o600, flag: "wx" });
  } catch (cause) {
    throw new RelayError(
      "local_file_unusable",
      `the configuration of frpc cannot be written: ${(cause as Error).message}`,
      { path: file },
      undefined,
      {
        cause,
      },
    );
  }
  const command = [frpc, "-c", file] as const;
  const stream = startInside({
    argv: process.platform === "win32" ? command : ["/bin/sh", "-c", OWNED, "frpc", ...command],
    env: {
      ...Object.fromEntries(
        Object.entries(request.variables).filter((one): one is [string, string] => one[1] !== undefined && KEPT.test(one[0])),
      ),
      ...(request.direct ? {} : ON_ONE_PROCESSOR),
    },
    directory,
  });
  const remove = removal(file, stream, onTrouble);
  try {
    if (stream.pid !== undefined) record(owned, stream.pid);
  } catch (cause) {
    // Whoever comes next could not tell it from any other: it does not stay.
    stream.destroy();
    await stream.ended;
    remove();
    throw new RelayError(
      "local_file_unusable",
      `the record of frpc cannot be written: ${(cause as Error).message}`,
      { path: owned },
      undefined,
      { cause },
    );
  }
  return new RunningFrpc(stream, request, remove, owned);
}

/** Removes a configuration as soon as it has been read; once. */
function removal(file: string, stream: ProcessStream, onTrouble: FrpcRequest["onTrouble"]): () => void {
  let done = false;
  const remove = (): void => {
    if (done) return;
    done = true;
    clearTimeout(timer);
    try {
      fs.rmSync(file, { force: true });
    } catch (cause) {
      const what = `${file} holds secrets and cannot be removed`;
      onTrouble(new RelayError("local_file_unusable", what, { path: file }, `rm ${file}`, { cause }));
    }
  };
  const timer = setTimeout(remove, READ_MS);
  stream.once("data", remove);
  return remove;
}

class RunningFrpc implements Frpc {
  readonly ended: Promise<number | null>;
  #said = "";

  constructor(
    private readonly stream: ProcessStream,
    private readonly request: FrpcRequest,
    read: () => void,
    record: string,
  ) {
    stream.on("data", (chunk: Buffer) => {
      this.#said = `${this.#said}${chunk.toString("utf8")}`.slice(-MAX_SAID);
    });
    stream.on("error", () => undefined);
    this.ended = stream.ended.then(({ code, stderr }) => {
      this.#said = `${this.#said}${stderr}`.slice(-MAX_SAID);
      read();
      fs.rmSync(record, { force: true });
      return code;
    });
  }

  get pid(): number | undefined {
    return this.stream.pid;
  }

  said(): string {
    return this.request.secrets.reduce((text, secret) => text.replaceAll(secret, "…"), this.#said);
  }

  async stop(): Promise<void> {
    this.stream.destroy();
    await this.ended;
  }
}
