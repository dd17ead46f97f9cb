/** Arguments of a directive: one, several, the rest of the line as it is, or one for each occurrence, all of which count. */
export type Takes = "one" | "many" | "rest" | "each";

/** What becomes of a directive of ssh_config(5). */
export type Treatment =
  /** It decides how a connection is made. */
  | { readonly as: "honoured"; readonly takes: Takes }
  /** Part of reading the configuration; nothing is left of it afterwards. Only OpenSSH's own resolution knows values beyond `unless`. */
  | { readonly as: "resolved"; readonly unless: readonly string[] }
  /** About something that is not done here, or that cannot weaken what is done. */
  | { readonly as: "ignored"; readonly because: string }
  /** A demand that cannot be met, unless its value is one of these, which demand nothing. */
  | { readonly as: "refused"; readonly because: string; readonly unless: readonly string[] };

const one: Treatment = { as: "honoured", takes: "one" };
const many: Treatment = { as: "honoured", takes: "many" };
const rest: Treatment = { as: "honoured", takes: "rest" };
const each: Treatment = { as: "honoured", takes: "each" };
const ignored = (because: string): Treatment => ({ as: "ignored", because });
const refused = (because: string, ...unless: string[]): Treatment => ({ as: "refused", because, unless });
const resolved = (...unless: string[]): Treatment => ({ as: "resolved", unless });

const MULTIPLEXING = ignored("one connection is held, and nothing else shares it");
const TERMINAL = ignored("no terminal and no command of the user runs on the connection");
const FORWARDS = ignored("only the relay's own channels are opened");
const MESSAGES = ignored("it is about ssh's own messages");
const LIVENESS = ignored("the link has pings and bounds of its own");
const STORING = ignored("nothing is stored for other programs");
const OTHER_METHOD = ignored('the method is passed over and the others are tried; ssh_client = "openssh" has it');
const STRICTER = ignored("host keys are always checked, more strictly");
const OLD = ignored("OpenSSH has given it up");

/** Every directive that is known, by its name in lower case (ssh_config(5) of OpenSSH 10, Debian's and Apple's additions). */
export const DIRECTIVES: ReadonlyMap<string, Treatment> = new Map(
  Object.entries({
    hostname: one,
    port: one,
    user: one,
    identityfile: each,
    identitiesonly: one,
    identityagent: one,
    userknownhostsfile: many,
    globalknownhostsfile: many,
    stricthostkeychecking: one,
    hostkeyalias: one,
    hashknownhosts: one,
    proxyjump: one,
    proxycommand: rest,
    connecttimeout: one,
    addressfamily: one,
    bindaddress: one,
    preferredauthentications: one,
    pubkeyauthentication: one,
    passwordauthentication: one,
    kbdinteractiveauthentication: one,
    numberofpasswordprompts: one,
    batchmode: one,
    ciphers: one,
    kexalgorithms: one,
    hostkeyalgorithms: one,
    pubkeyacceptedalgorithms: one,
    requiredrsasize: one,

    ignoreunknown: ignored("it is about reading the configuration"),
    canonicalizehostname: resolved("no", "false", "none"),
    canonicaldomains: resolved("none"),
    canonicalizefallbacklocal: resolved("yes", "no", "true", "false"),
    canonicalizemaxdots: resolved("0", "1", "2", "3", "4", "5"),
    canonicalizepermittedcnames: resolved("none"),
    tag: resolved("none"),

    certificatefile: refused("certificates of users are not supported", "none"),
    bindinterface: refused("a connection cannot be tied to an interface"),
    knownhostscommand: refused("host keys come from files only", "none"),
    revokedhostkeys: refused("key revocation lists are not read", "none"),
    verifyhostkeydns: refused("host keys are not looked up in the DNS", "no", "false", "ask"),
    pkcs11provider: refused("PKCS#11 tokens are not supported", "none"),
    securitykeyprovider: refused("FIDO authenticators are not supported", "internal", "none"),
    proxyusefdpass: refused("descriptors are not taken over from a ProxyCommand", "no", "false"),
    refuseconnection: refused("the configuration itself refuses this host", "no", "none"),

    controlmaster: MULTIPLEXING,
    controlpath: MULTIPLEXING,
    controlpersist: MULTIPLEXING,

    requesttty: TERMINAL,
    remotecommand: TERMINAL,
    sessiontype: TERMINAL,
    escapechar: TERMINAL,
    enableescapecommandline: TERMINAL,
    permitlocalcommand: TERMINAL,
    localcommand: TERMINAL,
    sendenv: TERMINAL,
    setenv: TERMINAL,
    stdinnull: TERMINAL,
    forkafterauthentication: TERMINAL,
    obscurekeystroketiming: TERMINAL,

    localforward: FORWARDS,
    remoteforward: FORWARDS,
    dynamicforward: FORWARDS,
    permitremoteopen: FORWARDS,
    clearallforwardings: FORWARDS,
    exitonforwardfailure: FORWARDS,
    gatewayports: FORWARDS,
    forwardagent: FORWARDS,
    forwardx11: FORWARDS,
    forwardx11trusted: FORWARDS,
    forwardx11timeout: FORWARDS,
    xauthlocation: FORWARDS,
    streamlocalbindmask: FORWARDS,
    streamlocalbindunlink: FORWARDS,
    tunnel: FORWARDS,
    tunneldevice: FORWARDS,

    loglevel: MESSAGES,
    logverbose: MESSAGES,
    syslogfacility: MESSAGES,
    visualhostkey: MESSAGES,
    fingerprinthash: MESSAGES,
    warnweakcrypto: MESSAGES,
    versionaddendum: MESSAGES,

    serveraliveinterval: LIVENESS,
    serveralivecountmax: LIVENESS,
    tcpkeepalive: LIVENESS,
    channeltimeout: LIVENESS,
    rekeylimit: LIVENESS,
    connectionattempts: ignored("each dial is one attempt, and counted"),
    ipqos: ignored("packets are not marked"),
    compression: ignored("it slows the link down"),

    addkeystoagent: STORING,
    updatehostkeys: STORING,
    usekeychain: STORING,

    gssapiauthentication: OTHER_METHOD,
    gssapidelegatecredentials: OTHER_METHOD,
    gssapikeyexchange: OTHER_METHOD,
    gssapikexalgorithms: OTHER_METHOD,
    gssapiclientidentity: OTHER_METHOD,
    gssapiserveridentity: OTHER_METHOD,
    gssapirenewalforcesrekey: OTHER_METHOD,
    gssapitrustdns: OTHER_METHOD,
    hostbasedauthentication: OTHER_METHOD,
    hostbasedacceptedalgorithms: OTHER_METHOD,
    enablesshkeysign: OTHER_METHOD,
    kbdinteractivedevices: ignored("the server decides which prompts it shows"),

    checkhostip: STRICTER,
    nohostauthenticationforlocalhost: STRICTER,
    macs: ignored("the ciphers in use authenticate what they encrypt"),
    casignaturealgorithms: ignored("certificates are not accepted at all"),

    protocol: OLD,
    cipher: OLD,
    compressionlevel: OLD,
    useprivilegedport: OLD,
    useroaming: OLD,
    rsaauthentication: OLD,
    rhostsauthentication: OLD,
    rhostsrsaauthentication: OLD,
    fallbacktorsh: OLD,
    usersh: OLD,
    globalknownhostsfile2: OLD,
    userknownhostsfile2: OLD,
    afstokenpassing: OLD,
    kerberosauthentication: OLD,
    kerberostgtpassing: OLD,
  } satisfies Record<string, Treatment>),
);

const ALIASES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    challengeresponseauthentication: "kbdinteractiveauthentication",
    skeyauthentication: "kbdinteractiveauthentication",
    tisauthentication: "kbdinteractiveauthentication",
    dsaauthentication: "pubkeyauthentication",
    identityfile2: "identityfile",
    keepalive: "tcpkeepalive",
    pubkeyacceptedkeytypes: "pubkeyacceptedalgorithms",
    hostbasedkeytypes: "hostbasedacceptedalgorithms",
    smartcarddevice: "pkcs11provider",
  }),
);

/** The name under which a directive is in the table, whatever its case and age. */
export function directiveName(written: string): string {
  const lower = written.toLowerCase();
  return ALIASES.get(lower) ?? lower;
}
