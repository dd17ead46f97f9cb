import path from "node:path";
import { RelayError } from "../../../domain/errors.ts";
import { DIRECTIVES } from "./directives.ts";
import { interpret } from "./interpret.ts";
import { type ConfigFile, readSettings, type Setting, type Settings } from "./read.ts";
import { askSsh } from "./ssh-g.ts";
import type { Account, Named, Target } from "./target.ts";
import { unsupported } from "./unsupported.ts";

/** Where settings of ssh come from, and whose they are. */
export interface ConfigContext {
  readonly account: Account;
  /** The ssh program; null: there is none, and the files are read here. */
  readonly sshProgram: string | null;
  /** CLIO_RELAY_SSH_CONFIG: read in place of the user's and the system's files; `none` reads nothing. */
  readonly configFile: string | null;
  /** Variables and working directory of the request. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly directory: string;
  readonly signal?: AbortSignal;
}

const MAX_HOPS = 8;
/** What a host may be called: nothing that ssh, a shell or a log would take for something else (RFC 1123 names, addresses, aliases). */
const HOST_NAME = /^[A-Za-z0-9_.:%[\]][A-Za-z0-9_.:%@[\]+-]{0,254}$/;

/**
 * The hops to a host, from here to there; the last is the host itself. Each is resolved with the same configuration.
 *
 * @throws RelayError ssh_config_unsupported for a demand that cannot be met; configuration_error for what ssh itself would refuse
 */
export async function resolveRoute(named: Named, context: ConfigContext): Promise<readonly Target[]> {
  return route(named, context, []);
}

async function route(named: Named, context: ConfigContext, inner: readonly string[], given?: readonly Named[]): Promise<Target[]> {
  const target = await resolveTarget(named, context);
  const key = `${target.user}@${target.hostName}:${target.port}`;
  if (inner.includes(key)) throw new RelayError("configuration_error", `ProxyJump leads back to ${key}`, { host: named.host });
  if (inner.length >= MAX_HOPS)
    throw new RelayError("configuration_error", `ProxyJump has more than ${MAX_HOPS} hops`, { host: named.host });
  const jumps = given ?? target.proxyJump;
  if (jumps.length === 0) return [target];
  // As ssh does it: the last host of the list is reached through the others; only the first may have a ProxyJump of its own.
  const before = jumps.slice(0, -1);
  const last = jumps.at(-1)!;
  return [...(await route(last, context, [...inner, key], before.length === 0 ? undefined : before)), { ...target, proxyCommand: null }];
}

/** One host, without the way to it. @throws as resolveRoute */
export async function resolveTarget(named: Named, context: ConfigContext): Promise<Target> {
  if (!HOST_NAME.test(named.host))
    throw new RelayError("configuration_error", `${JSON.stringify(named.host.slice(0, 300))} is no name of a host`);
  const settings =
    context.sshProgram === null ? readFiles(named, context) : await askSsh({ ...context, ...named, program: context.sshProgram });
  await refuseUnsupported(settings, named, context);
  return interpret(settings, { ...context, ...named, locate: (directive) => locate(directive, named, context) });
}

/** @throws RelayError configuration_error for what is no host, but an option or a command */
export function checkHostName(host: string): void {
  if (!HOST_NAME.test(host)) throw new RelayError("configuration_error", `${JSON.stringify(host.slice(0, 300))} is no name of a host`);
}

function readFiles(named: Named, context: ConfigContext): Settings {
  return readSettings({ host: named.host, account: context.account, files: configFiles(context) });
}

function configFiles({ configFile, account }: ConfigContext): ConfigFile[] {
  if (configFile === "none") return [];
  if (configFile !== null) return [{ path: configFile, user: true }];
  return [
    { path: path.join(account.home, ".ssh", "config"), user: true },
    { path: "/etc/ssh/ssh_config", user: false },
  ];
}

async function refuseUnsupported(settings: Settings, named: Named, context: ConfigContext): Promise<void> {
  let usual: Settings | null = null;
  for (const [name, [setting]] of settings) {
    const treatment = DIRECTIVES.get(name);
    const value = setting!.args.join(" ");
    if (treatment?.as === "honoured" || treatment?.as === "ignored") continue;
    // OpenSSH has resolved these already.
    if (treatment?.as === "resolved" && context.sshProgram !== null) continue;
    if (treatment?.unless.includes(value.toLowerCase())) continue;
    if (context.sshProgram !== null) {
      usual ??= await askSsh({ ...context, host: named.host, program: context.sshProgram, configFile: "none" });
      if (usual.get(name)?.[0]?.args.join(" ") === value) continue;
    }
    const because = treatment?.as === "refused" ? treatment.because : "only OpenSSH itself knows what it means";
    throw unsupported(name, because, locate(name, named, context) ?? setting!);
  }
}

/** ssh -G does not tell which file a value came from: our own reading does, as far as it goes. */
function locate(name: string, named: Named, context: ConfigContext): Setting | null {
  try {
    return readFiles(named, context).get(name)?.[0] ?? null;
  } catch {
    return null;
  }
}
