import { expect, test } from "bun:test";
import path from "node:path";
import { describeWith } from "../runner/components.ts";
import { startRelay } from "../runner/relay.ts";
import { scaled, soakSettings } from "../runner/soak.ts";
import { runSchemathesis } from "./schemathesis.ts";

const EXAMPLES = 40;

interface Door {
  readonly name: string;
  readonly socket: string;
  readonly below: string;
  readonly without?: readonly string[];
  /** Requests that it takes to have looked at all. */
  readonly cases: number;
}

describeWith(["linux", "schemathesis"], "requests that are made up by the OpenAPI document", () => {
  const { seed, scale } = soakSettings();
  // What the daemon forwards is what the worker is asked.
  const doors: readonly Door[] = [
    { name: "the worker's", socket: "worker-local.sock", below: "", cases: 150 },
    ...(scale < 1
      ? []
      : [
          {
            name: "the desktop's",
            socket: "desktop.sock",
            below: "/clusters/\\{name\\}/(jobs|tasks|artifacts|queue|workers|link)",
            cases: 150,
          },
        ]),
    // Nothing that takes clusters away, dials, listens or ends the daemon.
    {
      name: "the daemon's own",
      socket: "desktop.sock",
      below: "/(healthz|status|identity|links|metrics|listener|clusters|clusters/\\{name\\})$",
      without: ["POST", "DELETE"],
      cases: 15,
    },
  ];

  test.each(doors)(
    "get answers that are in $name, and soon",
    async ({ socket: name, below, without = [], cases: least }) => {
      await using relay = await startRelay();
      await relay.json("desktop", "start");
      const socket = path.join(relay.home, "run", name);
      const phases = scale < 1 ? "fuzzing" : "coverage,fuzzing,stateful";
      const { code, text, cases } = await runSchemathesis(relay, {
        seed,
        examples: scaled(EXAMPLES, 5),
        phases,
        socket,
        below,
        without,
      });
      if (code !== 0) console.error(text);
      expect([code, cases > least]).toEqual([0, true]);
      const { ok, findings } = await relay.json<{ ok: boolean; findings: unknown[] }>("queue", "audit");
      expect([ok, findings]).toEqual([true, []]);
      expect(
        relay
          .workerLog()
          .split("\n")
          .filter((line) => / error /.test(line)),
      ).toEqual([]);
    },
    3_600_000,
  );
});
