import { RelayError } from "../../../domain/errors.ts";
import { parseWhole } from "../../../lib/quantity.ts";
import { ALGORITHMS } from "../../session/algorithms.ts";
import { fitsPattern } from "../patterns.ts";
import { parseJump } from "./jump.ts";
import { expandHost, type Setting, type Settings } from "./read.ts";
import type { Account, Target } from "./target.ts";
import { expandHome, expandTokens, expandVariables, type TokenValues } from "./tokens.ts";
import { unsupported } from "./unsupported.ts";

export interface Interpreting {
  readonly host: string;
  readonly account: Account;
  /** The variables of the request, for `${NAME}`. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Wins over the configuration, as `-l` and `-p` of ssh do. */
  readonly user?: string;
  readonly port?: number;
  /** Where a directive was set, when the settings themselves do not tell. */
  readonly locate?: (directive: string) => Setting | null;
}

/** What ssh looks for where no IdentityFile is named. */
const USUAL_KEYS = ["id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss", "id_dsa"].map(
  (name) => `~/.ssh/${name}`,
);
const USUAL_KNOWN = ["~/.ssh/known_hosts", "~/.ssh/known_hosts2"];
const USUAL_GLOBAL = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"];
const METHODS = ["publickey", "keyboard-interactive", "password"] as const;
/** ssh_config(5) of OpenSSH 9.2. */
const USUAL_RSA_BITS = 1024;

/**
 * What the settings of a host mean.
 *
 * @throws RelayError configuration_error for a value that ssh would not take; ssh_config_unsupported for algorithms of which none is ours
 */
export function interpret(settings: Settings, request: Interpreting): Target {
  const { host, account } = request;
  const all = (name: string): readonly string[] => settings.get(name)?.flatMap(({ args }) => args) ?? [];
  const text = (name: string): string | null => settings.get(name)?.[0]?.args[0] ?? null;
  const bad = (name: string): RelayError => {
    const { file, line } = settings.get(name)![0]!;
    return new RelayError(
      "configuration_error",
      `${file}${line > 0 ? `, line ${line},` : ""} has a value of ${name} that is not understood`,
      {
        path: file,
        directive: name,
      },
    );
  };
  const flag = (name: string, usual: boolean): boolean => {
    const value = text(name)?.toLowerCase();
    if (value === undefined) return usual;
    if (value === "yes" || value === "true") return true;
    if (value === "no" || value === "false") return false;
    throw bad(name);
  };
  const whole = (name: string, usual: number, most: number): number => {
    const value = text(name);
    if (value === null) return usual;
    const number = parseWhole(value);
    if (number === null || number > most) throw bad(name);
    return number;
  };

  const expanded = (name: string): boolean => settings.get(name)?.[0]?.expanded ?? false;
  const named = text("hostname") ?? host;
  const hostName = (expanded("hostname") ? named : expandHost(named, request)).toLowerCase();
  const port = request.port ?? whole("port", 22, 65_535);
  if (port === 0) throw bad("port");
  const user = request.user ?? text("user") ?? account.name;
  const hostKeyAlias = text("hostkeyalias")?.toLowerCase() ?? null;
  const values: TokenValues = { named: host, hostName, port, user, keyAlias: hostKeyAlias ?? host, account };
  const file = (written: string): string => expandVariables(expandTokens(expandHome(written, account), values), request.variables);
  const files = (name: string, usual: readonly string[]): string[] => {
    const named = all(name);
    const kept = (named.length === 0 ? usual : named).filter((one) => one.toLowerCase() !== "none");
    return expanded(name) ? kept : kept.map(file);
  };
  const left = (name: string, ours: readonly string[]): readonly string[] => {
    const kept = restrict(text(name), ours);
    if (kept.length === 0)
      throw unsupported(
        name,
        `of what is supported (${ours.join(", ")}) it leaves nothing`,
        request.locate?.(name) ?? settings.get(name)![0]!,
      );
    return kept;
  };
  const jump = text("proxyjump");
  const command = text("proxycommand");
  return {
    host,
    hostName,
    port,
    user,
    addressFamily: addressFamily(text("addressfamily"), () => bad("addressfamily")),
    bindAddress: text("bindaddress"),
    connectTimeoutSeconds: duration(text("connecttimeout"), () => bad("connecttimeout")),
    proxyJump: jump === null || jump.toLowerCase() === "none" ? [] : jump.split(",").map(parseJump),
    proxyCommand: command === null || command.toLowerCase() === "none" ? null : expandTokens(command, values, "%hnprk"),
    hostKeyName: hostKeyAlias ?? (port === 22 ? hostName : `[${hostName}]:${port}`),
    hostKeyAlias,
    strictHostKeyChecking: strictness(text("stricthostkeychecking"), () => bad("stricthostkeychecking")),
    userKnownHostsFiles: files("userknownhostsfile", USUAL_KNOWN),
    globalKnownHostsFiles: settings.has("globalknownhostsfile") ? all("globalknownhostsfile") : USUAL_GLOBAL,
    hashKnownHosts: flag("hashknownhosts", false),
    identityFiles: files("identityfile", USUAL_KEYS),
    identitiesOnly: flag("identitiesonly", false),
    identityAgent: agent(text("identityagent"), expanded("identityagent") ? (path) => path : file, request.variables),
    methods: methods(text("preferredauthentications"), {
      publickey: text("pubkeyauthentication")?.toLowerCase() !== "no" && text("pubkeyauthentication")?.toLowerCase() !== "false",
      "keyboard-interactive": flag("kbdinteractiveauthentication", true),
      password: flag("passwordauthentication", true),
    }),
    passwordPrompts: whole("numberofpasswordprompts", 3, 100),
    batchMode: flag("batchmode", false),
    minRsaBits: whole("requiredrsasize", USUAL_RSA_BITS, 1 << 20),
    algorithms: {
      kex: left("kexalgorithms", ALGORITHMS.site.kex),
      serverHostKey: left("hostkeyalgorithms", ALGORITHMS.site.serverHostKey),
      cipher: left("ciphers", ALGORITHMS.site.cipher),
      publicKey: left("pubkeyacceptedalgorithms", ALGORITHMS.site.serverHostKey),
    },
  };
}

function addressFamily(value: string | null, bad: () => RelayError): Target["addressFamily"] {
  const lower = value?.toLowerCase() ?? "any";
  if (lower === "any" || lower === "inet" || lower === "inet6") return lower;
  throw bad();
}

/** What a list of algorithms leaves of ours, in our order: `+` and `^` leave all of them, `-` takes away, all by patterns. */
function restrict(list: string | null, ours: readonly string[]): readonly string[] {
  if (list === null || list.startsWith("+") || list.startsWith("^")) return ours;
  const removes = list.startsWith("-");
  const patterns = (removes ? list.slice(1) : list).split(",");
  return ours.filter((name) => patterns.some((pattern) => fitsPattern(name, pattern)) !== removes);
}

/** `no` and `off` would let anybody in the middle in: the question is asked instead. */
function strictness(value: string | null, bad: () => RelayError): Target["strictHostKeyChecking"] {
  switch (value?.toLowerCase() ?? "ask") {
    case "yes":
    case "true":
      return "yes";
    case "accept-new":
      return "accept-new";
    case "ask":
    case "no":
    case "off":
    case "false":
      return "ask";
    default:
      throw bad();
  }
}

const UNITS: Readonly<Record<string, number>> = { "": 1, s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };

/** Seconds of a time of sshd_config(5), TIME FORMATS: `90`, `1m30`, `1h`. `none` is null. */
function duration(value: string | null, bad: () => RelayError): number | null {
  if (value === null || value.toLowerCase() === "none") return null;
  if (!/^(?:\d{1,9}[smhdw]?)+$/i.test(value)) throw bad();
  let seconds = 0;
  for (const [, count, unit] of value.matchAll(/(\d+)([smhdw]?)/gi)) seconds += Number(count) * UNITS[unit!.toLowerCase()]!;
  return seconds === 0 ? null : seconds;
}

/** IdentityAgent: a path, `none`, `SSH_AUTH_SOCK`, or `$NAME` for a variable that has the path. */
function agent(value: string | null, file: (written: string) => string, variables: Interpreting["variables"]): Target["identityAgent"] {
  if (value === null || value === "SSH_AUTH_SOCK") return "request";
  if (value.toLowerCase() === "none") return null;
  if (/^\$[A-Za-z_]/.test(value)) {
    const name = value.slice(1);
    return (Object.hasOwn(variables, name) ? variables[name] : undefined) || null;
  }
  return file(value);
}

function methods(preferred: string | null, enabled: Readonly<Record<(typeof METHODS)[number], boolean>>): Target["methods"] {
  const order = preferred === null ? METHODS : preferred.split(",").map((name) => name.trim());
  return METHODS.filter((method) => enabled[method] && order.includes(method)).sort((a, b) => order.indexOf(a) - order.indexOf(b));
}
