import fs from "node:fs";
import path from "node:path";
import { isRelayError, RelayError } from "../../../domain/errors.ts";
import { asOneLine } from "../../../lib/text/safe-text.ts";
import { systemClock } from "../../../lib/waiting/clock.ts";
import { dial, settleFailure, startInside } from "../../dial.ts";
import type { LedgerLine } from "../../ledger.ts";
import { type ProcessEnd, type ProcessStream, withoutCredentials } from "../../process-stream.ts";
import { shellWord } from "../../script/shell-word.ts";
import { parseJump } from "../config/jump.ts";
import type { Setting, Settings } from "../config/read.ts";
import { type ConfigContext, checkHostName } from "../config/resolve.ts";
import { askSsh } from "../config/ssh-g.ts";
import type { HeldConnection } from "../held.ts";
import { serverText } from "../prompt.ts";
import { contextOf, type SshRequest } from "../request.ts";
import { AskpassServer } from "./askpass-server.ts";
import { configText, isCareless } from "./config-file.ts";
import { openMuxSession } from "./mux-control.ts";
import type { Holder } from "./mux-session.ts";
import { failureSaid } from "./said.ts";

export interface OpenSshOptions {
  /** What starts `runAskpass` of askpass-program.ts: the executable and its hidden verb. */
  readonly askpass: readonly string[];
  /** A directory of the user's alone on this machine, with room for a socket's name. */
  readonly privateDirectory: string;
}

interface OpenSshRequest extends SshRequest, OpenSshOptions {}

/** ssh(1), EXIT STATUS: its own failures. */
const OWN_FAILURE = 255;

/**
 * Holds ssh, and ends it when nobody holds this any more: without a command ssh does not look at its standard input, and would outlive the daemon.
 * A shell gives what it starts in the background no input, so its own is kept as descriptor 3. ssh is asked until it has ended: a TERM that comes just before it
 * waits is noticed only when it wakes up for another reason.
 */
const HOLD = `exec 3<&0
"$@" 3<&- >/dev/null &
ssh=$!
{ read -r _ <&3; while kill "$ssh"; do sleep 1; done; } >/dev/null 2>&1 &
watch=$!
exec 3<&-
wait "$ssh"
code=$?
kill "$watch" 2>/dev/null
exit "$code"
`;

/**
 * Start the user's ssh as the holder of one connection, and open a session over its control socket. Their own configuration applies but for multiplexing, terminals, forwards and
 * local commands; its questions go to the prompter. Closing the session ends ssh.
 *
 * @throws RelayError configuration_error (no ssh, one that is too old, or a configuration that it does not take), ssh_config_unsupported (pins),
 *   authorization_required, prompt_cancelled, local_file_unusable; host_key_changed, host_key_refused, authentication_failed, passphrase_wrong, host_unreachable
 *   where ssh says so (said.ts), else link_bringup_failed, each with ssh's own words; platform_unsupported on Windows, whose ssh
 *   has no control socket; the signal's reason when the request ends
 */
export async function connectOpenSsh(given: SshRequest, options: OpenSshOptions): Promise<HeldConnection> {
  const request = { ...given, ...options };
  const { entry, config } = request;
  const program = config.sshProgram;
  if (process.platform === "win32") {
    throw new RelayError(
      "platform_unsupported",
      `the ssh of Windows cannot hold a connection for others, and ${entry.cluster} has ssh_client = "openssh"`,
    );
  }
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
  return start(prepared, { settings, program, request, inside: null });
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

/** How ssh is to be started. */
interface Start {
  readonly settings: Settings;
  readonly program: string;
  readonly request: OpenSshRequest;
  /** The connection that it is to go through, and where to; null: it opens one of its own. */
  readonly inside: Inside | null;
}

interface Inside {
  readonly directory: string;
  readonly node: string;
  readonly outer: HeldConnection;
}

/** An ssh that was started, and its line in the ledger; one inside a connection has none. */
interface Started {
  readonly stream: ProcessStream;
  readonly line: LedgerLine | null;
}

async function start(prepared: Prepared, how: Start): Promise<HeldConnection> {
  const { request, inside } = how;
  const { stream, line } = await startProcess(prepared, how).catch((error: unknown) => {
    prepared.clean();
    throw error;
  });
  const { signal } = request.attending!;
  let open = false;
  const giveUp = (): void => void stream.destroy();
  prepared.onUnanswered(giveUp);
  signal.addEventListener("abort", giveUp, { once: true });
  const over = stream.ended.then((end) => {
    prepared.clean();
    signal.removeEventListener("abort", giveUp);
    const unanswered = prepared.unanswered() ?? (open ? undefined : signal.reason);
    if (isRelayError(unanswered)) return unanswered;
    const host = inside?.node ?? request.entry.host;
    // NumberOfPasswordPrompts is also how often a passphrase is asked for (ssh_config(5)).
    const tries = Number(firstOf(how.settings, "numberofpasswordprompts") ?? 3);
    return why(end, { host, open, passphraseWrong: prepared.askpass.passphrases >= tries, cause: unanswered });
  });
  const holder: Holder = { over, end: giveUp };
  try {
    const session = await openMuxSession(controlSocket(prepared.directory), holder, systemClock);
    open = true;
    // From here on it is held for everybody, and not for the request that brought it up.
    signal.removeEventListener("abort", giveUp);
    line?.settle("open");
    session.closed
      .then((error) => (inside === null ? line?.ended(error?.code ?? null) : inside.outer.session.close()))
      .catch(() => undefined);
    const ledgerSeq = inside?.outer.ledgerSeq ?? line!.seq;
    const held: HeldConnection = { session, ledgerSeq, goOn: (node, next) => goOn(prepared, how, { node, outer: held }, next) };
    return held;
  } catch (caught) {
    giveUp();
    const own = await over;
    const error = isRelayError(caught) ? caught : own;
    if (line !== null) settleFailure(line, signal, error);
    throw error;
  }
}

async function startProcess(prepared: Prepared, { settings, program, request, inside }: Start): Promise<Started> {
  const { entry, attending, ledger, config, notice } = request;
  const words = [program, ...argumentsOf(prepared, request, inside === null ? [] : through(program, request, inside))];
  const process = {
    argv: ["/bin/sh", "-c", HOLD, "ssh", ...words] as [string, ...string[]],
    env: environment(prepared, request),
    directory: config.directory,
    onStderr: (text: string) => notice(serverText(text)),
  };
  if (inside !== null) return { stream: startInside(process), line: null };
  const named = (name: "user" | "hostname" | "port"): string => firstOf(settings, name) ?? "?";
  const { duplex, line } = await dial({
    destination: { kind: "process", what: "ssh", ...process },
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
  return { stream: duplex as ProcessStream, line };
}

/** Another ssh whose connection is a channel of the one that is there; the user's settings for the cluster's host apply. */
async function goOn(outer: Prepared, how: Start, to: Omit<Inside, "directory">, next: SshRequest): Promise<HeldConnection> {
  const { entry, attending } = next;
  checkHostName(to.node);
  if (attending === null || attending.signal.aborted) {
    throw new RelayError("authorization_required", "going on to another login node may ask for something, and nobody is there", {
      cluster: entry.cluster,
    });
  }
  const request = { ...how.request, ...next };
  const prepared = await prepare(how.settings, request, contextOf(request));
  return start(prepared, { ...how, request, inside: { ...to, directory: outer.directory } });
}

const configFile = (directory: string): string => path.join(directory, "config");
const controlSocket = (directory: string): string => path.join(directory, "m");

/** Where the socket is gone ssh would open a connection by itself: its ProxyCommand then ends at once. */
function through(program: string, { entry }: OpenSshRequest, { directory, node }: Inside): string[] {
  const closed = ["-o", "ControlMaster=no", "-o", "ProxyCommand=false"];
  const client = [program, "-F", configFile(directory), "-S", controlSocket(directory), ...closed, "-W"];
  // ssh_config(5), TOKENS
  const command = `${client.map((word) => shellWord(word).replaceAll("%", "%%")).join(" ")} '[%h]:%p' -- ${shellWord(entry.host)}`;
  return ["-o", `ProxyCommand=${command}`, "-o", `HostName=${node}`, "-o", "Port=22", "-o", "CanonicalizeHostname=no"];
}

function argumentsOf({ directory }: Prepared, { entry }: OpenSshRequest, more: readonly string[]): string[] {
  return [
    "-M",
    "-S",
    controlSocket(directory),
    "-N",
    "-T",
    "-F",
    configFile(directory),
    ...more,
    ...(entry.user === undefined ? [] : ["-l", entry.user]),
    ...(entry.port === undefined || more.length > 0 ? [] : ["-p", String(entry.port)]),
    "--",
    entry.host,
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

interface Circumstances {
  readonly host: string;
  /** Whether it was open before. */
  readonly open: boolean;
  /** Whether a key's passphrase was asked for as often as ssh does. */
  readonly passphraseWrong: boolean;
  readonly cause: unknown;
}

function why(end: ProcessEnd, { host, open, passphraseWrong, cause }: Circumstances): RelayError {
  const said = serverText(end.stderr.trim().slice(-2_000));
  const data = { host, exit_code: end.code, signal: end.signal, stderr: said };
  const what =
    end.code === OWN_FAILURE
      ? "ssh ended"
      : end.code === null
        ? `ssh was ended (${end.signal ?? "not started"})`
        : `ssh ended with code ${end.code}`;
  const known = end.code === OWN_FAILURE ? failureSaid(serverText(end.stderr)) : null;
  const code = known === "authentication_failed" && passphraseWrong ? "passphrase_wrong" : (known ?? "link_bringup_failed");
  return new RelayError(open ? "link_down" : code, said === "" ? what : `${what}: ${asOneLine(said)}`, data, undefined, { cause });
}
