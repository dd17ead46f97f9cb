import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { SchedulerRequest } from "../../../src/domain/scheduler.ts";
import { schedulerProvider } from "../../../src/scheduler/schedulers.ts";
import { runSiteCommand } from "../../../src/scheduler/site-command.ts";
import { GridEngine } from "../../rigs/gridengine.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { schedulerContract } from "./contract.ts";
import { providerWithout } from "./programs.ts";

describeWith("gridengine", "on real daemons", () => {
  schedulerContract(
    "Grid Engine",
    async () => {
      const engine = await GridEngine.start();
      const place = temporaryDirectory();
      return {
        engine,
        provider: schedulerProvider("gridengine", { variables: engine.variables }),
        directory: place.path,
        without: (...programs) => providerWithout("gridengine", engine.variables, place.path, programs),
        async [Symbol.asyncDispose]() {
          await engine[Symbol.asyncDispose]();
          place[Symbol.dispose]();
        },
      };
    },
    {
      tellsCanceled: false,
      refusedRequest: { partition: "nowhere" },
      unknownId: "600000",
      activeSource: "qstat",
      accounting: null,
      slots: 4,
    },
    (site) => {
      test("a master that stands still is no answer, and what it was asked meanwhile is a doubt", async () => {
        const { engine, directory } = site();
        const provider = schedulerProvider("gridengine", {
          variables: engine.variables,
          run: (command) => runSiteCommand({ ...command, deadlineMs: 2_000 }),
        });
        const script = path.join(directory, "still.sh");
        fs.writeFileSync(script, provider.script(v.parse(SchedulerRequest, {}), null, ["exit 0"]).text);
        const job = { request: v.parse(SchedulerRequest, {}), marker: "clio-still-1", script, output: `${script}.log`, workdir: directory };
        engine.signal("sge_qmaster", "SIGSTOP");
        const unknown = { id: "600000", cluster: null };
        const [outcome, seen, finding, cancel] = await Promise.all([
          provider.submit(job),
          provider.observe([unknown]),
          provider.find(job.marker),
          provider.cancel(unknown, job.marker),
        ]);
        engine.signal("sge_qmaster", "SIGCONT");
        expect(outcome.kind).toBe("doubt");
        expect([seen.statuses.size, [...seen.failures.keys()]]).toEqual([0, ["qstat"]]);
        expect(finding).toMatchObject({ found: [], complete: false });
        expect(cancel.kind).toBe("doubt");
        const found = await eventually(
          async () => {
            const { found, complete } = await provider.find(job.marker);
            return complete ? found : null;
          },
          { what: "an answer" },
        );
        expect(found.length).toBeLessThanOrEqual(1);
      });
    },
  );
});
