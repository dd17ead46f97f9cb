import path from "node:path";
import { RelayError } from "../../domain/errors.ts";
import type { FrpPlace, FrpRoom } from "../../domain/frp.ts";
import { makePrivateDirectory, writeFileAtomic } from "../../lib/files/atomic-file.ts";
import { authorities, type CaFile } from "../outbound/certificates.ts";
import { proxyFor } from "../outbound/proxy-choice.ts";
import type { FrpServer } from "./configuration.ts";

/** What one side has around it. */
export interface FrpSurroundings {
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly caFiles: readonly CaFile[];
  /** For what frpc has to read; private. */
  readonly directory: string;
  /** Of the cluster. */
  readonly cluster: string;
}

/**
 * How a frpc of this side reaches the server. Without a file of authorities it would take any certificate, so that of a TLS edge is held against the room's own
 * authorities, or against everybody's.
 *
 * @throws RelayError configuration_error where files or variables name something that cannot be used; local_file_unusable
 */
export function frpServer(frp: FrpPlace, room: FrpRoom, around: FrpSurroundings): FrpServer {
  const { server_addr: address, server_port: port, protocol, stun_server: stunServer } = frp;
  const proxy = proxyUrl(address, port, protocol === "wss", around);
  return {
    address,
    port,
    protocol,
    token: room.token,
    stunServer,
    ...(protocol === "wss" ? { caFile: caFile(room, around) } : {}),
    ...(proxy === null ? {} : { proxyUrl: proxy }),
  };
}

function proxyUrl(host: string, port: number, tls: boolean, { variables }: FrpSurroundings): string | null {
  const proxy = proxyFor({ host, port, tls }, variables);
  if (proxy === null) return null;
  if (proxy.tls) {
    throw new RelayError("configuration_error", `frpc speaks to proxies without TLS only, and the one for ${host} is ${proxy.text}`, {
      proxy: proxy.text,
    });
  }
  const credentials = proxy.credentials?.split(/:(.*)/s).slice(0, 2).map(encodeURIComponent).join(":");
  return credentials === undefined ? proxy.text : proxy.text.replace("://", `://${credentials}@`);
}

function caFile(room: FrpRoom, { caFiles, directory, cluster }: FrpSurroundings): string {
  const file = path.join(directory, `${cluster}-authorities.pem`);
  try {
    makePrivateDirectory(directory);
    writeFileAtomic(file, room.ca ?? `${authorities(caFiles).join("\n")}\n`);
  } catch (cause) {
    if (cause instanceof RelayError) throw cause;
    throw new RelayError("local_file_unusable", `${file} cannot be written`, { path: file }, undefined, { cause });
  }
  return file;
}
