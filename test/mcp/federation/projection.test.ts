import { expect, test } from "bun:test";
import type { ClusterEntry } from "../../../src/config/cluster-entry.ts";
import type { DiscoveredServer } from "../../../src/config/remote-mcp-cache.ts";
import type { HiddenReason } from "../../../src/mcp/federation/federated.ts";
import { projectionOf } from "../../../src/mcp/federation/projection.ts";
import type { Profile } from "../../../src/mcp/tool.ts";
import { entry, found, MUTABLE, NOW, registration, tool } from "./found.ts";

function shown(entries: readonly ClusterEntry[], cached: readonly DiscoveredServer[], profile: Profile = "user", now = NOW) {
  const { tools, issues, validUntil } = projectionOf(entries, { entries: cached, damaged: [] }, profile, now, new Set());
  return {
    tools: tools.map(({ alias }) => alias),
    issues: issues.map(({ reason, tool: of }) => (of === null ? reason : `${reason} ${of}`)),
    validUntil,
  };
}

const INSPECT = "remote_science_inspect";

test("an allowed tool that was found is shown, until what was found expires", () => {
  const c = entry("c");
  const its = found(c, "science", [tool("inspect")]);
  expect(shown([c], [its])).toEqual({ tools: [INSPECT], issues: [], validUntil: Date.parse(its.expires_at) });
});

test("nothing that was not allowed is shown, and a name that the server does not have is told", () => {
  const none = entry("c", { science: registration({ allow_tools: [] }) });
  expect(shown([none], [found(none, "science", [tool("inspect")])])).toMatchObject({ tools: [], issues: [] });
  const some = entry("c", { science: registration({ allow_tools: ["inspect", "gone"] }) });
  expect(shown([some], [found(some, "science", [tool("inspect"), tool("delete")])])).toMatchObject({
    tools: [INSPECT],
    issues: ["tool_missing gone"],
  });
});

test("what is for operators is not for everybody's agents, and is not spoken of to them", () => {
  const c = entry("c", { science: registration({ profiles: ["admin"] }) });
  const its = found(c, "science", [tool("inspect")]);
  expect(shown([c], [its], "user")).toMatchObject({ tools: [], issues: [] });
  expect(shown([c], [its], "admin")).toMatchObject({ tools: [INSPECT], issues: [] });
  expect(shown([entry("c", { science: registration({ enabled: false }) })], [its], "admin")).toMatchObject({ tools: [], issues: [] });
});

const c = entry("c");
const OTHERS: readonly [HiddenReason, ClusterEntry, Partial<DiscoveredServer>][] = [
  ["expired", c, { expires_at: new Date(NOW).toISOString() }],
  ["expired", c, { discovered_at: new Date(NOW + 2 * 86_400_000).toISOString(), expires_at: new Date(NOW + 3 * 86_400_000).toISOString() }],
  ["execution_changed", entry("c", { science: registration({ command: "other" }) }), {}],
  ["execution_changed", entry("c", { science: registration({ args: ["-x"] }) }), {}],
  ["execution_changed", entry("c", { science: registration({ env_from: { A: "B" } }) }), {}],
  ["route_changed", c, { route_revision: "0".repeat(64) }],
];

test.each(OTHERS)("%s: hidden from everybody", (reason, now, more) => {
  const its = found(c, "science", [tool("inspect")], more);
  for (const profile of ["user", "admin"] as const) expect(shown([now], [its], profile)).toMatchObject({ tools: [], issues: [reason] });
});

test("what was never asked for, and what is not what it was written as, are told apart", () => {
  expect(shown([c], [])).toMatchObject({ tools: [], issues: ["not_discovered"] });
  const damaged = projectionOf([c], { entries: [], damaged: [{ cluster: "c", server: "science" }] }, "user", NOW, new Set());
  expect(damaged.issues.map(({ reason }) => reason)).toEqual(["entry_damaged"]);
});

test("a program that may be another one tomorrow is for operators only", () => {
  const its = found(c, "science", [tool("inspect")]);
  const mutable = { ...its, provenance: { ...its.provenance, server_artifact: MUTABLE } };
  expect(shown([c], [mutable], "user")).toMatchObject({ tools: [], issues: ["mutable_server_artifact"] });
  expect(shown([c], [mutable], "admin")).toMatchObject({ tools: [INSPECT], issues: [] });
});

test("one tool that cannot be used, or that has changed, hides no other", () => {
  const its = found(c, "science", [tool("inspect"), tool("bad", { inputSchema: { type: "array" } }), tool("changed")]);
  const accepted = { ...its.accepted, changed: "0".repeat(64) };
  expect(shown([c], [{ ...its, accepted }])).toMatchObject({
    tools: [INSPECT],
    issues: ["invalid_schema bad", "definition_changed changed"],
  });
});

test("what is the same on several clusters is one tool with each as a value; what is described otherwise is another", () => {
  const [a, b, d] = [entry("a"), entry("b"), entry("d")];
  const same = [found(a, "science", [tool("inspect")]), found(b, "science", [tool("inspect")])];
  const other = found(d, "science", [tool("inspect", { description: "Otherwise." })]);
  const { tools } = projectionOf([b, a, d], { entries: [other, ...same], damaged: [] }, "user", NOW, new Set());
  expect(tools.map(({ routes }) => [...routes.keys()]).toSorted()).toEqual([["a", "b"], ["d"]]);
  expect(tools.every(({ alias }) => /^remote_science_inspect_[0-9a-f]{10}$/.test(alias))).toBe(true);
  const [one] = tools.filter(({ routes }) => routes.has("a"));
  expect(one?.input.schema["properties"]).toMatchObject({ cluster: { enum: ["a", "b"] } });
});

test("two registrations of one cluster that are the same in everything are two tools", () => {
  const twice = entry("c", { one: registration({ namespace: "n" }), two: registration({ namespace: "n" }) });
  const tools = shown([twice], [found(twice, "one", [tool("inspect")]), found(twice, "two", [tool("inspect")])]).tools;
  expect(tools.length).toBe(2);
  expect(tools.every((alias) => /^remote_n_inspect_[0-9a-f]{10}$/.test(alias))).toBe(true);
});
