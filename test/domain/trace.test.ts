import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { TraceContext, traceContext } from "../../src/domain/trace.ts";

const PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

describe("a traceparent", () => {
  test.each([
    PARENT,
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
    // Of a later version, which is handed on as it is.
    "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes-then",
  ])("%s is one", (text) => {
    expect(traceContext(text, undefined)).toEqual({ traceparent: text, tracestate: null });
    expect(v.is(TraceContext, { traceparent: text, tracestate: null })).toBe(true);
  });

  test.each([
    ["nothing", ""],
    ["version ff", "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
    ["a trace of zeros", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"],
    ["a span of zeros", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"],
    ["capitals", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"],
    ["more in version 00", `${PARENT}-more`],
    ["more without a dash", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x"],
    ["two of them", `${PARENT}, ${PARENT}`],
    ["a line break", `${PARENT}\n`],
    ["no flags", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"],
    ["too long", `01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-${"x".repeat(300)}`],
  ])("with %s is none, and takes the tracestate with it", (_, text) => {
    expect(traceContext(text, "a=1")).toBeNull();
    expect(v.is(TraceContext, { traceparent: text, tracestate: null })).toBe(false);
  });

  test("that is not there is none", () => {
    expect(traceContext(undefined, "a=1")).toBeNull();
  });
});

describe("a tracestate", () => {
  const state = (text: string): string | null | undefined => traceContext(PARENT, text)?.tracestate;

  test.each([
    ["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"],
    [" a=1 ,\t, b=2", "a=1,b=2"],
    ["fw529a3039@dt=FfAA", "fw529a3039@dt=FfAA"],
    ["a=with space inside", "a=with space inside"],
  ])("%p is kept as %p", (text, kept) => {
    expect(state(text)).toBe(kept);
  });

  test.each([
    ["nothing", ""],
    ["only commas", ",,"],
    ["no value", "a="],
    ["no key", "=1"],
    ["a capital in the key", "A=1"],
    ["an equals sign in the value", "a=1=2"],
    ["a key twice", "a=1,a=2"],
    ["a control character", "a=1\u0007"],
    ["a letter that is not ASCII", "a=é"],
    ["33 members", Array.from({ length: 33 }, (_, n) => `k${n}=1`).join(",")],
    ["too much to look at", "a".repeat(70_000)],
  ])("with %s is left out, and the traceparent stays", (_, text) => {
    expect(traceContext(PARENT, text)).toEqual({ traceparent: PARENT, tracestate: null });
  });

  test("that is too long loses long members first, then the last ones, each as a whole", () => {
    const long = `long=${"x".repeat(200)}`;
    const short = (n: number) => `k${n}=${"y".repeat(60)}`;
    const some = Array.from({ length: 5 }, (_, n) => short(n));
    expect(state([long, ...some].join(","))).toBe(some.join(","));
    expect(state([long, ...some.slice(0, 4)].join(","))).toBe([long, ...some.slice(0, 4)].join(","));
    const many = Array.from({ length: 10 }, (_, n) => short(n));
    const kept = state([long, ...many].join(","))!;
    expect(kept.length).toBeLessThanOrEqual(512);
    expect(kept).toBe(many.slice(0, 8).join(","));
    expect(kept).not.toContain("long");
  });
});
