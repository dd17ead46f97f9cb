import { test } from "bun:test";
import { withMusl } from "../rigs/musl.ts";
import { describeWith } from "../runner/components.ts";
import { expectOneJob, oneJob } from "./one-job.ts";
import { builtFor } from "./target.ts";

describeWith("musl", "the build for Linux with musl", () => {
  test("starts, runs a job under its shim, and gives back what the job left", async () => {
    expectOneJob(await withMusl(builtFor(`bun-linux-${process.arch}-musl`), oneJob));
  });
});
