import { PLAIN_COPIES } from "../../lib/system/plain-copies.ts";
import { environmentLines, programOf, unitWord } from "../../transport/service/unit.ts";

/** The machine's unit of a relay-host. */
export const RELAY_HOST_UNIT = "clio-relay-relay-host.service";

export interface RelayHostUnit {
  /** Absolute, where everybody may start it. */
  readonly executable: string;
  /** Options of `relay-host serve` as they were given, but for those of files. */
  readonly listen: readonly string[];
  /** Files of root's, absolute; handed over as credentials. */
  readonly token: string;
  readonly tls: { readonly cert: string; readonly key: string } | null;
  /** Whether a port below 1024 is among those to listen on. */
  readonly lowPort: boolean;
  /** Holds `config/config.toml`, where there is one. */
  readonly home: string;
}

/** What the service may not do or see (systemd.exec(5)). MemoryDenyWriteExecute is not among it: the runtime compiles. */
const HARDENING = [
  "DynamicUser=yes",
  "NoNewPrivileges=yes",
  "ProtectSystem=strict",
  "ProtectHome=yes",
  "PrivateTmp=yes",
  "PrivateDevices=yes",
  "PrivateMounts=yes",
  "ProtectClock=yes",
  "ProtectControlGroups=yes",
  "ProtectHostname=yes",
  "ProtectKernelLogs=yes",
  "ProtectKernelModules=yes",
  "ProtectKernelTunables=yes",
  "ProtectProc=invisible",
  "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
  "RestrictNamespaces=yes",
  "RestrictRealtime=yes",
  "RestrictSUIDSGID=yes",
  "LockPersonality=yes",
  "RemoveIPC=yes",
  "SystemCallArchitectures=native",
  "SystemCallFilter=@system-service",
  "SystemCallFilter=~@privileged @resources",
  "SystemCallErrorNumber=EPERM",
  "UMask=0077",
  "LimitCORE=0",
];

/** A unit of the machine's systemd (systemd.service(5)) for a relay-host: a user made for it, nothing to write to, secrets as credentials. */
export function relayHostUnit({ executable, listen, token, tls, lowPort, home }: RelayHostUnit): string {
  const credential = (name: string): string => `"\${CREDENTIALS_DIRECTORY}/${name}"`;
  const files = [
    "--token-file",
    credential("token"),
    ...(tls === null ? [] : ["--tls-cert", credential("tls-cert"), "--tls-key", credential("tls-key")]),
  ];
  const capability = lowPort ? "CAP_NET_BIND_SERVICE" : "";
  const load = (name: string, file: string): string => `LoadCredential=${name}:${file.replaceAll("%", "%%")}`;
  return [
    "[Unit]",
    "Description=clio-relay relay-host",
    "Wants=network-online.target",
    "After=network-online.target",
    "StartLimitIntervalSec=0",
    "",
    "[Service]",
    "Type=exec",
    `ExecStart=${programOf(executable)} relay-host serve ${[...listen.map((word) => unitWord(word, true)), ...files].join(" ")}`,
    load("token", token),
    ...(tls === null ? [] : [load("tls-cert", tls.cert), load("tls-key", tls.key)]),
    ...environmentLines({ ...PLAIN_COPIES, CLIO_RELAY_HOME: home }),
    "Restart=always",
    "RestartSec=2",
    "TimeoutStopSec=20",
    "KillMode=mixed",
    "LimitNOFILE=65536",
    `CapabilityBoundingSet=${capability}`,
    `AmbientCapabilities=${capability}`,
    ...HARDENING,
    "",
    "[Install]",
    "WantedBy=multi-user.target",
    "",
  ].join("\n");
}
