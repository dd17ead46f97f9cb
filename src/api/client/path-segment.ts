import { RelayError } from "../../domain/errors.ts";
import { isId } from "../../domain/id.ts";

/** An identifier as a part of a path. What cannot be one is answered here, so that `..` never leads to another route. */
export function segment(id: string): string {
  if (!isId(id)) throw new RelayError("not_found", `${JSON.stringify(id.slice(0, 200))} is not an identifier`);
  return id;
}
