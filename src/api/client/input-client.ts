import type * as v from "valibot";
import type { ContentKey, InputRecord, NewInputArtifact, Upload, UploadKey } from "../../domain/input.ts";
import type { HttpPeer } from "./http-peer.ts";

type Described = Omit<v.InferInput<typeof NewInputArtifact>, "schema_version" | "cluster">;

const input = async () => (await import("../answers.ts")).RECORDS;
const upload = async () => (await input()).Upload;
const record = async () => (await input()).InputRecord;

/** What can be asked of a cluster's worker about staged files. Each may be asked twice and does no more than once. */
export class InputClient {
  /** @param cluster what the cluster is called here */
  constructor(
    readonly cluster: string,
    private readonly http: HttpPeer,
    private readonly signal?: AbortSignal,
  ) {}

  async query(contents: readonly ContentKey[]): Promise<readonly Upload[]> {
    const answer = await this.#call("/input-contents/query", async () => (await input()).ContentAnswer, { contents });
    return answer.contents;
  }

  /** @throws RelayError storage_admission_refused */
  begin({ sha256, size_bytes, provisional }: UploadKey): Promise<Upload> {
    return this.#call("/input-uploads", upload, { sha256, size_bytes, provisional });
  }

  /** @throws RelayError input_ingest_conflict, input_ingest_refused, input_ingest_unavailable */
  complete(name: string, { sha256, size_bytes }: ContentKey): Promise<Upload> {
    return this.#call(`/input-uploads/${name}/completion`, upload, { sha256, size_bytes });
  }

  /** @throws RelayError input_ingest_conflict with `offset`, input_ingest_refused, input_ingest_unavailable, storage_admission_refused */
  put({ sha256, size_bytes, provisional }: UploadKey, offset: number, bytes: Uint8Array, signal: AbortSignal): Promise<Upload> {
    return this.http.json(`/input-uploads/${sha256}/content`, upload, {
      method: "PUT",
      query: { size_bytes, offset, provisional },
      body: bytes,
      signal: this.signal === undefined ? signal : AbortSignal.any([this.signal, signal]),
      repeatable: true,
    });
  }

  /** @throws RelayError input_ingest_unavailable, job_submission_conflict */
  record(described: Described): Promise<InputRecord> {
    return this.#call("/input-artifacts", record, { schema_version: "clio-relay.input-artifact.v1", cluster: this.cluster, ...described });
  }

  /** @throws RelayError input_ingest_refused, payload_too_large, job_submission_conflict, storage_admission_refused */
  ingest(described: Described, content: Uint8Array): Promise<InputRecord> {
    return this.#call("/input-artifacts/ingest", record, {
      schema_version: "clio-relay.input-artifact-ingest.v1",
      cluster: this.cluster,
      ...described,
      data_base64: Buffer.from(content).toString("base64"),
    });
  }

  #call<S extends v.GenericSchema>(path: string, answer: () => Promise<S>, body: unknown): Promise<v.InferOutput<S>> {
    return this.http.json(path, answer, { method: "POST", body, repeatable: true, signal: this.signal });
  }
}
