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
export const metadataOf = (
  io: CliIo,
  flags: { readonly "metadata-json": Record<string, unknown> | undefined; readonly "metadata-json-file": string | undefined },
): Record<string, unknown> => objectOf(io, "--metadata-json", flags["metadata-json"], flags["metadata-json-file"]);

/** `--arguments-json` and its twin that reads a file. */
export const ARGUMENTS = {
  "arguments-json": option(jsonObject, "Arguments of the tool, as a JSON object; none unless given"),
  "arguments-json-file": option(text("FILE"), "The same, from a file"),
} as const;

/** The same of these. @throws as metadataOf */
export const argumentsOf = (
  io: CliIo,
  flags: { readonly "arguments-json": Record<string, unknown> | undefined; readonly "arguments-json-file": string | undefined },
): Record<string, unknown> => objectOf(io, "--arguments-json", flags["arguments-json"], flags["arguments-json-file"]);

function objectOf(io: CliIo, name: string, given: Record<string, unknown> | undefined, file: string | undefined): Record<string, unknown> {
  if (file === undefined) return given ?? {};
  if (given !== undefined) throw new RelayError("usage", `${name} and ${name}-file exclude each other`);
  const value = jsonObject.read(readLocalText(io, `${name}-file ${file}`, file, MAX_BYTES));
  if (value === undefined) throw new RelayError("usage", `${file} holds no JSON object`);
  return value;
}
