import { expect, test } from "bun:test";
import { commandsOf } from "../../../src/cli/relay-host/run-command.ts";

test("a command of the machine gets no credential of the relay's, and says what it says on both outputs", async () => {
  const variables = { PATH: process.env["PATH"], LANG: "C", CLIO_RELAY_HOST_TOKEN: "not-to-be-seen", CLIO_RELAY_FRP_TOKEN: "nor-this" };
  const { code, text } = await commandsOf({ variables })(["/bin/sh", "-c", "env; echo said >&2; exit 3"]);
  expect([code, text.includes("LANG=C"), text.includes("said"), text.includes("TOKEN")]).toEqual([3, true, true, false]);
});
