import * as v from "valibot";
import { type ErrorCode, RelayError } from "../../domain/errors.ts";
import {
  ContentAnswer,
  ContentKey as ContentKeySchema,
  ContentQuery,
  InputIngest,
  InputRecord,
  NewInputArtifact,
  Upload,
  UploadKey,
} from "../../domain/input.ts";
import { LIMITS } from "../../domain/limits.ts";
import { Sha256 } from "../../domain/primitives.ts";
import { flag, whole } from "../../domain/query.ts";
import { Turns } from "../../lib/waiting/turns.ts";
import { ownName } from "../called.ts";
import { json, type Operation, operation } from "../operation.ts";
import { parse, readBytes, readJsonBody } from "../request.ts";
import type { WorkerServices } from "../worker-services.ts";

const SizeQuery = v.strictObject({ size_bytes: whole(0), provisional: v.optional(flag) });
const PieceQuery = v.strictObject({ ...SizeQuery.entries, offset: whole(0) });

/** What a request with an input has besides the content: names and digests. */
const AROUND_BYTES = 16 * 1024;

const ROOM: readonly ErrorCode[] = ["storage_admission_refused", "queue_unavailable", "shutting_down"];
const COMING: readonly ErrorCode[] = ["input_ingest_refused", "input_ingest_conflict", "input_ingest_unavailable"];

/** Files that clients hand over; docs/staging.md. */
export const inputRoutes = (services: WorkerServices): Operation[] => [
  ...uploadRoutes(services),
  ...contentRoutes(services),
  ...recordRoutes(services),
];

/** Where an upload begins, stands, and is given up. */
const uploadRoutes = (services: WorkerServices): Operation[] => {
  const { inputs } = services;
  return [
    operation({
      method: "post",
      path: "/input-contents/query",
      id: "queryInputContents",
      summary: "How much of some contents is there",
      body: ContentQuery,
      answer: { kind: "json", schema: ContentAnswer },
      handler: async ({ body }) => json({ contents: await inputs.stand(body.contents) }),
    }),
    operation({
      method: "post",
      path: "/input-uploads",
      id: "beginInputUpload",
      summary: "Begin to upload a content, or find out where to go on",
      body: UploadKey,
      answer: { kind: "json", schema: Upload, status: [201, 200] },
      errors: [...ROOM, "input_ingest_refused"],
      handler: async ({ body }) => {
        refuseWhileDraining(services);
        const { upload, begun } = await inputs.begin(body);
        return json(upload, begun ? 201 : 200, { location: `input-uploads/${upload.sha256}?size_bytes=${upload.size_bytes}` });
      },
    }),
    operation({
      method: "get",
      path: "/input-uploads/:sha256",
      id: "getInputUpload",
      summary: "How much of a content is there",
      query: SizeQuery,
      answer: { kind: "json", schema: Upload },
      handler: async ({ param, query }) => json((await inputs.stand([keyOf(param("sha256"), query)]))[0]),
    }),
    operation({
      method: "delete",
      path: "/input-uploads/:sha256",
      id: "giveUpInputUpload",
      summary: "Give up what has come of a content that is not complete",
      query: SizeQuery,
      answer: { kind: "json", schema: Upload },
      handler: async ({ param, query }) => json(await inputs.giveUp(keyOf(param("sha256"), query))),
    }),
  ];
};

/** The bytes of an upload, and their end. */
const contentRoutes = (services: WorkerServices): Operation[] => {
  const { inputs } = services;
  return [
    operation({
      method: "put",
      path: "/input-uploads/:sha256/content",
      id: "putInputPiece",
      summary: "The next bytes of a content, at most 1 MiB",
      query: PieceQuery,
      reads: "bytes",
      answer: { kind: "json", schema: Upload },
      errors: [...ROOM, ...COMING, "payload_too_large", "request_timeout"],
      handler: async ({ c, param, query }) => {
        refuseWhileDraining(services);
        const read = async () => new Uint8Array(await readBytes(c.req.raw, LIMITS.inputChunkBytes));
        return json(await inputs.piece(keyOf(param("sha256"), query), query.offset, read));
      },
    }),
    operation({
      method: "post",
      path: "/input-uploads/:sha256/completion",
      id: "completeInputUpload",
      summary: "Say the digest of what came under a provisional name",
      body: ContentKeySchema,
      answer: { kind: "json", schema: Upload },
      errors: [...ROOM, ...COMING],
      handler: async ({ param, body }) => {
        refuseWhileDraining(services);
        return json(await inputs.complete(nameIn(param("sha256")), body));
      },
    }),
  ];
};

/** Artifacts of contents that are there, or that come along. */
const recordRoutes = (services: WorkerServices): Operation[] => {
  const { inputs } = services;
  const turns = new Turns(1, LIMITS.inputIngestsWaiting);
  const full = () => new RelayError("input_ingest_conflict", `${LIMITS.inputIngestsWaiting} inputs wait for their turn already`);
  const common = {
    method: "post",
    answer: { kind: "json", schema: InputRecord, status: [201, 200] },
    errors: [...ROOM, ...COMING, "job_submission_conflict", "job_cluster_mismatch"],
  } as const;
  return [
    operation({
      ...common,
      path: "/input-artifacts",
      id: "recordInputArtifact",
      summary: "Make an artifact of content that was uploaded",
      body: NewInputArtifact,
      handler: async ({ c, body }) => {
        refuseWhileDraining(services);
        return recorded(await inputs.record(forUs(services, ownName(c, services.cluster, body.cluster), body), null));
      },
    }),
    operation({
      ...common,
      path: "/input-artifacts/ingest",
      id: "ingestInputArtifact",
      summary: "Hand over a small file, content included, as an artifact",
      body: InputIngest,
      reads: "json",
      errors: [...common.errors, "http_request_malformed", "payload_too_large", "request_timeout"],
      handler: ({ c }) =>
        turns.run(async () => {
          refuseWhileDraining(services);
          const maxBytes = base64Length(inputs.inlineMaxBytes) + AROUND_BYTES;
          const body = parse(InputIngest, await readJsonBody(c.req.raw, maxBytes), "body");
          const request = forUs(services, ownName(c, services.cluster, body.cluster), body);
          return recorded(await inputs.record(request, contentOf(body, inputs.inlineMaxBytes)));
        }, full),
    }),
  ];
};

const nameIn = (path: string): string => parse(Sha256, path, "the digest in the path");

const keyOf = (
  path: string,
  { size_bytes, provisional }: { readonly size_bytes: number; readonly provisional?: boolean | undefined },
): UploadKey => ({
  sha256: nameIn(path),
  size_bytes,
  ...(provisional ? { provisional } : {}),
});

function refuseWhileDraining({ draining }: WorkerServices): void {
  if (draining.aborted) throw new RelayError("shutting_down", "the worker is draining and takes no new inputs");
}

type Described = Omit<NewInputArtifact, "schema_version">;

/** @param called the cluster's name as the worker has it */
function forUs({ cluster }: WorkerServices, called: string, said: Described): Described {
  if (called !== cluster) {
    throw new RelayError("job_cluster_mismatch", `this worker serves ${cluster}, the input is for ${called}`, {
      expected: cluster,
      received: called,
    });
  }
  const { logical_name, size_bytes, sha256, idempotency_key, owner_session_id, owner_session_generation_id } = said;
  return { cluster, logical_name, size_bytes, sha256, idempotency_key, owner_session_id, owner_session_generation_id };
}

const base64Length = (bytes: number): number => Math.ceil(bytes / 3) * 4;

/** The content of a request; its digest is looked at when it is stored. */
function contentOf({ data_base64, size_bytes, sha256 }: InputIngest, maxBytes: number): Uint8Array {
  if (size_bytes > maxBytes) {
    throw new RelayError(
      "payload_too_large",
      `an input may hold at most ${maxBytes} bytes here`,
      { max_bytes: maxBytes },
      "larger ones go by POST /input-uploads",
    );
  }
  const content = Buffer.from(data_base64, "base64");
  // Decoding passes over what is no base64; what it makes of it would be encoded differently.
  if (content.toString("base64") !== data_base64)
    throw new RelayError("input_ingest_refused", "data_base64 is not base64 (RFC 4648, section 4)");
  if (content.length !== size_bytes) {
    throw new RelayError("input_ingest_refused", `data_base64 holds ${content.length} bytes, not ${size_bytes}`, {
      sha256,
      size_bytes,
      found_size_bytes: content.length,
    });
  }
  return content;
}

const recorded = ({ job, artifact, path, existing }: Awaited<ReturnType<WorkerServices["inputs"]["record"]>>): Response =>
  json({ job, artifact, path }, existing ? 200 : 201, { location: `artifacts/${artifact.artifact_id}` });
