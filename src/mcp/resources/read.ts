import { RelayError } from "../../domain/errors.ts";
import { asked } from "../asked.ts";
import type { McpService } from "../service.ts";
import { clustersView } from "../tools/clusters.ts";
import { readPiece } from "../tools/outputs.ts";
import { INLINE_BYTES } from "../views.ts";
import { status } from "../wait.ts";
import type { Address } from "./address.ts";

/** One item of what resources/read answers with. */
export type Contents =
  | { readonly uri: string; readonly mimeType: string; readonly text: string }
  | { readonly uri: string; readonly mimeType: string; readonly blob: string };

const json = (uri: string, value: unknown): Contents => ({ uri, mimeType: "application/json", text: JSON.stringify(value) });

/** @throws RelayError job_not_found, artifact_not_found, cluster_not_found, payload_too_large, and as any operation */
export async function readResource(
  { clusters, profile }: McpService,
  uri: string,
  address: Address,
  signal: AbortSignal,
): Promise<Contents> {
  if (address.what === "clusters") return json(uri, await clustersView(clusters, profile, signal));
  const place = await clusters.named(address.cluster, signal);
  if (address.what === "job") return json(uri, await status(place, address.id, signal));
  if (address.what === "log") {
    const options = { tail: INLINE_BYTES, limit: INLINE_BYTES };
    const read = (bounded: AbortSignal) => place.client.log(address.id, address.stream, { ...options, signal: bounded });
    const { text } = await asked(`the worker of ${address.cluster}`, signal, read);
    return { uri, mimeType: "text/plain", text };
  }
  const piece = await readPiece(place, address.id, 0, INLINE_BYTES, signal, "all");
  if (!piece.eof) {
    const { size_bytes } = piece.artifact;
    throw new RelayError(
      "payload_too_large",
      `the artifact has ${size_bytes} bytes, and a resource is read up to ${INLINE_BYTES}`,
      { size_bytes, max_inline_bytes: INLINE_BYTES },
      "relay_read_artifact reads it in pieces",
    );
  }
  if (piece.encoding === "base64") return { uri, mimeType: "application/octet-stream", blob: piece.data };
  return { uri, mimeType: "text/plain", text: piece.data };
}
