import { schedulerProvider } from "../../../src/scheduler/schedulers.ts";
import { GridEngine } from "../../rigs/gridengine.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { schedulerContract } from "./contract.ts";
import { providerWithout } from "./programs.ts";

describeWith("gridengine", "on real daemons", () => {
  schedulerContract(
    "Grid Engine",
    async () => {
      const engine = await GridEngine.start();
      const place = temporaryDirectory();
      return {
        provider: schedulerProvider("gridengine", { variables: engine.variables }),
        directory: place.path,
        without: (...programs) => providerWithout("gridengine", engine.variables, place.path, programs),
        async [Symbol.asyncDispose]() {
          await engine[Symbol.asyncDispose]();
          place[Symbol.dispose]();
        },
      };
    },
    { tellsCanceled: false, refusedRequest: { partition: "nowhere" }, unknownId: "600000", activeSource: "qstat", accounting: null },
  );
});
