import { expect, test } from "bun:test";
import type { LinkStatus } from "../../../src/api/desktop/link-views.ts";
import { linkSentence, printLinks, roundTripText } from "../../../src/cli/link/link-text.ts";
import { Captured, capturedIo } from "../captured-io.ts";

const DETAIL = "clio-relay is not installed on login.example.edu, in /home/ada/.local/share/clio-relay";
const link: LinkStatus = {
  cluster: "far",
  mode: "ssh",
  state: "up",
  since: null,
  round_trip_ms: 10.601_626_999_996_37,
  worker_version: null,
  detail: DETAIL,
  bytes_in: null,
  bytes_out: null,
  ssh_connections_since_bring_up: null,
  bring_up_seq: null,
  ledger: [],
};

test("what there is to say of a link is never cut, and numbers are those of people", async () => {
  const printed = async (terminal: boolean): Promise<string[]> => {
    const stdout = new Captured(terminal, 60);
    await printLinks(
      { stdout, env: capturedIo({ variables: { NO_COLOR: "1" } }).env },
      [link, { ...link, cluster: "near", detail: null }],
      {
        CLUSTER: ({ cluster }) => cluster,
        "ROUND TRIP": ({ round_trip_ms }) => roundTripText(round_trip_ms),
      },
    );
    return stdout.text.trimEnd().split("\n");
  };
  expect(await printed(true)).toEqual(
    ["CLUSTER  ROUND TRIP", "far      11 ms", "near     11 ms", `far: ${DETAIL}`].map((line) =>
      expect.stringMatching(new RegExp(`^${line}\\s*$`)),
    ),
  );
  expect(await printed(false)).toEqual([`far\t11 ms\t${DETAIL}`, "near\t11 ms\t-"]);
});

test("what a worker says of itself is shown, and obeyed by no terminal", () => {
  expect(linkSentence({ ...link, worker_version: "\x1b]0;owned\x07", detail: "a\nb\x1b[2J" })).toBe(
    "far is up: worker ^[]0;owned^G, 11 ms, a\\nb^[[2J",
  );
});
