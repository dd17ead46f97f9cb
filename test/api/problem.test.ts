import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { problemOf, problemResponse } from "../../src/api/problem.ts";
import { ERRORS, type ErrorCode, RelayError } from "../../src/domain/errors.ts";
import { LIMITS } from "../../src/domain/limits.ts";

describe("problem documents", () => {
  test.each(Object.keys(ERRORS) as ErrorCode[])("%s carries its rule", (code) => {
    const problem = problemOf(new RelayError(code, "what happened"));
    expect(problem).toMatchObject({
      type: `urn:clio-relay:error:${code}`,
      status: ERRORS[code].http,
      reason: code,
      retryable: ERRORS[code].retryable,
      detail: "what happened",
    });
  });

  test("an error of another kind shows nothing of itself", () => {
    const problem = problemOf(new Error("secret-path-/etc/shadow"));
    expect(problem.reason).toBe("internal_error");
    expect(JSON.stringify(problem)).not.toContain("shadow");
  });

  test("members of the failure never shadow the document's own", () => {
    const problem = problemOf(new RelayError("not_found", "gone", { status: 200, reason: "ok", extra: 1 }));
    expect(problem).toMatchObject({ status: 404, reason: "not_found", extra: 1 });
  });

  test("the document stays within its bound, and says what was left out", () => {
    const problem = problemOf(new RelayError("not_found", "x".repeat(100_000), { big: "y".repeat(100_000), small: "z" }));
    expect(Buffer.byteLength(JSON.stringify(problem))).toBeLessThanOrEqual(LIMITS.problemBytes);
    expect(problem).toMatchObject({ small: "z", truncated_members: ["big"] });
  });

  test("the document stays within its bound whatever characters it is made of, and stays well-formed", () => {
    const word = fc.oneof(fc.constantFrom("\u0000", "\ud83d", "😀", '"', "é"), fc.string({ unit: "binary", maxLength: 4 }));
    const long = fc.tuple(word, fc.nat(4_000)).map(([part, times]) => part.repeat(times));
    fc.assert(
      fc.property(long, long, fc.array(fc.tuple(long, long), { maxLength: 4 }), (message, hint, members) => {
        const problem = problemOf(new RelayError("not_found", message, Object.fromEntries(members), hint));
        const text = JSON.stringify(problem);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(LIMITS.problemBytes);
        expect([problem.detail.isWellFormed(), problem.hint?.isWellFormed()]).toEqual([true, true]);
        expect(problem["envelope_overflow"] === true).toBe(problem.detail !== message.slice(0, LIMITS.problemDetailLength).toWellFormed());
      }),
      { numRuns: 200 },
    );
  });

  test("a detail that does not fit is cut, and says so", () => {
    const problem = problemOf(new RelayError("not_found", "\u0001".repeat(2_000), { extra: 1 }));
    expect(problem).toMatchObject({ envelope_overflow: true, extra: 1 });
    expect(problem.detail.length).toBeGreaterThan(900);
  });

  test.each([
    ["upgrade_required", {}, "upgrade", "websocket"],
    ["range_not_satisfiable", { size_bytes: 7 }, "content-range", "bytes */7"],
    ["authentication_required", {}, "www-authenticate", 'Bearer realm="clio-relay"'],
    ["method_not_allowed", { allowed: ["GET", "POST"] }, "allow", "GET, POST"],
  ] as const)("%s has the header that HTTP wants with it", (code, data, name, value) => {
    expect(problemResponse(new RelayError(code, "no", data)).headers.get(name)).toBe(value);
    expect(problemResponse(new RelayError("not_found", "no", data)).headers.get(name)).toBeNull();
  });

  test("the answer has the status and the media type", () => {
    const response = problemResponse(new RelayError("payload_too_large", "no"));
    expect(response.status).toBe(413);
    expect(response.headers.get("content-type")).toBe("application/problem+json");
  });
});
