import fs from "node:fs";
import path from "node:path";
import { isRelayError, RelayError } from "../../../domain/errors.ts";
import { dial, settleFailure } from "../../dial.ts";
import { type ProcessEnd, type ProcessStream, withoutCredentials } from "../../process-stream.ts";
import { parseJump } from "../config/jump.ts";
import type { Setting, Settings } from "../config/read.ts";
import { type ConfigContext, checkHostName } from "../config/resolve.ts";
import { askSsh } from "../config/ssh-g.ts";

import { serverText } from "../prompt.ts";
import { contextOf, type SshRequest } from "../request.ts";
import { AskpassServer } from "./askpass-server.ts";
import { configText, isCareless } from "./config-file.ts";

export interface OpenSshRequest extends SshRequest {
  /** Runs on the login node; its standard input and output are the connection. */
  readonly command: string;
  /** What starts `runAskpass` of askpass-program.ts: the executable and its hidden verb. */
  readonly askpass: readonly string[];
  /** A directory of the user's alone on this machine, with room for a socket's name. */
  readonly privateDirectory: string;
}

/** A command on a login node, over one process of the user's own ssh. */
export interface OpenSshConnection {
  /** The command's standard output and input. Destroying it ends ssh. */
  readonly duplex: ProcessStream;
  readonly ledgerSeq: number;
  /** The command has said what it is to say first: in the ledger the connection is open from now on. */
  opened(): void;
  /** Why it is over, once it is: what a person did not answer, else ssh's own words. */
  readonly failure: Promise<RelayError>;
}

/** ssh(1), EXIT STATUS: its own failures; any other code is the command's. */
const OWN_FAILURE = 255;

/**
 * Start the user's ssh with a command, and hold it. Their own configuration applies but for multiplexing, terminals, forwards and local commands; its
 * questions go to the prompter.
 *
 * @throws RelayError configuration_error (no ssh, or a configuration that it does not take), authorization_required, local_file_unusable
 */
export async function runOpenSsh(request: OpenSshRequest): Promise<OpenSshConnection> {
  const { entry, config } = request;
  const program = config.sshProgram;
  if (program === null) {
    throw new RelayError("configuration_error", `${entry.cluster} has ssh_client = "openssh", and there is no ssh on this machine`, {
      cluster: entry.cluster,
    });
  }
  if (entry.hostKeyPins.length > 0) {
    throw new RelayError(
      "ssh_config_unsupported",
      `${entry.cluster} pins host keys, and ssh cannot be told of them by their fingerprints`,
      { cluster: entry.cluster },
      "put the key itself into known_hosts, and clear the pins",
    );
  }
  checkHostName(entry.host);
  const context = contextOf(request);
  const settings = await askSsh({ ...context, ...entry, program });
  const prepared = await prepare(settings, request, context);
  try {
    return await start(prepared, settings, program, request);
  } catch (error) {
    prepared.clean();
    throw error;
  }
}

interface Prepared {
  readonly directory: string;
  readonly askpass: AskpassServer;
  /** What a person did not answer. */
  readonly unanswered: () => unknown;
  /** Called when somebody did not answer. */
  onUnanswered(end: () => void): void;
  clean(): void;
}

const firstOf = (settings: Settings, name: string): string | undefined => settings.get(name)?.[0]?.args[0];

async function prepare(settings: Settings, request: OpenSshRequest, context: ConfigContext): Promise<Prepared> {
  const { entry, prompter, notice } = request;
  const directory = fs.mkdtempSync(path.join(request.privateDirectory, "ssh-"));
  const remove = (): void => fs.rmSync(directory, { recursive: true, force: true });
  try {
    const careless = await carelessHosts(settings, request, context);
    fs.writeFileSync(path.join(directory, "config"), configText(settings, careless, context), { mode: 0o600 });
    let unanswered: unknown;
    let end = (): void => undefined;
    const askpass = await AskpassServer.start({
      directory,
      command: request.askpass,
      prompter,
      notice,
      host: `${firstOf(settings, "user") ?? context.account.name}@${entry.host}`,
      failed: (error) => {
        unanswered = error;
        end();
      },
    });
    return {
      directory,
      askpass,
      unanswered: () => unanswered,
      onUnanswered(then) {
        end = then;
      },
      clean() {
        askpass.close();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

/** The host and its jumps, as far as their host keys would not be asked about. */
async function carelessHosts(settings: Settings, { entry }: OpenSshRequest, context: ConfigContext): Promise<string[]> {
  const jumps = jumpsOf(settings);
  const all = await Promise.all(jumps.map((jump) => askSsh({ ...context, ...jump, program: context.sshProgram! })));
  return [
    ...(isCareless(settings) ? [entry.host] : []),
    ...jumps.filter((_jump, index) => isCareless(all[index]!)).map(({ host }) => host),
  ];
}

function jumpsOf(settings: Settings) {
  const [setting]: readonly (Setting | undefined)[] = settings.get("proxyjump") ?? [];
  return setting === undefined || setting.args[0] === "none" ? [] : setting.args[0]!.split(",").map(parseJump);
}

async function start(prepared: Prepared, settings: Settings, program: string, request: OpenSshRequest): Promise<OpenSshConnection> {
  const { entry, attending, ledger, config, notice } = request;
  const named = (name: "user" | "hostname" | "port"): string => firstOf(settings, name) ?? "?";
  const { duplex, line } = await dial({
    destination: {
      kind: "process",
      what: "ssh",
      argv: [program, ...argumentsOf(prepared, request)],
      env: environment(prepared, request),
      directory: config.directory,
      onStderr: (text) => notice(serverText(text)),
    },
    attending,
    ledger,
    dialing: {
      cluster: entry.cluster,
      purpose: request.purpose,
      target: `${named("user")}@${named("hostname")}:${named("port")}`,
      via: jumpsOf(settings).map(
        ({ user, host, port }) => `${user === undefined ? "" : `${user}@`}${host}${port === undefined ? "" : `:${port}`}`,
      ),
      client: "openssh",
    },
  });
  const { signal } = attending!;
  let open = false;
  const stream = duplex as ProcessStream;
  const giveUp = (): void => void stream.destroy();
  prepared.onUnanswered(giveUp);
  signal.addEventListener("abort", giveUp, { once: true });
  const failure = stream.ended.then((end) => {
    prepared.clean();
    signal.removeEventListener("abort", giveUp);
    const error = why(end, prepared.unanswered() ?? (open ? undefined : signal.reason), entry.host, open);
    if (open) line.ended(error.code);
    else settleFailure(line, signal, error);
    return error;
  });
  return {
    duplex: stream,
    ledgerSeq: line.seq,
    failure,
    opened() {
      open = true;
      // From here on it is held for everybody, and not for the request that brought it up.
      signal.removeEventListener("abort", giveUp);
      line.settle("open");
    },
  };
}

function argumentsOf({ directory }: Prepared, { entry, command }: OpenSshRequest): string[] {
  return [
    "-T",
    "-F",
    path.join(directory, "config"),
    ...(entry.user === undefined ? [] : ["-l", entry.user]),
    ...(entry.port === undefined ? [] : ["-p", String(entry.port)]),
    "--",
    entry.host,
    command,
  ];
}

function environment({ askpass }: Prepared, { config, agentSocket }: OpenSshRequest): Record<string, string> {
  const { SSH_AUTH_SOCK: _other, ...env } = withoutCredentials(config.variables);
  return {
    ...env,
    ...(agentSocket === null ? {} : { SSH_AUTH_SOCK: agentSocket }),
    SSH_ASKPASS: askpass.program,
    SSH_ASKPASS_REQUIRE: "force",
    // Versions before 8.4 look for a display, and take none for a reason not to ask.
    DISPLAY: env["DISPLAY"] ?? ":0",
  };
}

function why(end: ProcessEnd, unanswered: unknown, host: string, wasOpen: boolean): RelayError {
  if (isRelayError(unanswered)) return unanswered;
  const said = serverText(end.stderr.trim().slice(-2_000));
  const data = { host, exit_code: end.code, signal: end.signal, stderr: said };
  const what =
    end.code === OWN_FAILURE
      ? "ssh ended"
      : end.code === null
        ? `ssh was ended (${end.signal ?? "not started"})`
        : `the command on ${host} ended with code ${end.code}`;
  return new RelayError(wasOpen ? "link_down" : "link_bringup_failed", said === "" ? what : `${what}: ${said}`, data, undefined, {
    cause: unanswered,
  });
}
