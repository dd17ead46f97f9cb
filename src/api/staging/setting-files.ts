import type { RelayError } from "../../domain/errors.ts";
import type { PipelineInputs } from "../../domain/pipeline.ts";

/**
 * The file of each setting of a pipeline that somebody names one for.
 *
 * @param given a setting, as `PACKAGE.SETTING`, or as `SETTING` where only one package has one of that name, and its file
 * @param refused makes what is thrown, of the name as it was given and what is wrong with it
 * @throws for a name that is no such setting, or one of several, or named twice
 */
export function settingFiles<F>(
  settings: PipelineInputs["settings"],
  given: readonly (readonly [name: string, file: F])[],
  refused: (name: string, what: string) => RelayError,
): Map<string, F> {
  const named = new Map<string, F>();
  for (const [name, file] of given) {
    const matching = settings.filter((one) => one.name === name || one.setting === name);
    const exact = matching.find((one) => one.name === name) ?? matching[0];
    const names = settings.map((one) => one.name).join(", ");
    if (exact === undefined)
      throw refused(name, names === "" ? "no setting of this pipeline is declared to be a file" : `those that are: ${names}`);
    if (matching.length > 1 && exact.name !== name)
      throw refused(name, `several packages have a setting of that name: ${matching.map((one) => one.name).join(", ")}`);
    if (named.has(exact.name)) throw refused(exact.name, "it is given twice");
    named.set(exact.name, file);
  }
  return named;
}
