import { expect, test } from "bun:test";
import fc from "fast-check";
import { aliasesOf, type Identity, identityKey } from "../../../src/mcp/federation/alias.ts";

const identity = (tool: string, more: Partial<Identity> = {}): Identity => ({
  ...{ namespace: "science", tool, definition: "a".repeat(64), contract: null, server: null },
  ...more,
});

const named = (identities: readonly Identity[], taken: readonly string[] = []): string[] => {
  const aliases = aliasesOf(identities, new Set(taken));
  return identities.map((one) => aliases.get(identityKey(one))!);
};

test("a name is the namespace and the tool, in lower case, with everything else as an underscore", () => {
  expect(named([identity("inspect_dataset")])).toEqual(["remote_science_inspect_dataset"]);
  expect(named([identity("Read.File-v2 of x", { namespace: "Lab.1" })])).toEqual(["remote_lab_1_read_file_v2_of_x"]);
  expect(named([identity("🚀")])).toEqual(["remote_science__"]);
});

test("a long name is cut, and told from others by a digest of what was cut", () => {
  const [one, other] = named([identity(`${"x".repeat(120)}a`), identity(`${"x".repeat(120)}b`)]);
  expect(one).toMatch(/^remote_science_x{21}_[0-9a-f]{10}$/);
  expect(other).toMatch(/^remote_science_x{21}_[0-9a-f]{10}$/);
  expect([one!.length, one === other]).toEqual([47, false]);
});

test("where two would have one name, each has digits of its own, whatever the order", () => {
  const those = [identity("a-b"), identity("a_b"), identity("a.b"), identity("other")];
  const names = named(those);
  expect(names.slice(0, 3).every((name) => /^remote_science_a_b_[0-9a-f]{10}$/.test(name))).toBe(true);
  expect(new Set(names).size).toBe(4);
  expect(names[3]).toBe("remote_science_other");
  expect(named(those.toReversed()).toReversed()).toEqual(names);
});

test("one tool that two servers describe differently has two names, and a contract tells them apart, too", () => {
  const [one, other] = named([identity("a"), identity("a", { definition: "b".repeat(64) })]);
  expect(one).not.toBe(other);
  expect(new Set(named([identity("a"), identity("a", { contract: "v2" })])).size).toBe(2);
});

test("a tool that is always there keeps its name", () => {
  expect(named([identity("a")], ["remote_science_a"])[0]).toMatch(/^remote_science_a_[0-9a-f]{10}$/);
});

test("names that are made to look like others' digits are told from them", () => {
  const digits = named([identity("a-b"), identity("a_b")])[0]!.slice("remote_science_".length);
  const names = named([identity("a-b"), identity("a_b"), identity(digits)]);
  expect(new Set(names).size).toBe(3);
  expect(names.every((name) => name.length <= 47)).toBe(true);
});

test("whatever tools there are, each has one name that every client takes, and the order changes nothing", () => {
  const part = fc.oneof(fc.string({ maxLength: 140, unit: "binary" }), fc.constantFrom("a", "A", "a_", "a-", "relay", "é"));
  const one = fc.record({
    namespace: part,
    tool: part,
    definition: fc.constantFrom("0".repeat(64), "1".repeat(64)),
    contract: fc.option(fc.constantFrom("x", "y")),
    server: fc.constant(null),
  });
  fc.assert(
    fc.property(fc.uniqueArray(one, { maxLength: 40, selector: identityKey }), (identities) => {
      const names = named(identities);
      expect(new Set(names).size).toBe(identities.length);
      for (const name of names) expect(name).toMatch(/^remote_[a-z0-9_]{1,40}$/);
      expect(named(identities.toReversed()).toReversed()).toEqual(names);
    }),
    { numRuns: 300 },
  );
});
