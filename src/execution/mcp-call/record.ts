import path from "node:path";
import { writeFileAtomic } from "../../lib/files/atomic-file.ts";
import type { CallEnd } from "./one-call.ts";
import { CALL_FILES } from "./request-file.ts";

/** Whether the server answered and says that it did what was asked. */
export const succeeded = ({ result: { answer } }: CallEnd): boolean =>
  answer.kind === "tools" || (answer.kind === "result" && !answer.is_error);

/** Write down what came of a call. The document last: with it, what it names is there. */
export function record(directory: string, { result, content }: CallEnd): void {
  if (content !== null) writeFileAtomic(path.join(directory, CALL_FILES.content), content, { durable: false });
  writeFileAtomic(path.join(directory, CALL_FILES.result), JSON.stringify(result), { durable: false });
}
