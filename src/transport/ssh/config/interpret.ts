import { ALGORITHMS } from "../../session/algorithms.ts";
import { fitsPattern } from "../patterns.ts";
import { parseJump } from "./jump.ts";
import { expandHost, type Setting, type Settings } from "./read.ts";
import type { Account, Target } from "./target.ts";
import { expandHome, expandTokens, expandVariables, type TokenValues } from "./tokens.ts";
import { unsupported } from "./unsupported.ts";
import { Values } from "./values.ts";

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
  const values = new Values(settings);
  const where = destination(values, request);
  const { host, hostName, port, user, hostKeyAlias } = where;
  const tokens: TokenValues = { named: host, hostName, port, user, keyAlias: hostKeyAlias ?? host, account: request.account };
  const file = (written: string): string => expandVariables(expandTokens(expandHome(written, request.account), tokens), request.variables);
  return {
    ...where,
    ...way(values, tokens),
    ...trust(values, where, file),
    ...login(values, request.variables, file),
    algorithms: {
      kex: left(values, request, "kexalgorithms", ALGORITHMS.site.kex),
      serverHostKey: left(values, request, "hostkeyalgorithms", ALGORITHMS.site.serverHostKey),
      cipher: left(values, request, "ciphers", ALGORITHMS.site.cipher),
      publicKey: left(values, request, "pubkeyacceptedalgorithms", ALGORITHMS.site.serverHostKey),
    },
  };
}

type Destination = Pick<Target, "host" | "hostName" | "port" | "user" | "hostKeyAlias">;

function destination(values: Values, request: Interpreting): Destination {
  const { host } = request;
  const named = values.text("hostname") ?? host;
  const port = request.port ?? values.whole("port", 22, 65_535);
  if (port === 0) throw values.bad("port");
  return {
    host,
    hostName: (values.isExpanded("hostname") ? named : expandHost(named, request)).toLowerCase(),
    port,
    user: request.user ?? values.text("user") ?? request.account.name,
    hostKeyAlias: values.text("hostkeyalias")?.toLowerCase() ?? null,
  };
}

function way(
  values: Values,
  tokens: TokenValues,
): Pick<Target, "addressFamily" | "bindAddress" | "connectTimeoutSeconds" | "proxyJump" | "proxyCommand"> {
  const command = values.unlessNone("proxycommand");
  return {
    addressFamily: addressFamily(values),
    bindAddress: values.text("bindaddress"),
    connectTimeoutSeconds: values.seconds("connecttimeout"),
    proxyJump: values.unlessNone("proxyjump")?.split(",").map(parseJump) ?? [],
    proxyCommand: command === null ? null : expandTokens(command, tokens, "%hnprk"),
  };
}

/** By what the host is known. */
function trust(
  values: Values,
  { hostName, port, hostKeyAlias }: Destination,
  file: (written: string) => string,
): Pick<Target, "hostKeyName" | "strictHostKeyChecking" | "userKnownHostsFiles" | "globalKnownHostsFiles" | "hashKnownHosts"> {
  return {
    hostKeyName: hostKeyAlias ?? (port === 22 ? hostName : `[${hostName}]:${port}`),
    strictHostKeyChecking: strictness(values),
    userKnownHostsFiles: files(values, "userknownhostsfile", USUAL_KNOWN, file),
    globalKnownHostsFiles: values.has("globalknownhostsfile") ? values.all("globalknownhostsfile") : USUAL_GLOBAL,
    hashKnownHosts: values.flag("hashknownhosts", false),
  };
}

/** By what a person is let in. */
function login(
  values: Values,
  variables: Interpreting["variables"],
  file: (written: string) => string,
): Pick<Target, "identityFiles" | "identitiesOnly" | "identityAgent" | "methods" | "passwordPrompts" | "batchMode" | "minRsaBits"> {
  const pubkey = values.text("pubkeyauthentication")?.toLowerCase();
  return {
    identityFiles: files(values, "identityfile", USUAL_KEYS, file),
    identitiesOnly: values.flag("identitiesonly", false),
    identityAgent: agent(values.text("identityagent"), values.isExpanded("identityagent") ? (path) => path : file, variables),
    methods: methods(values.text("preferredauthentications"), {
      // It has other values besides these.
      publickey: pubkey !== "no" && pubkey !== "false",
      "keyboard-interactive": values.flag("kbdinteractiveauthentication", true),
      password: values.flag("passwordauthentication", true),
    }),
    passwordPrompts: values.whole("numberofpasswordprompts", 3, 100),
    batchMode: values.flag("batchmode", false),
    minRsaBits: values.whole("requiredrsasize", USUAL_RSA_BITS, 1 << 20),
  };
}

/** The files of a list, but for `none`. */
function files(values: Values, name: string, usual: readonly string[], file: (written: string) => string): string[] {
  const named = values.all(name);
  const kept = (named.length === 0 ? usual : named).filter((one) => one.toLowerCase() !== "none");
  return values.isExpanded(name) ? kept : kept.map(file);
}

function addressFamily(values: Values): Target["addressFamily"] {
  const lower = values.text("addressfamily")?.toLowerCase() ?? "any";
  if (lower === "any" || lower === "inet" || lower === "inet6") return lower;
  throw values.bad("addressfamily");
}

/** What a choice of algorithms leaves of ours. @throws RelayError ssh_config_unsupported where that is nothing */
function left(values: Values, { locate }: Interpreting, name: string, ours: readonly string[]): readonly string[] {
  const kept = restrict(values.text(name), ours);
  if (kept.length > 0) return kept;
  throw unsupported(name, `of what is supported (${ours.join(", ")}) it leaves nothing`, locate?.(name) ?? values.where(name));
}

/** What a list of algorithms leaves of ours, in our order: `+` and `^` leave all of them, `-` takes away, all by patterns. */
function restrict(list: string | null, ours: readonly string[]): readonly string[] {
  if (list === null || list.startsWith("+") || list.startsWith("^")) return ours;
  const removes = list.startsWith("-");
  const patterns = (removes ? list.slice(1) : list).split(",");
  return ours.filter((name) => patterns.some((pattern) => fitsPattern(name, pattern)) !== removes);
}

/** `no` and `off` would let anybody in the middle in: the question is asked instead. */
function strictness(values: Values): Target["strictHostKeyChecking"] {
  switch (values.text("stricthostkeychecking")?.toLowerCase() ?? "ask") {
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
      throw values.bad("stricthostkeychecking");
  }
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
