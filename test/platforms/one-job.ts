import { expect } from "bun:test";
import { version } from "../../package.json";
import type { CommandResult } from "../runner/relay.ts";

/** A shell script that starts an executable, runs jobs under their shims, and gives back what one left. */
export const oneJob = (relay: string): string => `
set -eu
relay=${relay}
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

/** What the script has to have printed. */
export function expectOneJob({ code, stdout, stderr }: Omit<CommandResult, "json">): void {
  expect(code, stderr).toBe(0);
  const [first, status, ...rest] = stdout.trimEnd().split("\n");
  expect(first).toBe(version);
  expect(JSON.parse(status!)).toMatchObject({ job: { state: "succeeded" } });
  expect(rest.join("\n")).toContain("out");
  expect(rest.at(-1)).toBe("done");
}
