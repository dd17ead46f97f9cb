import { RelayError } from "../../domain/errors.ts";
import { clusterName } from "../values.ts";
import { option, optional } from "../verb.ts";

/** A cluster that is named as an argument, or by one of two options. */
export const NAMED = {
  positionals: { name: optional(clusterName) },
  flags: { name: option(clusterName, "The cluster's name, as the argument"), cluster: option(clusterName, "The same", "c") },
} as const;

/** The one name that was given. @param whenMissing what to do where there is none @throws RelayError usage when there is none, or different ones */
export function nameOf(
  args: { readonly name: string | undefined },
  flags: { readonly name: string | undefined; readonly cluster: string | undefined },
  whenMissing = clusterName.whenMissing,
): string {
  const names = new Set([args.name, flags.name, flags.cluster].filter((name) => name !== undefined));
  const [name, other] = names;
  if (name === undefined) throw new RelayError("usage", "NAME is missing", {}, whenMissing);
  if (other !== undefined) throw new RelayError("usage", `which one, ${name} or ${other}?`);
  return name;
}
