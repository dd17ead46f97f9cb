import { expect, test } from "bun:test";
import path from "node:path";
import { describeWith } from "../runner/components.ts";
import { startRelay } from "../runner/relay.ts";
import { scaled, soakSettings } from "../runner/soak.ts";
import { runSchemathesis } from "./schemathesis.ts";

const EXAMPLES = 40;

describeWith(["linux", "schemathesis"], "requests that are made up by the OpenAPI document", () => {
  const { seed, scale } = soakSettings();
  // What the daemon forwards is what the worker is asked.
  const doors = [
    { name: "the worker's", socket: "worker-local.sock", below: "" },
    ...(scale < 1
      ? []
      : [{ name: "the desktop's", socket: "desktop.sock", below: "/clusters/\\{name\\}/(jobs|tasks|artifacts|queue|workers|link)" }]),
  ];

  test.each(doors)(
    "get answers that are in $name, and soon",
    async ({ socket: name, below }) => {
      await using relay = await startRelay();
      await relay.json("desktop", "start");
      const socket = path.join(relay.home, "run", name);
      const phases = scale < 1 ? "fuzzing" : "coverage,fuzzing,stateful";
      const { code, text, cases } = await runSchemathesis(relay, { seed, examples: scaled(EXAMPLES, 5), phases, socket, below });
      if (code !== 0) console.error(text);
      expect([code, cases > 150]).toEqual([0, true]);
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
