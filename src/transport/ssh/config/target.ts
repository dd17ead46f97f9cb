import type { Algorithms } from "../../session/algorithms.ts";

/** Whose configuration is read, and on which machine: what passwd(5) and gethostname(2) say, as ssh has it, and not the environment. */
export interface Account {
  readonly name: string;
  readonly home: string;
  /** -1 where there are no numbers for users. */
  readonly uid: number;
  readonly hostname: string;
}

/** A host as somebody names it. */
export interface Named {
  readonly host: string;
  readonly user?: string;
  readonly port?: number;
}

/** How one hop is reached, who it has to be, and who we are there. Paths are absolute, tokens are expanded. */
export interface Target {
  /** As the user named it. */
  readonly host: string;
  readonly hostName: string;
  readonly port: number;
  readonly user: string;

  readonly addressFamily: "any" | "inet" | "inet6";
  readonly bindAddress: string | null;
  readonly connectTimeoutSeconds: number | null;
  /** Hosts to go through, from here to there. */
  readonly proxyJump: readonly Named[];
  /** Shell text whose standard input and output are the connection. */
  readonly proxyCommand: string | null;

  /** The name in known_hosts: HostKeyAlias, or the host's name with its port. */
  readonly hostKeyName: string;
  readonly hostKeyAlias: string | null;
  readonly strictHostKeyChecking: "yes" | "ask" | "accept-new";
  readonly userKnownHostsFiles: readonly string[];
  readonly globalKnownHostsFiles: readonly string[];
  readonly hashKnownHosts: boolean;

  readonly identityFiles: readonly string[];
  readonly identitiesOnly: boolean;
  /** Socket of the agent; `request`: that of SSH_AUTH_SOCK; null: none. */
  readonly identityAgent: string | "request" | null;
  /** In the order in which they are to be tried. */
  readonly methods: readonly ("publickey" | "keyboard-interactive" | "password")[];
  readonly passwordPrompts: number;
  /** Nobody is to be asked. */
  readonly batchMode: boolean;
  readonly minRsaBits: number;
  /** What the configuration leaves of ours, and of the types of keys that may prove who we are. */
  readonly algorithms: Algorithms & { readonly publicKey: readonly string[] };
}
