import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { initialized } from "../../cli/source-relay.ts";
import { eventually } from "../../runner/wait.ts";

const run = (home: string, name: string): string => path.join(home, "run", name);

test("twenty commands at once and no daemon: one daemon, and every command is served", async () => {
  await using relay = await initialized();
  expect(relay.daemons()).toEqual([]);
  const results = await Promise.all(Array.from({ length: 20 }, () => relay.run(["cluster", "list"])));
  for (const result of results) expect(result).toEqual({ code: 0, stdout: "local\tlocal\t3\t2\n", stderr: "" });
  expect(relay.daemons()).toHaveLength(1);
});

describe("a daemon that died leaves its socket, and", () => {
  test("the next command starts another", async () => {
    await using relay = await initialized();
    await relay.ok("cluster", "list");
    const [first] = relay.daemons();
    await relay.kill(first!);
    expect(fs.existsSync(run(relay.home, "desktop.sock"))).toBe(true);
    const results = await Promise.all(Array.from({ length: 5 }, () => relay.run(["cluster", "list"])));
    for (const result of results) expect(result).toEqual({ code: 0, stdout: "local\tlocal\t3\t2\n", stderr: "" });
    const daemons = relay.daemons();
    expect(daemons).toHaveLength(1);
    expect(daemons).not.toContain(first);
  });
});

test("a command within a job uses the daemon that is there, and starts neither one nor a worker", async () => {
  await using relay = await initialized();
  const env = { CLIO_RELAY_ATTEMPT: "job_1/1" };
  const refuses = async (...args: string[]): Promise<void> => {
    const refused = await relay.run(args, { env });
    expect([refused.code, refused.stdout]).toEqual([7, ""]);
    expect(refused.stderr).toContain("not_within_job");
    expect(refused.stderr).toContain("job_1/1");
    expect(refused.stderr).toContain("clio-relay desktop start");
  };
  await refuses("desktop", "start");
  expect(relay.daemons()).toEqual([]);
  await relay.ok("desktop", "start");
  const [daemon] = relay.daemons();
  expect((await relay.run(["desktop", "start"], { env })).code).toBe(0);
  expect(relay.daemons()).toEqual([daemon!]);
  await refuses("worker", "start", "--cluster", "local");
});

test("nothing of the caller is kept: no directory, no terminal, no agent, no cluster of a job", async () => {
  await using relay = await initialized();
  const elsewhere = path.join(relay.directory, "elsewhere");
  fs.mkdirSync(elsewhere);
  const env = {
    SSH_AUTH_SOCK: "/nowhere/agent",
    TERM: "xterm",
    DISPLAY: ":1",
    SECRET_OF_MINE: "x",
    CLIO_RELAY_CLUSTER: "local",
    CLIO_RELAY_EVENTS: "/nowhere",
    CLIO_RELAY_JOB_ID: "job_1",
    CLIO_RELAY_HOME: `${elsewhere}/../home`,
  };
  expect((await relay.run(["cluster", "list"], { env, cwd: elsewhere })).code).toBe(0);
  const [pid] = relay.daemons();
  expect(fs.readlinkSync(`/proc/${pid}/cwd`)).toBe("/");
  const kept = fs.readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  const names = kept.map((line) => line.split("=")[0]!);
  for (const name of Object.keys(env).filter((name) => name !== "CLIO_RELAY_HOME")) expect(names).not.toContain(name);
  expect(kept).toContain(`CLIO_RELAY_HOME=${relay.home}`);
  expect(names).toContain("GLIBC_TUNABLES");
  // A session of its own, and no way to the caller's terminal or pipes.
  const stat = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  expect([fields[3], fields[4]]).toEqual([String(pid), "0"]);
  expect([0, 1].map((fd) => fs.readlinkSync(`/proc/${pid}/fd/${fd}`))).toEqual(["/dev/null", "/dev/null"]);
  expect(fs.readlinkSync(`/proc/${pid}/fd/2`)).toBe(path.join(relay.home, "log", "desktop-stderr.log"));
});

test("more quiet requests than a process of Bun sends by itself do not hold up another", async () => {
  await using relay = await initialized();
  await relay.ok("cluster", "list");
  const socket = run(relay.home, "worker-local.sock");
  const quiet = Bun.serve({
    unix: socket,
    fetch: (request: Request) =>
      request.url.endsWith("/quiet") ? new Promise<Response>(() => undefined) : Response.json({ workers: [], worker_count: 0 }),
    idleTimeout: 0,
  } as unknown as Bun.Serve.Options<undefined>);
  // From a process that may send so many; this one may not.
  const program = `await Promise.all(Array.from({ length: 300 }, () =>
      fetch("http://relay/clusters/local/quiet", { unix: ${JSON.stringify(run(relay.home, "desktop.sock"))} })));`;
  const many = Bun.spawn([process.execPath, "-e", program], {
    env: { ...relay.environment, BUN_CONFIG_MAX_HTTP_REQUESTS: "1000" },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  try {
    const active = async () => (await relay.json<{ active_requests: number }>("desktop", "status")).active_requests;
    expect(await eventually(async () => (await active()) >= 300)).toBe(true);
    expect(await relay.json("worker", "status", "--cluster", "local")).toEqual({ workers: [], worker_count: 0 });
  } finally {
    many.kill("SIGKILL");
    await quiet.stop(true);
  }
});

describe("a place that is not the user's own", () => {
  test("is refused by the command, and nothing is started there", async () => {
    await using relay = await initialized();
    fs.chmodSync(path.join(relay.home, "run"), 0o777);
    const result = await relay.run(["cluster", "list"]);
    expect(result).toMatchObject({ code: 4, stdout: "" });
    expect(result.stderr).toContain(`${relay.home}/run holds the relay's sockets, but is open to other users [resource_ownership_refused]`);
    expect(result.stderr).toContain(`hint: chmod 700 ${relay.home}/run`);
    expect(relay.daemons()).toEqual([]);
  });
});

test("on loopback: the same commands, one daemon, the token in no process's command line or environment", async () => {
  await using relay = await initialized({ CLIO_RELAY_LOCAL_LISTEN: "tcp" });
  const results = await Promise.all(Array.from({ length: 6 }, () => relay.run(["cluster", "list"])));
  for (const result of results) expect(result).toEqual({ code: 0, stdout: "local\tlocal\t3\t2\n", stderr: "" });
  const [pid, ...more] = relay.daemons();
  expect(more).toEqual([]);
  expect(fs.existsSync(run(relay.home, "desktop.sock"))).toBe(false);
  const { tcp } = JSON.parse(fs.readFileSync(run(relay.home, "desktop.json"), "utf8")) as { tcp: { url: string; token: string } };
  for (const file of ["environ", "cmdline"]) expect(fs.readFileSync(`/proc/${pid}/${file}`, "utf8")).not.toContain(tcp.token);
  expect(fs.readFileSync(path.join(relay.home, "log", "desktop.log"), "utf8")).not.toContain(tcp.token);
  expect(await relay.json("desktop", "status")).toMatchObject({ socket: tcp.url, process: { pid } });
  // After a daemon that was killed, the next has another port and token, and is found.
  await relay.kill(pid!);
  expect(await relay.ok("cluster", "list")).toBe("local\tlocal\t3\t2");
  expect(await relay.ok("desktop", "stop")).toMatch(/^stopped process \d+$/);
  expect(await relay.ok("desktop", "stop")).toBe("no daemon is running");
});

test("a daemon that listens in the other way is found and used, not replaced", async () => {
  await using relay = await initialized();
  await relay.ok("cluster", "list");
  const [unix] = relay.daemons();
  expect(await relay.run(["cluster", "list"], { env: { CLIO_RELAY_LOCAL_LISTEN: "tcp" } })).toMatchObject({ code: 0, stderr: "" });
  expect(relay.daemons()).toEqual([unix!]);
  await relay.ok("desktop", "stop");
  expect((await relay.run(["desktop", "start"], { env: { CLIO_RELAY_LOCAL_LISTEN: "tcp" } })).stdout).toContain("http://127.0.0.1:");
  const [tcp] = relay.daemons();
  expect(await relay.run(["cluster", "list"])).toMatchObject({ code: 0, stderr: "" });
  expect(relay.daemons()).toEqual([tcp!]);
});

test("start, status, logs, stop", async () => {
  await using relay = await initialized();
  const missing = await relay.run(["desktop", "status"]);
  expect(missing).toMatchObject({ code: 5, stdout: "" });
  expect(missing.stderr).toBe("error: no daemon is running [desktop_unavailable]\nhint: clio-relay desktop start\n");
  expect(relay.daemons()).toEqual([]);
  expect(await relay.json("desktop", "start")).toMatchObject({ started: true });
  const [pid] = relay.daemons();
  expect(await relay.ok("desktop", "start")).toBe(`desktop runs already as process ${pid} on ${run(relay.home, "desktop.sock")}`);
  expect(await relay.json("desktop", "status")).toMatchObject({ process: { pid }, links: [{ cluster: "local", state: "down" }] });
  expect(await relay.ok("desktop", "logs")).toMatch(new RegExp(`info desktop \\S+ runs as process ${pid} on `));
  const second = await relay.run(["desktop", "run"]);
  expect(second).toMatchObject({ code: 7, stderr: `error: the desktop daemon runs already, as process ${pid} [already_running]\n` });
  expect(await relay.ok("desktop", "stop")).toBe(`stopped process ${pid}`);
  expect(relay.daemons()).toEqual([]);
  expect(fs.existsSync(run(relay.home, "desktop.sock"))).toBe(false);
});

test("a daemon whose record is gone is found by its socket, shown and stopped", async () => {
  await using relay = await initialized();
  await relay.ok("desktop", "start");
  const [pid] = relay.daemons();
  fs.rmSync(run(relay.home, "desktop.json"));
  expect(await relay.json("desktop", "status")).toMatchObject({ process: { pid } });
  expect(await relay.ok("desktop", "stop")).toBe(`stopped process ${pid}`);
  expect(relay.daemons()).toEqual([]);
  // A socket that nobody listens on is no daemon.
  await relay.ok("desktop", "start");
  await relay.kill(relay.daemons()[0]!);
  fs.rmSync(run(relay.home, "desktop.json"));
  expect(fs.existsSync(run(relay.home, "desktop.sock"))).toBe(true);
  expect(await relay.ok("desktop", "stop")).toBe("no daemon is running");
  expect(await relay.run(["desktop", "status"])).toMatchObject({ code: 5, stdout: "" });
});

async function silentIsNamed(listen: "unix" | "tcp"): Promise<void> {
  await using relay = await initialized({ CLIO_RELAY_LOCAL_LISTEN: listen });
  await relay.ok("desktop", "start");
  const [pid] = relay.daemons();
  process.kill(pid!, "SIGSTOP");
  expect(await relay.run(["desktop", "status"])).toEqual({
    code: 5,
    stdout: "",
    stderr: `error: the desktop daemon, process ${pid}, does not answer [desktop_unavailable]\nhint: clio-relay desktop logs\n`,
  });
  if (listen === "unix") {
    fs.renameSync(run(relay.home, "desktop.json"), run(relay.home, "moved.json"));
    const results = await Promise.all(["status", "stop"].map((verb) => relay.run(["desktop", verb])));
    expect(results.map(({ code, stdout }) => [code, stdout])).toEqual([
      [5, ""],
      [5, ""],
    ]);
    for (const { stderr } of results) expect(stderr).toStartWith("error: the desktop daemon does not answer [desktop_unavailable]\n");
  }
  process.kill(pid!, "SIGCONT");
  expect(await relay.ok("desktop", "stop")).toBe(`stopped process ${pid}`);
}

async function silentIsNotWaitedFor(): Promise<void> {
  await using relay = await initialized();
  await relay.ok("desktop", "start");
  const [pid] = relay.daemons();
  process.kill(pid!, "SIGSTOP");
  const results = await Promise.all([relay.run(["cluster", "list"]), relay.run(["desktop", "start"])]);
  expect(results.map(({ code }) => code)).toEqual([5, 5]);
  expect(results[0]!.stderr).toContain("does not answer [desktop_unavailable]");
  expect(results[1]!.stderr).toContain(`the desktop daemon, process ${pid}, does not answer [desktop_unavailable]`);
  process.kill(pid!, "SIGCONT");
  expect(await relay.ok("cluster", "list")).toBe("local\tlocal\t3\t2");
  expect(relay.daemons()).toEqual([pid!]);
}

test("a daemon that takes requests and answers none is named, and nobody waits for it without end", async () => {
  // Each is a wait for somebody else.
  await Promise.all([silentIsNamed("unix"), silentIsNamed("tcp"), silentIsNotWaitedFor()]);
});

test("a daemon that ends leaves its successor's record", async () => {
  await using relay = await initialized();
  await relay.ok("desktop", "start");
  const [pid] = relay.daemons();
  process.kill(pid!, "SIGSTOP");
  // The directory was cleaned while the old one slept.
  for (const name of fs.readdirSync(path.join(relay.home, "run"))) fs.rmSync(run(relay.home, name));
  await relay.ok("desktop", "start");
  const record = fs.readFileSync(run(relay.home, "desktop.json"), "utf8");
  process.kill(pid!, "SIGCONT");
  process.kill(pid!, "SIGTERM");
  await eventually(() => !relay.daemons().includes(pid!));
  expect(fs.readFileSync(run(relay.home, "desktop.json"), "utf8")).toBe(record);
  expect(fs.existsSync(run(relay.home, "desktop.sock"))).toBe(true);
  expect(relay.daemons()).toHaveLength(1);
  expect(await relay.json("desktop", "status")).toMatchObject({ process: { pid: relay.daemons()[0] } });
});

test("a daemon whose socket was taken away ends, and the next command finds another", async () => {
  await using relay = await initialized();
  await relay.ok("desktop", "start");
  const [pid] = relay.daemons();
  fs.rmSync(run(relay.home, "desktop.sock"));
  expect(await relay.ok("cluster", "list")).toBe("local\tlocal\t3\t2");
  expect(relay.daemons()).toHaveLength(1);
  expect(relay.daemons()).not.toContain(pid);
  expect(await relay.ok("desktop", "logs")).toContain("was taken away");
});

test("what keeps a daemon from starting is said by the command", async () => {
  await using relay = await initialized();
  // A directory where its record has to be.
  fs.mkdirSync(run(relay.home, "desktop.json"));
  const result = await relay.run(["cluster", "list"]);
  expect(result.code).not.toBe(0);
  expect(result.stderr).toContain("desktop.json is not a regular file");
});
