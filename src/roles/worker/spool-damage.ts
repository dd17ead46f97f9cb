import fs from "node:fs";
import path from "node:path";
import type { NewEvent } from "../../domain/event.ts";
import { LOG_STREAMS } from "../../domain/log.ts";
import { logSizes } from "../../execution/attempt-dir.ts";
import { attemptPlace } from "../../execution/own-place.ts";
import { type ExitRecord, logFile, type StartRecord } from "../../execution/spool-records.ts";
import type { Fence, Notice } from "../../queue/store.ts";

/** Something that the attempt's directory should hold and does not, as an event that the attempt gets once. */
export const damage = (about: string, message: string): Notice => ({
  about,
  event: { event_type: "execution.spool_damaged", level: "error", message },
});

/** The same as part of a settlement, which happens once by itself. */
export const damageEvent = ({ attempt }: Fence, about: string, message: string): NewEvent => ({
  ...damage(about, message).event,
  payload: { attempt, about },
});

/** What is wrong with a claim that is not the one that the queue knows of. */
export function claimDamage(attemptDir: string, start: StartRecord | "torn" | null): Notice {
  const place = attemptPlace(attemptDir);
  if (place === "other")
    return damage("directory", "Something else is in the place of the job's or the attempt's directory; it is neither read nor written.");
  if (!fs.existsSync(path.dirname(attemptDir))) return damage("directory", "The job's directory is missing from the spool.");
  if (place === "absent") return damage("directory", "The attempt's directory is missing from the spool.");
  if (start === null) return damage("start.json", "start.json is missing from the attempt's directory.");
  if (start === "torn") return damage("start.json", "start.json cannot be read.");
  return damage("start.json", "start.json does not name the shim that started the attempt.");
}

/** Logs that hold fewer bytes than were kept of them, or more, or other ones. */
export function logDamage(fence: Fence, attemptDir: string, streams: ExitRecord["streams"]): NewEvent[] {
  const sizes = logSizes(attemptDir);
  return LOG_STREAMS.flatMap((stream) => {
    const what = damageOf(sizes[stream], streams[stream]);
    return what === null ? [] : [damageEvent(fence, logFile(stream), `${logFile(stream)} ${what}`)];
  });
}

/** Whether less is in an attempt's logs than was written to them. */
export function logsLack(attemptDir: string, streams: ExitRecord["streams"]): boolean {
  const sizes = logSizes(attemptDir);
  return LOG_STREAMS.some((stream) => sizes[stream] < streams[stream].kept);
}

function damageOf(size: number, { kept, complete, sha256 }: ExitRecord["streams"]["stdout"]): string | null {
  const gap = kept - size;
  if (gap > 0) return `lacks ${gap} of the ${kept} bytes that were written to it.`;
  if (gap < 0) return `holds ${-gap} bytes behind the ${kept} bytes that were written to it.`;
  // A shim that has seen the whole stream leaves its digest out where the file is not what it wrote.
  return complete && sha256 === null ? "was cut while it was written to; what was in it by then may read as zeros." : null;
}
