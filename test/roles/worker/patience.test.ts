import { describe, expect, test } from "bun:test";
import { RelayError } from "../../../src/domain/errors.ts";
import { Patience } from "../../../src/roles/worker/patience.ts";

const errno = (code: string): Error => Object.assign(new Error(code), { code });

/** A patience of three tries, with what it gave up. */
function patience() {
  const abort = new AbortController();
  const given: string[] = [];
  return { abort, given, it: new Patience(abort.signal, (step) => given.push(step), 3) };
}

/** What becomes of a step that fails every time: "thrown", or what was done instead. */
const went = (it: Patience, step: string, error: unknown): Promise<string> =>
  it
    .run(
      step,
      () => Promise.reject(error),
      () => "instead",
    )
    .catch((thrown: unknown) => (thrown === error ? "thrown" : String(thrown)));

describe("a step that fails", () => {
  test("for a lasting reason is given up after its tries, once and for itself", async () => {
    const { it, given } = patience();
    const seen: string[] = [];
    for (let i = 0; i < 5; i++) seen.push(await went(it, "a", errno("EINVAL")));
    expect(seen).toEqual(["thrown", "thrown", "instead", "instead", "instead"]);
    expect(await went(it, "b", errno("EINVAL"))).toBe("thrown");
    expect(given).toEqual(["a"]);
  });

  test("counts anew after it went well", async () => {
    const { it, given } = patience();
    for (let i = 0; i < 2; i++) await went(it, "a", new Error("odd"));
    expect(
      await it.run(
        "a",
        () => 7,
        () => 0,
      ),
    ).toBe(7);
    expect([await went(it, "a", new Error("odd")), await went(it, "a", new Error("odd"))]).toEqual(["thrown", "thrown"]);
    expect(given).toEqual([]);
  });

  test.each([
    errno("ENOSPC"),
    errno("EMFILE"),
    errno("EAGAIN"),
    errno("ESTALE"),
    new RelayError("storage_admission_refused", "full"),
    new RelayError("queue_unavailable", "busy"),
    new RelayError("attempt_fenced", "another's"),
    new RelayError("version_mismatch", "later"),
  ])("as %p is never given up", async (error) => {
    const { it, given } = patience();
    for (let i = 0; i < 10; i++) expect(await went(it, "a", error)).toBe("thrown");
    expect(given).toEqual([]);
  });

  test("once nobody wants it any more is not given up either", async () => {
    const { it, abort, given } = patience();
    abort.abort();
    for (let i = 0; i < 5; i++) expect(await went(it, "a", errno("EIO"))).toBe("thrown");
    expect(given).toEqual([]);
  });
});
