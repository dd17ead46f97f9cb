import { expect, test } from "bun:test";
import path from "node:path";
import { isRelayError } from "../../src/domain/errors.ts";
import { type ConnectOptions, connect } from "../../src/package.ts";
import { temporaryDirectories } from "../runner/temporary.ts";

const directory = temporaryDirectories();

/** What a program is told whose daemon does not answer. */
async function failure(options: ConnectOptions): Promise<{ readonly message: string; readonly hint: string | undefined }> {
  const desktop = await connect(options);
  const error: unknown = await desktop
    .cluster("c")
    .jobs()
    .then(
      () => null,
      (thrown: unknown) => thrown,
    );
  if (!isRelayError(error, "desktop_unavailable")) throw error;
  return { message: error.message, hint: error.hint };
}

test("a daemon that does not answer is named by where it was looked for", async () => {
  const socket = path.join(directory(), "none.sock");
  expect(await failure({ socket })).toEqual({ message: `no answer from ${socket}`, hint: undefined });
  const taken = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const url = taken.url.origin;
  await taken.stop(true);
  expect(await failure({ url, token: "t".repeat(40) })).toEqual({
    message: `no answer from ${url}`,
    hint: "clio-relay api status, where the listener is",
  });
});
