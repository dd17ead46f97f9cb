import { RelayError } from "../domain/errors.ts";
import type { CliIo } from "./io.ts";
import { readLocalText } from "./local-file.ts";
import { jsonObject, text } from "./values.ts";
import { option } from "./verb.ts";

const MAX_BYTES = 1024 * 1024;

/** `--metadata-json` and its twin that reads a file. */
export const METADATA = {
  "metadata-json": option(jsonObject, "Free members, as a JSON object"),
  "metadata-json-file": option(text("FILE"), "The same, from a file"),
} as const;

/** What the two options say together. @throws RelayError usage when both are given, or when the file holds no JSON object; local_file_unusable, payload_too_large */
export function metadataOf(
  io: CliIo,
  flags: { readonly "metadata-json": Record<string, unknown> | undefined; readonly "metadata-json-file": string | undefined },
): Record<string, unknown> {
  const file = flags["metadata-json-file"];
  if (file === undefined) return flags["metadata-json"] ?? {};
  if (flags["metadata-json"] !== undefined) throw new RelayError("usage", "--metadata-json and --metadata-json-file exclude each other");
  const value = jsonObject.read(readLocalText(io, `--metadata-json-file ${file}`, file, MAX_BYTES));
  if (value === undefined) throw new RelayError("usage", `${file} holds no JSON object`);
  return value;
}
