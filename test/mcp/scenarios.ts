import fs from "node:fs";
import path from "node:path";

/** Scenarios of the conformance suites that do not apply, each with its reason, as docs/mcp.md lists them. */
export function notApplicable(): ReadonlyMap<string, string> {
  const page = fs.readFileSync(path.resolve(import.meta.dir, "../../docs/mcp.md"), "utf8");
  const table = page.slice(page.indexOf("| scenario | why it does not apply |"));
  const rows = table.split("\n\n")[0]!.split("\n").slice(2);
  return new Map(
    rows.flatMap((row) => {
      const [, scenarios = "", reason = ""] = row.split("|").map((cell) => cell.trim());
      return [...scenarios.matchAll(/`([\w-]+)`/g)].map(([, scenario]) => [scenario!, reason] as const);
    }),
  );
}
