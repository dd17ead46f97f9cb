import { RelayError } from "../domain/errors.ts";
import { readSmallFile } from "../lib/files/regular-file.ts";
import type { Paths } from "./paths.ts";
import type { FileValues } from "./settings.ts";

const MAX_BYTES = 256 * 1024;

/**
 * Values of config.toml (TOML 1.0); none where there is no such file.
 *
 * @throws RelayError configuration_error when it cannot be read or is not TOML
 */
export function readSettingsFile(paths: Pick<Paths, "settingsFile">): FileValues {
  const file = paths.settingsFile;
  let text: string | null;
  try {
    text = readSmallFile(file, MAX_BYTES);
  } catch (error) {
    throw new RelayError("configuration_error", `${file} cannot be read: ${messageOf(error)}`, { path: file }, undefined, { cause: error });
  }
  if (text === null) return {};
  try {
    return Bun.TOML.parse(text) as FileValues;
  } catch (error) {
    throw new RelayError("configuration_error", `${file} is not TOML: ${messageOf(error)}`, { path: file }, undefined, { cause: error });
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
