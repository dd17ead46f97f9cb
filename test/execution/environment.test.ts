import { describe, expect, test } from "bun:test";
import { account } from "../../src/execution/account.ts";
import { interpreterOf, type JobEnvironmentInput, jobEnvironment, lostVariables } from "../../src/execution/environment.ts";

const environment = (worker: JobEnvironmentInput["worker"], spec: Record<string, string> = {}, executableDir: string | null = null) =>
  jobEnvironment({ worker, spec, jobId: "job_a", attempt: 3, cluster: "c", eventsDir: "/spool/events", executableDir });

const own = { CLIO_RELAY_JOB_ID: "job_a", CLIO_RELAY_CLUSTER: "c", CLIO_RELAY_EVENTS: "/spool/events", CLIO_RELAY_ATTEMPT: "job_a/3" };
const login = { HOME: "/home/u", USER: "u", LOGNAME: "u", SHELL: "/bin/zsh", PATH: "/opt/bin:/bin" };

describe("a job's environment", () => {
  test("has the trace that it was submitted in, unless the submission says another, and never the worker's", () => {
    const traced = (spec: Record<string, string>, tracestate: string | null) =>
      jobEnvironment({
        worker: { ...login, TRACEPARENT: "00-worker", TRACESTATE: "w=1" },
        spec,
        trace: { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", tracestate },
        jobId: "job_a",
        attempt: 1,
        cluster: "c",
        eventsDir: "/e",
        executableDir: null,
      });
    const { TRACEPARENT, TRACESTATE } = traced({}, "a=1");
    expect([TRACEPARENT, TRACESTATE]).toEqual(["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=1"]);
    expect(traced({}, null)).not.toHaveProperty("TRACESTATE");
    expect(traced({ TRACEPARENT: "mine" }, null)["TRACEPARENT"]).toBe("mine");
    expect(environment({ ...login, TRACEPARENT: "00-worker" })).not.toHaveProperty("TRACEPARENT");
  });

  test("is an allow-list of the worker's, the submission's, and the relay's own", () => {
    const worker = {
      ...login,
      LANG: "sv_SE.UTF-8",
      LC_ALL: "C",
      TZ: "UTC",
      TMPDIR: "/scratch",
      XDG_RUNTIME_DIR: "/run/user/1",
      MODULEPATH: "/m",
      CLIO_RELAY_API_TOKEN: "secret",
      CLIO_RELAY_FRP_TOKEN: "secret",
      CLIO_RELAY_JOB_ID: "job_outer",
      AWS_SECRET_ACCESS_KEY: "secret",
      SSH_AUTH_SOCK: "/agent",
      LC_: "odd",
      NOTIFY_SOCKET: "/run/systemd/notify",
      GONE: undefined,
    };
    expect(environment(worker, { MINE: "1" })).toEqual({
      ...login,
      LANG: "sv_SE.UTF-8",
      LC_ALL: "C",
      TZ: "UTC",
      TMPDIR: "/scratch",
      XDG_RUNTIME_DIR: "/run/user/1",
      MODULEPATH: "/m",
      MINE: "1",
      ...own,
    });
  });

  test("has nothing of the worker's that was lost in decoding: of search paths the places that are left, of others nothing", () => {
    const lost = {
      PATH: "/opt/caf\u{FFFD}/bin:/bin",
      MODULEPATH: "/m\u{FFFD}",
      SCRATCH: "/scratch/b\u{FFFD}rk",
      LC_ALL: "sv_SE.UTF-8",
    };
    expect(environment({ ...login, ...lost })).toEqual({ ...login, PATH: "/bin", LC_ALL: "sv_SE.UTF-8", ...own });
    expect(environment({ ...login, HOME: "/home/\u{FFFD}" }).HOME).toBe(account(process.getuid!()).home);
    expect(lostVariables({ ...login, ...lost, MY_OWN: "\u{FFFD}" })).toEqual(["PATH", "MODULEPATH", "SCRATCH"]);
    expect(lostVariables(login)).toEqual([]);
    // What a submission says was said in JSON, and is as it was meant.
    expect(environment(login, { NAME: "\u{FFFD}" })).toMatchObject({ NAME: "\u{FFFD}" });
  });

  test("has the site's proxies, except addresses with a password or a name", () => {
    const open = {
      HTTP_PROXY: "http://proxy.site:3128",
      https_proxy: "proxy.site:3128",
      ALL_PROXY: "socks5h://10.0.0.1",
      no_proxy: "localhost,.site,10.0.0.0/8",
    };
    expect(environment({ ...login, ...open })).toEqual({ ...login, ...open, ...own });
    for (const secret of [
      "http://user:password@proxy",
      "user:password@proxy:3128",
      "http://user@proxy",
      "http://u:p@w@proxy",
      "//u%40:p@h",
    ])
      for (const name of ["http_proxy", "HTTPS_PROXY", "All_Proxy", "NO_PROXY"])
        expect(environment({ ...login, [name]: secret })).toEqual({ ...login, ...own });
    expect(environment({ ...login, MY_HTTP_PROXY: "http://proxy", HTTP_PROXY_PASSWORD: "x" })).toEqual({ ...login, ...own });
    expect(environment(login, { HTTPS_PROXY: "http://mine:known@proxy" })).toMatchObject({ HTTPS_PROXY: "http://mine:known@proxy" });
  });

  test("says where the installation lies, in full, so that a command within the job finds the daemon that is there", () => {
    const places = {
      CLIO_RELAY_HOME: "relay",
      CLIO_RELAY_CORE_DIR: "/core",
      CLIO_RELAY_SPOOL_DIR: "",
      CLIO_RELAY_CLUSTER_REGISTRY: "/c.json",
    };
    expect(environment({ ...login, ...places, CLIO_RELAY_API_TOKEN: "t" })).toEqual({
      ...login,
      CLIO_RELAY_HOME: `${process.cwd()}/relay`,
      CLIO_RELAY_CORE_DIR: "/core",
      CLIO_RELAY_CLUSTER_REGISTRY: "/c.json",
      ...own,
    });
  });

  test("has the relay's own directory last on its path, once", () => {
    expect(environment(login, {}, "/relay/bin")).toMatchObject({ PATH: "/opt/bin:/bin:/relay/bin" });
    expect(environment(login, {}, "/opt/bin")).toMatchObject({ PATH: "/opt/bin:/bin" });
    expect(environment(login, { PATH: "/mine" }, "/relay/bin")).toMatchObject({ PATH: "/mine:/relay/bin" });
    expect(environment(login, { PATH: "" }, "/relay/bin")).toMatchObject({ PATH: "" });
  });

  test("is overridden by the submission, except what is the relay's", () => {
    const result = environment(login, {
      PATH: "/mine",
      HOME: "/elsewhere",
      CLIO_RELAY_JOB_ID: "job_fake",
      CLIO_RELAY_ATTEMPT: "job_fake/1",
    });
    expect(result).toEqual({ ...login, PATH: "/mine", HOME: "/elsewhere", ...own });
  });

  test("has what a login has though the worker was started with nothing", () => {
    const { name, home, shell } = account(process.getuid!());
    expect(environment({})).toMatchObject({ HOME: home, USER: name, LOGNAME: name, SHELL: shell, PATH: "/usr/local/bin:/usr/bin:/bin" });
    expect(environment({ HOME: "", PATH: "" })).toMatchObject({ HOME: home, PATH: "/usr/local/bin:/usr/bin:/bin" });
  });
});

describe("a script's interpreter", () => {
  const cases: [string, string[]][] = [
    ["echo hi\n", ["/bin/sh"]],
    ["", ["/bin/sh"]],
    ["#!/bin/bash\n", ["/bin/bash"]],
    ["#!/bin/bash", ["/bin/bash"]],
    ["#! /bin/bash -e \nset -u\n", ["/bin/bash", "-e"]],
    ["#!/bin/bash -e -u\n", ["/bin/bash", "-e -u"]],
    ["#!/usr/bin/env python3\n", ["/usr/bin/env", "python3"]],
    ["#!/usr/bin/env -S python3 -u\n", ["/usr/bin/env", "-S python3 -u"]],
    ["#!/bin/sh\r\necho windows\r\n", ["/bin/sh"]],
    ["#!\n", ["/bin/sh"]],
    ["#!\t/bin/sh\t-x\n", ["/bin/sh", "-x"]],
    ["# !/bin/bash\n", ["/bin/sh"]],
    ["\n#!/bin/bash\n", ["/bin/sh"]],
  ];
  for (const [script, expected] of cases) {
    test(JSON.stringify(script), () => {
      expect(interpreterOf(script)).toEqual(expected);
    });
  }
});
