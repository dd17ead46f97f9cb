import * as v from "valibot";
import { type ControlQueryEvidence, McpResult } from "../../../../domain/mcp-call.ts";
import type { McpCallSpec } from "../../../../domain/specs.ts";
import { openArtifact } from "../../../../execution/artifact-content.ts";
import { jobDirectory } from "../../../../execution/attempt-dir.ts";
import { isObject } from "../../../../execution/mcp-call/message.ts";
import { Recent } from "../../../../lib/recent.ts";
import type { QueueStore } from "../../../../queue/store.ts";

/** A list of tools that is larger proves nothing: reading it would hold up other requests. */
const EVIDENCE_MAX_BYTES = 2 * 1024 * 1024;
const REMEMBERED = 64;

/** What a list of tools says that matters here. */
interface Listed {
  readonly fingerprint: string;
  /** Null where the server's program may be another one tomorrow. */
  readonly digest: string | null;
  readonly readOnly: ReadonlySet<string>;
}

/** Which tools only read, by lists that this worker has made itself (docs/federation.md, The lane). */
export class ToolEvidence {
  readonly #known = new Recent<string, Listed>(REMEMBERED);

  constructor(
    private readonly store: Pick<QueueStore, "artifact" | "job">,
    private readonly spoolDir: string,
  ) {}

  /** Whether it shows that the call only reads. What cannot be read shows nothing. */
  async shows(spec: McpCallSpec, fingerprint: string): Promise<boolean> {
    const { control_query_evidence: evidence, expected_server_artifact_digest: digest, tool } = spec;
    if (evidence === null || digest === null || tool === null) return false;
    const listed = await this.#listed(evidence).catch(() => null);
    return listed !== null && listed.fingerprint === fingerprint && listed.digest === digest && listed.readOnly.has(tool);
  }

  async #listed({ artifact_id, sha256 }: ControlQueryEvidence): Promise<Listed | null> {
    const key = `${artifact_id} ${sha256}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const artifact = await this.store.artifact(artifact_id);
    if (artifact.kind !== "mcp_result" || artifact.sha256 !== sha256 || artifact.size_bytes > EVIDENCE_MAX_BYTES) return null;
    const { kind, spec } = await this.store.job(artifact.job_id);
    if (kind !== "mcp_call" || spec.operation !== "tools/list") return null;
    const content = await openArtifact(artifact, jobDirectory(this.spoolDir, artifact.job_id));
    const listed = readList(await new Response(content.stream()).text());
    if (listed !== null) this.#known.set(key, listed);
    return listed;
  }
}

function readList(text: string): Listed | null {
  const parsed = v.safeParse(McpResult, JSON.parse(text));
  if (!parsed.success || parsed.output.answer.kind !== "tools") return null;
  const { execution_fingerprint: fingerprint, server_artifact, answer } = parsed.output;
  const reads = ({ annotations }: Readonly<Record<string, unknown>>): boolean =>
    isObject(annotations) && annotations["readOnlyHint"] === true && annotations["destructiveHint"] !== true;
  return {
    fingerprint,
    digest: server_artifact.immutable ? server_artifact.digest : null,
    readOnly: new Set(answer.tools.filter(reads).map(({ name }) => name)),
  };
}
