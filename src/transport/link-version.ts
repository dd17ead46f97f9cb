import * as v from "valibot";
import { RelayError } from "../domain/errors.ts";
import { type LinkInfo, OLDEST_PROTOCOL, outdatedSide, PROTOCOL, ReceivedLinkInfo } from "../domain/link.ts";
import type { ChannelAnswer } from "./http/http-channel.ts";

const MAX_BYTES = 64 * 1024;

/** What the last link to this cluster led to; members that are not known are left out. */
export interface ExpectedWorker {
  readonly cluster: string;
  readonly worker_id?: string;
}

/**
 * Read the answer to GET /link. Null: a worker so old that it has no such route.
 *
 * @throws RelayError answer_malformed
 */
export function readLinkInfo(answer: ChannelAnswer): LinkInfo | null {
  if (answer.body instanceof ReadableStream) answer.body.cancel().catch(() => undefined);
  if (answer.status === 404) return null;
  if (answer.status !== 200 || !(answer.body instanceof Uint8Array) || answer.body.length > MAX_BYTES) {
    throw new RelayError("answer_malformed", `the worker answered ${answer.status} when it was asked who it is`, { status: answer.status });
  }
  let document: unknown;
  try {
    document = JSON.parse(Buffer.from(answer.body).toString("utf8"));
  } catch (error) {
    throw new RelayError("answer_malformed", "the worker did not say who it is", {}, undefined, { cause: error });
  }
  const result = v.safeParse(ReceivedLinkInfo, document);
  if (!result.success) throw new RelayError("answer_malformed", "the worker did not say who it is in a way that is understood here");
  return result.output;
}

/** @throws RelayError link_bringup_failed where another worker answers than the one that is expected */
export function checkWorker(info: LinkInfo, expected: ExpectedWorker): void {
  for (const [member, wanted] of Object.entries(expected) as [keyof ExpectedWorker, string | undefined][]) {
    if (wanted === undefined || info[member] === wanted) continue;
    const data = { member, expected: wanted, found: info[member] };
    throw new RelayError(
      "link_bringup_failed",
      `another worker answers: its ${member} is ${info[member]}, not ${wanted}`,
      data,
      member === "worker_id"
        ? `was its state on the cluster removed or replaced? clio-relay cluster bootstrap --cluster ${expected.cluster} takes the one that is there now`
        : undefined,
    );
  }
}

/** The refusal of what changes something while the versions do not fit; null where they do. */
export function versionRefusal(info: LinkInfo | null): RelayError | null {
  const side = info === null ? "worker" : outdatedSide(info);
  if (side === null) return null;
  const data = {
    outdated: side,
    desktop: { protocol: PROTOCOL, oldest_protocol: OLDEST_PROTOCOL },
    worker: info === null ? null : { protocol: info.protocol, oldest_protocol: info.oldest_protocol, version: info.version },
  };
  const what = `the ${side} speaks a protocol that is too old for the other side: upgrade clio-relay on ${side === "worker" ? "the cluster" : "this machine"}`;
  return new RelayError("version_mismatch", what, data);
}
