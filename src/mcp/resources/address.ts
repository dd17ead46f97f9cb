import * as v from "valibot";
import { LOG_STREAMS, LogStream } from "../../domain/log.ts";
import { Id } from "../../domain/primitives.ts";

/** What a resource's address names. */
export type Address =
  | { readonly what: "clusters" }
  | { readonly what: "job"; readonly cluster: string; readonly id: string }
  | { readonly what: "log"; readonly cluster: string; readonly id: string; readonly stream: LogStream }
  | { readonly what: "artifact"; readonly cluster: string; readonly id: string };

const LENGTH = 512;
const isId = (word: string): boolean => v.is(Id, word);

/** What an address names; null where it is none of this program's. Nothing in one is percent-encoded: ids need none. */
export function readAddress(uri: string): Address | null {
  if (uri.length > LENGTH) return null;
  if (uri === "relay://clusters") return { what: "clusters" };
  const [, cluster = "", kind, id = "", , stream] = /^relay:\/\/([^/?#]+)\/(jobs|artifacts)\/([^/?#]+)(\/log\/([a-z]+))?$/.exec(uri) ?? [];
  if (!isId(cluster) || !isId(id)) return null;
  if (kind === "artifacts") return stream === undefined ? { what: "artifact", cluster, id } : null;
  if (stream === undefined) return { what: "job", cluster, id };
  return v.is(LogStream, stream) ? { what: "log", cluster, id, stream } : null;
}

export const jobAddress = (cluster: string, id: string): string => `relay://${cluster}/jobs/${id}`;

/** The forms of addresses (RFC 6570), for resources/templates/list. */
export const TEMPLATES = [
  {
    name: "job",
    title: "A job",
    uriTemplate: "relay://{cluster}/jobs/{id}",
    mimeType: "application/json",
    description: "Where a job stands, as relay_status says it",
  },
  ...LOG_STREAMS.map((stream) => ({
    name: `log-${stream}`,
    title: `What a job wrote to ${stream}`,
    uriTemplate: `relay://{cluster}/jobs/{id}/log/${stream}`,
    mimeType: "text/plain",
    description: "The end of it, at most 64 KiB",
  })),
  {
    name: "artifact",
    title: "A file that a job left",
    uriTemplate: "relay://{cluster}/artifacts/{id}",
    description: "Its bytes, at most 64 KiB; larger ones are read with relay_read_artifact",
  },
] as const;
