import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { PLAIN_COPIES } from "../../../src/lib/system/plain-copies.ts";
import { Answer } from "../../../src/transport/script/frame.ts";
import { ServiceStatus, statusOf } from "../../../src/transport/service/status.ts";
import { userUnit } from "../../../src/transport/service/unit.ts";

const WORKER = {
  process: { pid: 70, start_time: 9, boot_id: "b", hostname: "h" },
  version: "1.0.0",
  worker_id: "worker_1",
  socket: "/run/x.sock",
};
const RUNNING = {
  LoadState: "loaded",
  ActiveState: "active",
  SubState: "running",
  Result: "success",
  UnitFileState: "enabled",
  MainPID: "70",
  NRestarts: "0",
  InvocationID: "abc",
  Job: "",
  ActiveEnterTimestampMonotonic: "1000000",
  ExecMainStartTimestampMonotonic: "1000000",
};

interface Case {
  readonly shown?: Readonly<Record<string, string>>;
  readonly said?: Readonly<Record<string, string>>;
  readonly worker?: boolean;
}

function status({ shown = {}, said = {}, worker = true }: Case): ServiceStatus {
  const records: [string, string][] = [
    ["hostname", "h"],
    ["user", "ann"],
    ["uptime", "20"],
    ...Object.entries({ manager: "yes", linger: "yes", ...said }),
    ...Object.entries({ ...RUNNING, ...shown }).map(([name, value]): [string, string] => ["show", `${name}=${value}`]),
    ...(worker
      ? ([
          ["worker", JSON.stringify(WORKER)],
          ["worker_start", "9"],
        ] as [string, string][])
      : []),
  ];
  return v.parse(ServiceStatus, statusOf("c", new Answer(records, 0)));
}

const INACTIVE = { ActiveState: "inactive", SubState: "dead", MainPID: "0" };

describe("the state of a service", () => {
  test.each<[string, Case, ServiceStatus["state"]]>([
    ["that serves", {}, "ready"],
    ["whose worker is another process", { shown: { MainPID: "71" } }, "recovering"],
    ["that does not serve yet", { worker: false }, "recovering"],
    ["that has not served for long", { worker: false, said: { uptime: "2000" } }, "degraded"],
    ["that waits for its next try", { shown: { ActiveState: "activating", SubState: "auto-restart" } }, "recovering"],
    ["that is being stopped", { shown: { ActiveState: "deactivating", SubState: "stop-sigterm" } }, "recovering"],
    ["with a job in the queue", { shown: { ...INACTIVE, Job: "17" } }, "recovering"],
    ["that was stopped", { shown: INACTIVE }, "intentional-stop"],
    [
      "that was never enabled",
      { shown: { ...INACTIVE, ExecMainStartTimestampMonotonic: "0", UnitFileState: "disabled" } },
      "intentional-stop",
    ],
    ["that should have been started", { shown: { ...INACTIVE, ExecMainStartTimestampMonotonic: "0" } }, "inactive-unexpected"],
    ["that the manager gave up", { shown: { ...INACTIVE, ActiveState: "failed", Result: "exit-code" } }, "failed"],
    ["that is masked", { shown: { LoadState: "masked" } }, "degraded"],
    ["of a state that is not known", { shown: { ActiveState: "maintenance" } }, "degraded"],
    ["that is not there", { shown: { LoadState: "not-found", ...INACTIVE } }, "not-installed"],
    ["where nobody answers", { said: { manager: "no" } }, "not-installed"],
    ["of a supervisor", { said: { manager: "no", launcher: "setsid", supervisor: "60" } }, "ready"],
    [
      "of a supervisor whose worker does not serve",
      { said: { manager: "no", launcher: "cron", supervisor: "60" }, worker: false },
      "recovering",
    ],
    ["of a supervisor that is gone", { said: { manager: "no", launcher: "setsid" } }, "inactive-unexpected"],
    ["of a supervisor that was stopped", { said: { manager: "no", launcher: "setsid", stopped: "yes" } }, "intentional-stop"],
  ])("%s", (_, given, state) => {
    expect(status(given).state).toBe(state);
  });

  test("says how long it lasts, and what a person would have to do", () => {
    const seen = (given: Case) => {
      const { persistence, operator_action, launcher } = status(given);
      return [launcher, persistence, operator_action];
    };
    expect(seen({})).toEqual(["systemd", "persistent", null]);
    expect(seen({ said: { linger: "no" } })).toEqual(["systemd", "login-scoped", "loginctl enable-linger ann"]);
    expect(seen({ shown: { UnitFileState: "disabled" } })).toEqual(["systemd", "until-reboot", null]);
    expect(seen({ shown: INACTIVE })).toEqual(["systemd", "persistent", "clio-relay cluster restart-endpoint-service --cluster c"]);
    const install = "clio-relay cluster install-endpoint-service --cluster c";
    const none = (said: Record<string, string>) => seen({ said, shown: { LoadState: "not-found", ...INACTIVE } });
    expect(none({})).toEqual([null, "not-installed", `${install} --start --enable`]);
    expect(none({ missing: "yes" })).toEqual([null, "not-installed", "clio-relay cluster bootstrap --cluster c"]);
    expect(none({ manager: "no", cron: "yes" })).toEqual([null, "not-installed", `${install} --launcher cron`]);
    for (const cron of ["no", "unknown"])
      expect(none({ manager: "no", cron })).toEqual([null, "not-installed", `${install} --launcher setsid`]);
    // What would start it again is looked for, and not taken for granted.
    const cron = (runs: Record<string, string>) => seen({ said: { manager: "no", launcher: "cron", supervisor: "60", ...runs } });
    expect(cron({ cron: "yes" })).toEqual(["cron", "persistent", null]);
    expect(cron({ cron: "unknown" })).toEqual(["cron", "unproven", null]);
    for (const none of [{}, { cron: "no" }])
      expect(cron(none)).toEqual(["cron", "until-reboot", "have a cron started on h, where none runs"]);
  });

  test("takes no record of a worker that is gone, or of nonsense", () => {
    const gone = new Answer(
      [
        ["hostname", "h"],
        ["user", "u"],
        ["worker", JSON.stringify(WORKER)],
        ["worker_start", ""],
      ],
      0,
    );
    expect(statusOf("c", gone).worker).toBeNull();
    const nonsense = new Answer(
      [
        ["hostname", "h"],
        ["user", "u"],
        ["worker", "{"],
        ["worker_start", "9"],
      ],
      0,
    );
    expect(statusOf("c", nonsense).worker).toBeNull();
  });
});

test("a unit quotes what systemd would take for something else", () => {
  const text = userUnit({ cluster: "c", executable: '/a "b" $x 100%/clio-relay', environment: { CLIO_RELAY_HOME: "/h $y \\ %u" } });
  expect(text).toContain('\nExecStart=/bin/sh -c "exec \\"$$0\\" \\"$$@\\"" "/a \\"b\\" $$x 100%%/clio-relay" worker run --cluster c\n');
  expect(text).toContain('\nEnvironment="CLIO_RELAY_HOME=/h $y \\\\ %%u"\n');
  expect(text).toMatch(/^Environment="GLIBC_TUNABLES=[\w.=]+"$/m);
  expect(userUnit({ cluster: "c", executable: "/h/u/current/clio-relay", environment: {} })).toContain(
    "\nExecStart=/h/u/current/clio-relay worker run --cluster c\n",
  );
});

test("a supervisor gives a worker what a unit gives it for its copies", () => {
  const script = fs.readFileSync(path.join(import.meta.dir, "../../../src/transport/service/supervise.sh"), "utf8");
  for (const [name, value] of Object.entries(PLAIN_COPIES)) expect(script).toContain(`\nexport ${name}="\${${name}:-${value}}"\n`);
});
