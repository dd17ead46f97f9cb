import type { ServerArtifact } from "../../domain/mcp-call.ts";
import type { JsonObject } from "../../domain/primitives.ts";
import { findProgram, NotRunnable } from "../shim/command-line.ts";
import { serverArtifact } from "./artifact/server-artifact.ts";
import { CallFailed } from "./call-failed.ts";
import { CallOutput } from "./call-output.ts";
import { type ClientMethods, Dialogue } from "./dialogue.ts";
import type { McpRequest } from "./request-file.ts";
import { serverEnvironment } from "./server-environment.ts";
import type { ServerCommand } from "./server-process.ts";
import { handshake, PROBE_MS, type Session } from "./session.ts";

/** What a server is started from. */
export interface ServerAround {
  readonly request: McpRequest;
  /** This process's environment, with what the cluster's setup text made of it. Asked for where a server is started. */
  readonly environment: () => Promise<Readonly<Record<string, string | undefined>>>;
  readonly workdir: string;
  readonly clientInfo: JsonObject;
  /** Milliseconds that a server may take to answer the question of the later versions. 15 s. */
  readonly probeMs?: number;
}

/** What is said of a server on the way to it, whether or not it comes to a handshake. */
interface Established {
  artifact: ServerArtifact;
  session: Session | null;
  handshakeMs: number | null;
}

/** What one call brings to a server. */
export interface ServerUse {
  readonly output: CallOutput;
  /** What the client offers. */
  readonly methods: ClientMethods;
  readonly signal: AbortSignal;
}

/** A server that answers with the session that was agreed on. */
export interface ReadyServer {
  readonly dialogue: Dialogue;
  readonly session: Session;
}

const NOWHERE = async (): Promise<void> => undefined;

/** A server, from before its start to its end: for one call, or for one after the other. */
export class HeldServer {
  #established: Established = { artifact: NOT_LOOKED_FOR, session: null, handshakeMs: null };
  #ready: ReadyServer | null = null;
  readonly #started: Dialogue[] = [];
  #calls = 0;

  /** What is known of it now. */
  get established(): Readonly<Established> {
    return this.#established;
  }

  /** Which call of the running server this is, from 1. */
  get calls(): number {
    return this.#calls;
  }

  /** Process of the one that is kept, which may have ended by itself; null where none is. */
  get pid(): number | null {
    return this.#ready?.dialogue.server.pid ?? null;
  }

  /** Whether the next call finds it running. */
  get runs(): boolean {
    return this.#ready?.dialogue.over === false;
  }

  /**
   * The server for one more call: the one that runs, else one that is started.
   *
   * @param onFound called when its program was found, before it is started
   * @throws CallFailed, the reason of `signal`
   */
  async ready(around: ServerAround, use: ServerUse, onFound: () => void): Promise<ReadyServer> {
    // It may have ended by itself since.
    if (this.#ready?.dialogue.over === true) await this.end();
    this.#calls++;
    if (this.#ready !== null) {
      const { dialogue } = this.#ready;
      dialogue.server.output = use.output;
      dialogue.methods = use.methods;
      onFound();
      return this.#ready;
    }
    this.#established = { artifact: NOT_LOOKED_FOR, session: null, handshakeMs: null };
    const command = await prepareServer(around, this.#established);
    onFound();
    const dialogue = await startServer(command, around, use, this.#established, (one) => this.#started.push(one));
    this.#ready = { dialogue, session: this.#established.session! };
    return this.#ready;
  }

  /** Nobody asks it anything now: what it says is passed over. */
  async rest(): Promise<void> {
    if (this.#ready === null) return;
    await this.#ready.dialogue.server.quiet();
    this.#ready.dialogue.server.output = new CallOutput({ stdout: NOWHERE, stderr: NOWHERE });
    this.#ready.dialogue.methods = () => null;
  }

  /** End it; another one can be started. */
  async end(interrupted = false): Promise<void> {
    this.#ready = null;
    this.#calls = 0;
    await Promise.all(this.#started.splice(0).map(({ server }) => server.end(interrupted)));
  }
}

const NOT_LOOKED_FOR: ServerArtifact = { immutable: false, cause: "not_established", detail: "nobody asked what it is", path: null };

/** Find a server, and what its program is. @throws CallFailed server_missing, environment_missing, server_artifact_changed */
async function prepareServer({ request, environment, workdir }: ServerAround, established: Established): Promise<ServerCommand> {
  const { server: name, server_args: args, env_from, expected_server_artifact_digest: expected } = request.spec;
  const env = serverEnvironment(await environment(), env_from, request.worker);
  let file: string;
  try {
    file = findProgram(name, workdir, env["PATH"]);
  } catch (error) {
    if (!(error instanceof NotRunnable)) throw error;
    established.artifact = { immutable: false, cause: "not_found", detail: error.message.slice(0, 1_000), path: null };
    throw new CallFailed("server_missing", error.message);
  }
  // Whoever expects nothing of it need not wait for it: a program may have a hundred megabytes.
  if (expected !== null || request.spec.operation === "tools/list") {
    const found = await serverArtifact({ file, args, env, workdir });
    established.artifact = found;
    if (expected !== null && (!found.immutable || found.digest !== expected)) {
      const is = found.immutable ? `it has the digest ${found.digest}` : found.detail;
      throw new CallFailed("server_artifact_changed", `the server's program is not the expected one: ${is}`);
    }
  }
  return { file, name, args, env };
}

/**
 * Start a server and agree on a version. One that ends over a question of a later version is started once more: nothing else was asked of it by then.
 *
 * @param onStart called with each that was started
 * @throws CallFailed, the reason of `signal`
 */
async function startServer(
  command: ServerCommand,
  { clientInfo, probeMs = PROBE_MS }: ServerAround,
  { output, methods, signal }: ServerUse,
  established: Established,
  onStart: (dialogue: Dialogue) => void,
): Promise<Dialogue> {
  for (const probe of [probeMs, null]) {
    const started = performance.now();
    const dialogue = new Dialogue(command, output, methods);
    onStart(dialogue);
    try {
      established.session = await handshake(dialogue, clientInfo, probe, signal);
      established.handshakeMs = performance.now() - started;
      return dialogue;
    } catch (error) {
      if (probe === null || !(error instanceof CallFailed) || error.reason !== "server_exited") throw error;
      await dialogue.server.end();
    }
  }
  throw new Error("unreachable");
}
