import { RelayError } from "../../../domain/errors.ts";
import { asOneLine } from "../../../lib/text/safe-text.ts";
import { withoutCredentials } from "../../process-stream.ts";
import { untilAborted } from "../../until-aborted.ts";
import { DIRECTIVES, directiveName } from "./directives.ts";
import type { Setting, Settings } from "./read.ts";

export interface SshG {
  /** The ssh program. */
  readonly program: string;
  /** As the user named it. */
  readonly host: string;
  readonly user?: string;
  readonly port?: number;
  /** `-F`; null: ssh's own files. */
  readonly configFile: string | null;
  /** Variables of the request, which the configuration may name and its commands may use. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
  readonly signal?: AbortSignal;
}

const MAX_OUTPUT = 1024 * 1024;
/** What `ssh -G` prints with its tokens replaced; the others come as they were written (ssh.c). */
const EXPANDED: ReadonlySet<string> = new Set(["hostname", "userknownhostsfile", "identityagent", "hostkeyalias"]);
/** Commands of `Match exec` run meanwhile, and names may be looked up for CanonicalizeHostname. */
const WITHIN_MS = 30_000;

/**
 * What `ssh -G` says of a host (ssh(1)): every directive with its value, defaults included.
 *
 * @throws RelayError configuration_error with ssh's own words, when it refuses the configuration or does not end
 */
export async function askSsh(request: SshG): Promise<Settings> {
  const argv = [request.program, "-G"];
  if (request.configFile !== null) argv.push("-F", request.configFile);
  if (request.user !== undefined) argv.push("-l", request.user);
  if (request.port !== undefined) argv.push("-p", String(request.port));
  const { code, stdout, stderr } = await run([...argv, "--", request.host], request);
  if (code !== 0) {
    throw new RelayError(
      "configuration_error",
      `ssh does not take its configuration for ${request.host}: ${asOneLine(stderr.slice(-1_000))}`,
      {
        host: request.host,
      },
    );
  }
  return parse(stdout, request.configFile ?? "the ssh configuration");
}

async function run(argv: string[], request: SshG): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = Bun.spawn(argv, {
    cwd: request.directory,
    env: withoutCredentials(request.variables),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  const end = (): void => endGroup(child.pid);
  const limit = AbortSignal.timeout(WITHIN_MS);
  const signal = request.signal === undefined ? limit : AbortSignal.any([request.signal, limit]);
  const said = Promise.all([bounded(child.stdout, end), bounded(child.stderr, end), child.exited]);
  try {
    // What a command of the configuration has started may hold the outputs, in whatever group it is.
    const [stdout, stderr] = await untilAborted(said, signal);
    return { code: child.exitCode, stdout, stderr };
  } catch (error) {
    end();
    if (!limit.aborted || request.signal?.aborted === true) throw error;
    throw new RelayError(
      "configuration_error",
      `ssh -G ${request.host} has not ended within ${WITHIN_MS / 1_000} s: a command of \`Match exec\` in the ssh configuration may hang`,
      { host: request.host },
    );
  }
}

/** End a child that leads a process group, and what it started. */
function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // gone
  }
}

async function bounded(stream: ReadableStream<Uint8Array>, exceeded: () => void): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length <= MAX_OUTPUT) chunks.push(chunk);
    else exceeded();
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parse(output: string, file: string): Settings {
  const settings = new Map<string, readonly Setting[]>();
  for (const line of output.split("\n")) {
    const at = line.indexOf(" ");
    const name = directiveName(at < 0 ? line : line.slice(0, at));
    const value = at < 0 ? "" : line.slice(at + 1).trim();
    if (name === "" || name === "host" || value === "") continue;
    const treatment = DIRECTIVES.get(name);
    const takes = treatment?.as === "honoured" ? treatment.takes : "one";
    const setting: Setting = { args: takes === "many" ? value.split(/\s+/) : [value], file, line: 0, expanded: EXPANDED.has(name) };
    settings.set(name, takes === "each" ? [...(settings.get(name) ?? []), setting] : [setting]);
  }
  return settings;
}
