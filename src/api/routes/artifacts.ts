import * as v from "valibot";
import { Artifact } from "../../domain/artifact.ts";
import { RelayError } from "../../domain/errors.ts";
import { LIMITS } from "../../domain/limits.ts";
import { PageQuery, pageOf } from "../../domain/page.ts";
import { qualityOf } from "../accept.ts";
import { contentOf } from "../content-body.ts";
import { json, type Operation, operation } from "../operation.ts";
import { CONDITIONS, conditionsOf, contentHeaders, wantedOf } from "../range.ts";
import type { WorkerServices } from "../worker-services.ts";

/** An artifact with its bytes, as base64 (RFC 4648, section 4). */
const InlineArtifact = v.strictObject({ artifact: Artifact, encoding: v.literal("base64"), data: v.string() });

const prefersJson = (accept: string | undefined): boolean => {
  const [document, bytes] = [qualityOf(accept, "application/json"), qualityOf(accept, "application/octet-stream")];
  return document > bytes;
};

/** @throws RelayError payload_too_large, saying what was not delivered */
function refuseLarge(artifact: Artifact): void {
  const max = LIMITS.artifactInlineBytes;
  if (artifact.size_bytes <= max) return;
  throw new RelayError("payload_too_large", `the artifact has ${artifact.size_bytes} bytes, and a document holds at most ${max}`, {
    content_truncated: true,
    result_available: false,
    delivery: {
      schema_version: "clio-relay.artifact-delivery.v1",
      status: "failed",
      code: "artifact_inline_bound",
      max_inline_bytes: max,
      private_evidence_preserved: true,
      remote_side_effects_may_have_occurred: false,
      message: "the bytes themselves can be had: Accept application/octet-stream, in ranges if need be",
    },
    artifact,
  });
}

const inlineHead = (artifact: Artifact): Buffer => Buffer.from(`${JSON.stringify({ artifact, encoding: "base64" }).slice(0, -1)},"data":"`);
const INLINE_TAIL = '"}';

/** The document as it is written, so that no more of the content is kept than a piece. */
async function* inlineDocument(head: Buffer, content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield head;
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of content) {
    const bytes = Buffer.concat([rest, piece]);
    const whole = bytes.length - (bytes.length % 3);
    yield Buffer.from(bytes.toString("base64", 0, whole), "latin1");
    rest = bytes.subarray(whole);
  }
  yield Buffer.from(`${rest.toString("base64")}${INLINE_TAIL}`);
}

async function inlineAnswer(services: WorkerServices, artifact: Artifact, headers: Record<string, string>): Promise<Response> {
  refuseLarge(artifact);
  const content = await services.artifacts.open(artifact, { start: 0, end: artifact.size_bytes });
  const head = inlineHead(artifact);
  const bytes = head.length + 4 * Math.ceil(artifact.size_bytes / 3) + INLINE_TAIL.length;
  const body = await contentOf(inlineDocument(head, content as unknown as AsyncIterable<Uint8Array>), bytes);
  return new Response(body, { headers: { "content-type": "application/json", ...headers } });
}

/** Whether Want-Repr-Digest asks for SHA-256 (RFC 9530, section 4): a preference from 1 to 10. */
const wantsDigest = (wanted: string | undefined): boolean => /(?:^|,)\s*sha-256=(?:[1-9]|10)\s*(?:,|$)/.test(wanted ?? "");

/**
 * Repr-Digest (RFC 9530, section 3). Who asks for the headers only has the content read for it, so that it is what is there now.
 *
 * @throws RelayError artifact_changed, artifact_unreadable
 */
async function digestOf(services: WorkerServices, artifact: Artifact, verify: boolean): Promise<Record<string, string>> {
  if (verify) {
    const content = await services.artifacts.open(artifact, { start: 0, end: artifact.size_bytes });
    for await (const _ of content as unknown as AsyncIterable<Uint8Array>);
  }
  return { "repr-digest": `sha-256=:${Buffer.from(artifact.sha256, "hex").toString("base64")}:` };
}

/** Artifacts and their content. */
export const artifactRoutes = (services: WorkerServices): Operation[] => {
  const { store } = services;
  return [
    operation({
      method: "get",
      path: "/jobs/:id/artifacts",
      id: "listArtifacts",
      summary: "What the job left behind",
      query: PageQuery,
      answer: { kind: "json", schema: pageOf("artifacts", Artifact) },
      errors: ["job_not_found"],
      handler: async ({ param, query }) => {
        const { items, ...page } = await store.artifacts(param("id"), query);
        return json({ artifacts: items, ...page });
      },
    }),
    operation({
      method: "get",
      path: "/artifacts/:id",
      id: "getArtifact",
      summary: "The artifact record",
      answer: { kind: "json", schema: Artifact },
      errors: ["artifact_not_found"],
      handler: async ({ param }) => json(await store.artifact(param("id"))),
    }),
    operation({
      method: "get",
      path: "/artifacts/:id/content",
      id: "readArtifact",
      summary: "The artifact's bytes, verified on the way",
      headers: {
        ...CONDITIONS,
        Accept: "application/json, preferred to application/octet-stream: the bytes as base64 in a document",
        "Want-Repr-Digest": "sha-256: Repr-Digest is wanted; with HEAD, of the content as it is now",
      },
      answer: { kind: "bytes", status: [200, 206, 304], inline: InlineArtifact },
      errors: [
        "payload_too_large",
        "artifact_not_found",
        "artifact_changed",
        "artifact_unreadable",
        "precondition_failed",
        "range_not_satisfiable",
      ],
      handler: async ({ c, param }) => {
        const artifact = await store.artifact(param("id"));
        const etag = `"${artifact.sha256}"`;
        const vary = { vary: "accept" };
        if (prefersJson(c.req.header("accept"))) return inlineAnswer(services, artifact, vary);
        const range = wantedOf(conditionsOf(c.req.raw), artifact.size_bytes, etag);
        if (range === "unchanged") return new Response(null, { status: 304, headers: { etag, ...vary } });
        // HEAD asks for the headers only: nothing is opened for it.
        const part = range ?? { start: 0, end: artifact.size_bytes };
        const head = c.req.raw.method === "HEAD";
        const body = head ? null : await contentOf(await services.artifacts.open(artifact, part), part.end - part.start);
        const digest = wantsDigest(c.req.header("want-repr-digest")) ? await digestOf(services, artifact, head) : {};
        return new Response(body, {
          status: range === null ? 200 : 206,
          headers: { ...contentHeaders(artifact.size_bytes, range, etag), ...digest, "content-type": "application/octet-stream", ...vary },
        });
      },
    }),
  ];
};
