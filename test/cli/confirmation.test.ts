import { expect, test } from "bun:test";
import { COMMANDS } from "../../src/cli/commands.ts";
import { runCli } from "../../src/cli/main.ts";
import type { Verb } from "../../src/cli/verb.ts";
import { Captured, capturedIo } from "./captured-io.ts";
import { SourceRelay } from "./source-relay.ts";

/**
 * Every verb: a command line of one that takes something away which does not come back by itself, or null for one that does not. A verb that is not here fails
 * the test, so that nobody forgets to say which it is.
 */
const VERBS: Readonly<Record<string, readonly string[] | null>> = {
  init: null,
  connect: null,
  disconnect: null,
  "install-frp": null,
  completion: null,
  version: null,
  "job submit": null,
  "job submit-pipeline": null,
  "agent run": null,
  "mcp-call": null,
  "jarvis-mcp-call": null,
  "jarvis-mcp-refresh": null,
  "job watch": null,
  "job read-log": null,
  "job wait": null,
  "job status": null,
  "job monitor": null,
  "job list": null,
  // Of one job that is named in full, and nothing that it has left.
  "job cancel": null,
  "scheduler cancel": null,
  "scheduler status": null,
  "job attempts": null,
  "job progress": null,
  "job record-progress": null,
  "job tasks": null,
  "job task-events": null,
  "job record-task-event": null,
  "job list-artifacts": null,
  "job read-artifact": null,
  "job used-artifacts": null,
  "job used-by": null,
  "job provenance": null,
  // Files here that are others than before are refused, or left.
  "job fetch": null,
  "queue list": null,
  "queue audit": null,
  "queue repair": ["--cluster", "local"],
  // Another host's queue is taken over with --confirm-host-dead only.
  "worker run": null,
  "worker start": null,
  // Jobs go on.
  "worker stop": null,
  "worker status": null,
  "mcp-server": null,
  "agent render-mcp-config": null,
  "agent skill": null,
  "remote-mcp register": null,
  "remote-mcp refresh": null,
  "remote-mcp list": null,
  "remote-mcp reload": null,
  // And back by register and refresh; jobs go on.
  "remote-mcp unregister": null,
  "worker bridge": null,
  "worker configure": null,
  "worker pair": null,
  "worker keys list": null,
  "worker keys revoke": ["--cluster", "local", "SHA256:AAAAAAAAAAAA"],
  "worker keys rotate": ["--cluster", "local", "--now"],
  "desktop start": null,
  // Where links are up that only a person brings back: ssh-cluster.rig.test.ts.
  "desktop stop": [],
  "desktop status": null,
  "desktop logs": null,
  "desktop run": null,
  "cluster add": null,
  "cluster list": null,
  "cluster show": null,
  "cluster pin-target": null,
  "cluster probe": null,
  "cluster bootstrap": null,
  "cluster install-endpoint-service": null,
  "cluster restart-endpoint-service": null,
  // And back by install-endpoint-service.
  "cluster remove-endpoint-service": null,
  "cluster endpoint-service-status": null,
  // And back by the same again.
  "cluster rollback": null,
  "cluster uninstall": ["far", "--purge"],
  "cluster remove": ["far"],
  "link list": null,
  "relay-host serve": null,
  "relay-host render-frps-config": null,
  "relay-host render-frpc-config": null,
  "relay-host render-frpc-visitor-config": null,
  "relay-host test-http-transport": null,
  "relay-host test-ssh-transport": null,
  "relay-host test-frpc-connection": null,
  "relay-host test-direct-transport": null,
  "relay-host service install": null,
  "relay-host service uninstall": ["--purge"],
  "api start": null,
  "api stop": null,
  "api status": null,
  "api rotate-token": [],
  "emit progress": null,
  "emit task-event": null,
};

const listed = Object.entries(COMMANDS).flatMap(([noun, verbs]) =>
  Object.entries(verbs)
    .filter(([, command]) => !command.alias)
    .map(([verb, command]) => [`${noun} ${verb}`.trim(), command] as const),
);

test("every verb says whether it takes something away", async () => {
  expect(Object.keys(VERBS).sort()).toEqual(listed.map(([path]) => path).sort());
  for (const [path, command] of listed) {
    const verb: Verb = (await command.load()).verb;
    expect([path, verb.takesAway !== undefined]).toEqual([path, VERBS[path] !== null]);
  }
});

test("what takes something away is refused where nobody can be asked, and does nothing where the answer is no", async () => {
  await using relay = new SourceRelay();
  await relay.ok("init");
  await relay.ok("cluster", "add", "--name", "far", "--ssh-host", "nowhere.invalid");
  const before = await relay.ok("cluster", "list");
  const io = (terminal: boolean, answer: string | null) => {
    const captured = capturedIo({ variables: relay.environment, cwd: relay.directory });
    return {
      ...captured,
      stdin: { ...captured.stdin, isTerminal: terminal, line: () => Promise.resolve(answer) },
      stderr: new Captured(terminal),
      // A relay-host's service is root's.
      env: { ...captured.env, uid: 0 },
    };
  };
  const asked = Object.entries(VERBS).filter(([path, args]) => args !== null && path !== "desktop stop");
  expect(asked.length).toBeGreaterThan(5);
  for (const [path, args] of asked) {
    const line = [...path.split(" "), ...args!];
    // Whatever comes on an input that is no terminal is no answer, and neither is one that is not wanted.
    for (const [terminal, more] of [
      [false, []],
      [true, ["--no-input"]],
    ] as const) {
      const refused = io(terminal, "y");
      expect([path, await runCli([...line, ...more], refused), refused.stdout.text]).toEqual([path, 4, ""]);
      expect(refused.stderr.text).toMatch(/^error: this .+ \[confirmation_required\]\n/);
      expect(refused.stderr.text).toEndWith(`hint: clio-relay ${line.join(" ")} --yes\n`);
    }
    // The end of the input, Ctrl-D, is no line, and the failure has one of its own all the same.
    for (const answer of ["n", null]) {
      const declined = io(true, answer);
      expect([path, await runCli(line, declined), declined.stdout.text]).toEqual([path, 1, ""]);
      const [question, failure] = declined.stderr.text.split(answer === null ? "\n" : /(?=error: )/);
      expect(question).toMatch(/^This .+\. Go on\? \[y\/N\] $/);
      expect(failure?.trimEnd()).toBe("error: nothing was changed [confirmation_declined]");
    }
  }
  expect(await relay.ok("cluster", "list")).toBe(before);
  // Nothing is lost with a daemon that holds no link.
  expect(await relay.ok("desktop", "stop", "--no-input")).toMatch(/^stopped process /);
});
