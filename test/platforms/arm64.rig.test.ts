import { expect, test } from "bun:test";
import path from "node:path";
import { version } from "../../package.json";
import { withArm64 } from "../rigs/arm64.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { builtFor } from "./target.ts";

describeWith("qemu-arm64", "the build for Linux on arm64", () => {
  const directories = temporaryDirectories();

  test("starts, runs a job under its shim, and gives back what the job left", async () => {
    const directory = directories();
    const script = `
set -eu
relay=${builtFor("bun-linux-arm64")}
$relay --version
$relay init >&2
$relay worker start --cluster local >&2
for n in 1 2; do
  $relay job wait "$($relay job submit -- true)" >&2
done
job=$($relay job submit --output result.txt -- sh -c 'echo out; echo err >&2; printf done >result.txt')
$relay job wait "$job" >&2
$relay job status "$job" --json | tr -d ' \\n'; echo
$relay job read-log "$job"
$relay job read-artifact "$($relay job list-artifacts "$job" | grep result.txt | cut -f1)" -o -; echo
$relay worker stop --cluster local >&2
$relay desktop stop >&2
`;
    const { code, stdout, stderr } = await withArm64(script, directory, { HOME: directory, CLIO_RELAY_HOME: path.join(directory, "home") });
    expect(code, stderr).toBe(0);
    const [first, status, ...rest] = stdout.trimEnd().split("\n");
    expect(first).toBe(version);
    expect(JSON.parse(status!)).toMatchObject({ job: { state: "succeeded" } });
    expect(rest.join("\n")).toContain("out");
    expect(rest.at(-1)).toBe("done");
  }, 120_000);
});
