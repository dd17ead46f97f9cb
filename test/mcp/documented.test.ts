import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { TOOLS } from "../../src/mcp/catalogue.ts";
import { notApplicable } from "./scenarios.ts";
import { ADMIN_TOOLS, USER_TOOLS } from "./tool-names.ts";

const page = fs.readFileSync(path.resolve(import.meta.dir, "../../docs/mcp.md"), "utf8");
const named = (text: string): string[] => [...text.matchAll(/`(relay_\w+|jarvis_\w+)`/g)].map(([, name]) => name!);

test("the page names every tool with its profile, and what it says is not there is none", () => {
  const from = page.indexOf("| tool | profile | what |");
  const rows = page.slice(from, page.indexOf("\n\n", from)).split("\n").slice(2);
  const profiles = new Map(
    rows.flatMap((row) => {
      const [, names = "", profile = ""] = row.split("|");
      return named(names).map((name) => [name, profile.trim().split(",")[0]!] as const);
    }),
  );
  expect([...profiles].sort()).toEqual(TOOLS.map(({ name, profile }) => [name, profile] as [string, string]).sort());
  const absent = named(page.slice(page.indexOf("What else an agent could ask for"), page.indexOf("**Commands of agents.**")));
  expect(absent.length).toBeGreaterThan(10);
  expect(absent.filter((name) => TOOLS.some((tool) => tool.name === name))).toEqual([]);
  expect([...USER_TOOLS, ...ADMIN_TOOLS].sort()).toEqual(TOOLS.map(({ name }) => name).sort());
});

test("each scenario that does not apply has a reason", () => {
  const scenarios = notApplicable();
  expect(scenarios.size).toBeGreaterThan(10);
  for (const [scenario, reason] of scenarios) expect([scenario, reason.length > 20]).toEqual([scenario, true]);
});
