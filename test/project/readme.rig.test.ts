import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { onTerminal } from "../cli/on-terminal.ts";
import { must } from "../rigs/sshd.ts";
import { SecondFactorSshd } from "../rigs/sshd-2fa.ts";
import { describeWith } from "../runner/components.ts";
import { EXECUTABLE, Relay } from "../runner/relay.ts";

const ROOT = path.dirname(path.dirname(import.meta.dir));

/** The shell blocks of a section of the README. */
function blocksOf(section: string): string[] {
  const readme = fs.readFileSync(path.join(ROOT, "README.md"), "utf8");
  const text = readme.split(/^## /m).find((part) => part.startsWith(`${section}\n`)) ?? "";
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block]) => block!);
}

test("what the README shows under `Use it` works as it is written", async () => {
  const [build, use] = blocksOf("Use it");
  expect(build).toContain("npm run build");
  expect(use).toContain("clio-relay job submit");
  await using relay = new Relay();
  const environment = { ...relay.environment, PATH: `${path.dirname(EXECUTABLE)}:${process.env.PATH}` };
  const shell = Bun.spawn(["sh", "-eu", "-c", use!], {
    cwd: relay.directory,
    env: environment,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([shell.stdout.text(), shell.stderr.text(), shell.exited]);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain("stdout | step 3");
  expect(stdout).toContain("3/3");
  expect(stdout).toContain("\nstep 1\nstep 2\nstep 3\n");
  expect(stdout).toContain(`${path.join(relay.directory, "results", "result.txt")}\n`);
  expect(fs.existsSync(path.join(relay.directory, "results", "result.txt"))).toBe(true);
  expect(fs.existsSync(path.join(relay.directory, "result.txt"))).toBe(true);
});

describeWith(["sshd-2fa", "ssh"], "a cluster over SSH", () => {
  test("what the README shows of it works as it is written, with one password and one code", async () => {
    const [, , cluster] = blocksOf("Use it");
    const service = "install-endpoint-service --cluster my-cluster --concurrency 4";
    expect(cluster).toContain(service);
    await using node = await SecondFactorSshd.start();
    await using relay = new Relay();
    const file = (name: string, ...lines: string[]): string => {
      const full = path.join(relay.directory, name);
      fs.writeFileSync(full, `${lines.join("\n")}\n`, { mode: 0o600 });
      return full;
    };
    const known = file("known", node.sshd.knownLine());
    const config = file(
      "ssh-config",
      ...["Host my-cluster-login", `HostName ${node.sshd.host}`, `Port ${node.sshd.port}`, `User ${node.user.name}`],
      ...["IdentityFile none", "IdentityAgent none", `UserKnownHostsFile ${known}`, "GlobalKnownHostsFile /dev/null"],
    );
    // The rig's users have no systemd, as the text below says it may be.
    const script = `set -eu\n${cluster!.replace(service, `${service} --launcher setsid`)}`;
    const shown = onTerminal(
      relay,
      [],
      { PATH: `${path.dirname(EXECUTABLE)}:${process.env.PATH}`, CLIO_RELAY_SSH_CONFIG: config, NO_COLOR: "1" },
      `sh -c '${script.replaceAll("'", "'\\''")}'`,
    );
    await shown.shows("Password: ");
    shown.press(`${node.password}\r`);
    await shown.shows("Verification code: ");
    shown.press(`${node.code()}\r`);
    const code = await shown.end();
    const text = shown.shown();
    expect([code, text]).toEqual([0, text]);
    expect([text.match(/Password: /g)?.length, text.match(/Verification code: /g)?.length]).toEqual([1, 1]);
    expect(text).toContain("my-cluster is up: worker ");
    expect(text).toContain(`stdout | ${must("uname", "-n").trim()}`);
    expect(text).toMatch(/my-cluster +ssh +up /);
    expect(text).toContain("my-cluster is down");
    expect(fs.existsSync(path.join(node.user.home, "result.txt"))).toBe(true);
    expect(node.sshd.connections()).toBe(1);
  });
});
