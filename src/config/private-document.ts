import * as v from "valibot";
import { RelayError } from "../domain/errors.ts";
import type { Environment } from "./environment.ts";
import { readPrivateFile } from "./private-file.ts";

/**
 * A JSON document that only its owner may read or write; null when there is none. What does not fit is named by its place in the document, never by
 * what is there, which may be a secret.
 *
 * @param hint what writes it anew
 * @throws RelayError configuration_error
 */
export function readPrivateDocument<S extends v.GenericSchema>(
  schema: S,
  file: string,
  maxBytes: number,
  env: Pick<Environment, "uid" | "platform">,
  hint?: string,
): v.InferOutput<S> | null {
  const text = readPrivateFile(file, maxBytes, env);
  if (text === null) return null;
  const refuse = (what: string): RelayError => new RelayError("configuration_error", `${file} ${what}`, { path: file }, hint);
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw refuse("is not JSON");
  }
  const result = v.safeParse(schema, data);
  if (result.success) return result.output;
  throw refuse(`does not fit: ${v.getDotPath(result.issues[0]) ?? "the document"}`);
}
