import { RelayError } from "../../domain/errors.ts";
import { sha256Hex } from "../../lib/digest.ts";
import type { Listed } from "../catalogue.ts";
import type { Projection, RemoteListing } from "./federated.ts";
import { listedRemote } from "./remote-tool.ts";

/** All that tools/list has, in its order. */
export interface Listing extends RemoteListing {
  readonly tools: readonly Listed[];
}

/** Tools of one page, and what they take as JSON: as many as can be, since there are clients that read the first page only. */
const PAGE_TOOLS = 1_000;
const PAGE_BYTES = 8 * 1024 * 1024;

const listed = new WeakMap<Projection, readonly Listed[]>();

export function listingOf(fixed: readonly Listed[], projection: Projection): Listing {
  let remote = listed.get(projection);
  if (remote === undefined) {
    remote = projection.tools.map(listedRemote);
    listed.set(projection, remote);
  }
  const tools = [...fixed, ...remote];
  // What a name leads to belongs to it, though nobody is shown it.
  const behind = projection.tools.flatMap(({ routes }) =>
    [...routes.values()].map(({ cluster, server, found }) => [
      cluster,
      server,
      found.execution_fingerprint,
      found.route_revision,
      artifactOf(found),
    ]),
  );
  return { tools, projection, revision: sha256Hex(JSON.stringify([tools.map((tool) => asText(tool).digest), behind])) };
}

const artifactOf = ({
  provenance: { server_artifact: artifact },
}: {
  readonly provenance: { readonly server_artifact: { readonly immutable: boolean; readonly digest?: string } };
}) => (artifact.immutable ? artifact.digest : null);

/**
 * One page of a listing.
 *
 * @param cursor nextCursor of the page before; undefined: the first page
 * @throws RelayError request_validation_failed for what is no cursor; mcp_catalog_changed where the list is another by now
 */
export function pageOf({ tools, revision }: Listing, cursor?: string): { readonly tools: readonly Listed[]; readonly nextCursor?: string } {
  const from = cursor === undefined ? 0 : readCursor(cursor, revision);
  const page: Listed[] = [];
  let bytes = 0;
  for (const tool of tools.slice(from, from + PAGE_TOOLS)) {
    bytes += asText(tool).bytes;
    if (bytes > PAGE_BYTES && page.length > 0) break;
    page.push(tool);
  }
  const next = from + page.length;
  return { tools: page, ...(next < tools.length ? { nextCursor: `${revision}.${next}` } : {}) };
}

/** What a tool is as JSON, found out once. */
const texts = new WeakMap<Listed, { readonly bytes: number; readonly digest: string }>();

function asText(tool: Listed) {
  let known = texts.get(tool);
  if (known === undefined) {
    const text = JSON.stringify(tool);
    known = { bytes: Buffer.byteLength(text), digest: sha256Hex(text) };
    texts.set(tool, known);
  }
  return known;
}

function readCursor(cursor: string, revision: string): number {
  const [, of, from] = /^([0-9a-f]{64})\.(\d{1,7})$/.exec(cursor) ?? [];
  if (of === undefined) throw new RelayError("request_validation_failed", "this is no cursor of tools/list", { issues: [] });
  if (of !== revision) throw catalogChanged(revision);
  return Number(from);
}

export const catalogChanged = (revision: string): RelayError =>
  new RelayError("mcp_catalog_changed", "the tools are others than those that were listed", { catalog_revision: revision });
