import path from "node:path";
import { pythonPrograms } from "../python-programs.ts";

/** Schemathesis, which makes requests of an OpenAPI document and holds the answers against it. */
export const schemathesis = pythonPrograms("schemathesis", path.join(import.meta.dir, "requirements.txt"));

/** The beginning of its command line. */
export const schemathesisCommand = (): string[] => [
  schemathesis.python(),
  "-c",
  "from schemathesis.cli import schemathesis; schemathesis()",
];
