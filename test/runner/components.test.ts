import { describe, expect, test } from "bun:test";
import { type Availability, COMPONENTS, type Component, component, decide, requiredComponents } from "./components.ts";

const missing =
  (...names: string[]) =>
  (name: string): Availability =>
    names.includes(name) ? { available: false, reason: `no ${name} here` } : { available: true };

describe("requiredComponents", () => {
  test("reads a comma list", () => {
    expect(requiredComponents("root, tmpfs,,")).toEqual(["root", "tmpfs"]);
    expect(requiredComponents("")).toEqual([]);
  });

  test("refuses a name that is none, and says which there are", () => {
    expect(() => requiredComponents("root,flux-capacitor")).toThrow(/"flux-capacitor".*tmpfs/);
    expect(() => requiredComponents("toString")).toThrow("toString");
  });
});

describe("decide", () => {
  test("runs when everything is there", () => {
    expect(decide(["root", "tmpfs"], missing(), ["root"])).toEqual({ run: true });
  });

  test("skips with the reason of the first that is missing", () => {
    expect(decide(["root", "tmpfs"], missing("tmpfs"), [])).toEqual({
      run: false,
      component: "tmpfs",
      reason: "no tmpfs here",
      required: false,
    });
  });

  test("fails where the missing one is required, and only then", () => {
    expect(decide(["tmpfs"], missing("tmpfs"), ["tmpfs"])).toMatchObject({ run: false, required: true });
    expect(decide(["tmpfs"], missing("tmpfs"), ["root"])).toMatchObject({ run: false, required: false });
  });
});

test("every component answers, and gives a reason when it is missing", () => {
  for (const [name, entry] of Object.entries<Component>(COMPONENTS)) {
    const reason = entry.probe();
    expect(reason === null || reason.length > 3, `${name}: ${reason}`).toBe(true);
  }
});

test("a component is probed once", () => {
  expect(component("root")).toBe(component("root"));
  expect(component("root").available).toBe(process.getuid?.() === 0);
});
