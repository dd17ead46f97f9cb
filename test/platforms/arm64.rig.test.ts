import { test } from "bun:test";
import path from "node:path";
import { withArm64 } from "../rigs/arm64.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { expectOneJob, oneJob } from "./one-job.ts";
import { builtFor } from "./target.ts";

describeWith("qemu-arm64", "the build for Linux on arm64", () => {
  const directories = temporaryDirectories();

  test("starts, runs a job under its shim, and gives back what the job left", async () => {
    const directory = directories();
    const env = { HOME: directory, CLIO_RELAY_HOME: path.join(directory, "home") };
    expectOneJob(await withArm64(oneJob(builtFor("bun-linux-arm64")), directory, env));
  });
});
