import { afterEach, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { answerTo } from "../../../src/cli/complete/main.ts";
import { keepLastJob } from "../../../src/cli/job/last-job.ts";
import { readEnvironment } from "../../../src/config/environment.ts";
import { resolvePaths } from "../../../src/config/paths.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { Captured } from "../captured-io.ts";

const directories = temporaryDirectories();
const servers: { stop(close: boolean): Promise<void> }[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(true);
});

const ESC = "\u001b";
const EVIL = `$(touch pwned) \`touch pwned\` ${ESC}]0;x\u0007 \u202e'"\n\twords`;
const id = (digit: string): string => `job_${digit.repeat(32)}`;

/** An installation, and a daemon of it that answers as it is told to. */
function daemon(answer: (route: string) => Response | Promise<Response>): { env: ReturnType<typeof readEnvironment>; asked: string[] } {
  const home = path.join(directories(), "h");
  fs.mkdirSync(path.join(home, "run"), { recursive: true, mode: 0o700 });
  fs.mkdirSync(path.join(home, "config"), { mode: 0o700 });
  const asked: string[] = [];
  const server = Bun.serve({
    unix: path.join(home, "run", "desktop.sock"),
    fetch(request) {
      const { pathname, search } = new URL(request.url);
      asked.push(pathname + search);
      return answer(pathname);
    },
  });
  servers.push(server);
  return { env: readEnvironment({ CLIO_RELAY_HOME: home, HOME: home }, home), asked };
}

const AT = "2026-01-02T03:04:05.678Z";
const TIMES = { created_at: AT, updated_at: AT };
const page = (key: string, items: readonly object[]): Response =>
  Response.json({ [key]: items, cursor: 1, limit: 40, next_cursor: items.length + 1, total: items.length });

const link = (cluster: string, mode: string, state: string) => ({
  ...{ cluster, mode, state, since: null, round_trip_ms: null, worker_version: null, detail: null },
  ...{ bytes_in: null, bytes_out: null, ssh_connections_since_bring_up: null, bring_up_seq: null, ledger: [] },
});
const LINKS = [
  link("local", "local", "up"),
  link("far", "ssh", "up"),
  link("away", "ssh", "authorization_required"),
  link("lost", "relay", "connecting"),
];
const links = (): Response => Response.json({ links: LINKS });
const summary = ([job_id, title]: readonly [job_id: string, title: string], sequence: number) => ({
  ...{ job_id, sequence, cluster: "far", kind: "command", lane: "workload", state: "running", attempts: 1, title, quarantine: null },
  ...TIMES,
});
const jobs = (...all: (readonly [job_id: string, title: string])[]): Response =>
  Response.json({ jobs: all.map(summary), next_before: null });

const zsh = (env: ReturnType<typeof readEnvironment>, ...words: string[]): Promise<string> => answerTo(["zsh", ...words], env);

test("jobs are those of clusters whose links are up, and nobody else is asked", async () => {
  const { env, asked } = daemon((route) =>
    route === "/links" ? links() : route === "/clusters/local/jobs" ? jobs([id("a"), "one"]) : jobs([id("b"), "other"]),
  );
  expect(await zsh(env, "job", "status", "")).toBe(`words\n${id("a")}\trunning: one\n${id("b")}\trunning: other\n`);
  expect(asked.toSorted()).toEqual(["/clusters/far/jobs?limit=40&inputs=false", "/clusters/local/jobs?limit=40&inputs=false", "/links"]);
  asked.length = 0;
  expect(await zsh(env, "job", "status", "--cluster", "far", "")).toBe(`words\n${id("b")}\trunning: other\n`);
  expect(await zsh(env, "job", "status", "--cluster", "away", "")).toBe("words\n");
  expect(asked).toEqual(["/links", "/clusters/far/jobs?limit=40&inputs=false", "/links"]);
});

test("what is to be canceled has not ended", async () => {
  const { env, asked } = daemon((route) => (route === "/links" ? links() : jobs([id("a"), "one"])));
  const last = (job_id: string) => keepLastJob({ stderr: new Captured() }, resolvePaths(env).lastJobFile, { job_id, cluster: "far" });
  await last(id("b"));
  expect(await zsh(env, "job", "cancel", "-c", "far", "")).toBe(`words\n${id("a")}\trunning: one\n`);
  expect(asked).toEqual(["/links", "/clusters/far/jobs?limit=40&state=queued&state=leased&state=running"]);
  await last(id("a"));
  expect(await zsh(env, "job", "cancel", "-c", "far", "")).toBe(`words\nlast\t${id("a")} of far\n${id("a")}\trunning: one\n`);
  await zsh(env, "job", "cancel", "-c", "far", "job_aaaaaaaa");
  expect(asked.at(-1)).toBe("/clusters/far/jobs?limit=40&state=queued&state=leased&state=running&id_prefix=job_aaaaaaaa");
});

test("a beginning that the worker can look up is looked up", async () => {
  const { env, asked } = daemon((route) => (route === "/links" ? links() : jobs([id("a"), "one"])));
  await zsh(env, "job", "status", "-c", "far", "job_aaaaaaaa");
  expect(asked).toContain("/clusters/far/jobs?limit=40&id_prefix=job_aaaaaaaa");
});

test("what a cluster says is shown and never obeyed, and one that says ids that are none has nothing", async () => {
  const { env } = daemon((route) => (route === "/links" ? links() : jobs([id("a"), EVIL])));
  const answer = await zsh(env, "job", "status", "-c", "far", "");
  expect(answer).toBe(`words\n${id("a")}\trunning: $(touch pwned) \`touch pwned\` ^[]0;x^G \\u202e'" wor…\n`);
  const inBash = await answerTo(["bash", " =:", "clio-relay job status -c far "], env);
  expect(inBash).toBe(`words\n${id("a")}\n`);
  for (const none of ["$(touch pwned)", "a b", "-rf", "job_\nx"]) {
    const other = daemon((route) => (route === "/links" ? links() : jobs([id("a"), "x"], [none, "x"])));
    expect([none, await zsh(other.env, "job", "status", "-c", "far", "")]).toEqual([none, "words\n"]);
  }
});

test("artifacts, their digests, tasks and keys", async () => {
  const artifact = (artifact_id: string, sequence: number) => ({
    ...{ artifact_id, job_id: id("a"), sequence, kind: "execution_output", name: "out/file", uri: "file:///out/file" },
    ...{ size_bytes: 1, sha256: String(sequence).repeat(64), metadata: {}, created_at: AT },
  });
  const fingerprint = `SHA256:${"a/+B".repeat(10)}abc`;
  const { env } = daemon((route) => {
    if (route === "/links") return links();
    if (route.endsWith("/jobs")) return jobs([id("a"), "one"]);
    if (route.endsWith("/artifacts")) return page("artifacts", [artifact("artifact_1", 1), artifact("artifact_2", 2)]);
    if (route.endsWith("/tasks"))
      return page("tasks", [{ task_id: "task_1", job_id: id("a"), sequence: 1, name: "command", state: "queued", ...TIMES }]);
    const none = { added_at: AT, by: "pairing", expires_at: null, expired: false, last_used_at: null, sessions: null };
    const keys = [{ fingerprint, comment: "ada@desk", ...none }];
    return Response.json({ schema_version: "clio-relay.link-keys.v1", host_key: null, next_host_key: null, keys });
  });
  expect(await zsh(env, "job", "read-artifact", "-c", "far", "")).toBe("words\nartifact_1\tout/file of one\nartifact_2\tout/file of one\n");
  expect(await zsh(env, "job", "submit", "-c", "far", "--used-artifact", "")).toBe(
    `words\nartifact_1=${"1".repeat(64)}\tout/file of one\nartifact_2=${"2".repeat(64)}\tout/file of one\n`,
  );
  expect(await zsh(env, "job", "task-events", "-c", "far", "")).toBe("words\ntask_1\tqueued: one\n");
  expect(await zsh(env, "worker", "keys", "revoke", "-c", "far", "")).toBe(`words\n${fingerprint}\tada@desk\n`);
  // bash replaces what stands after the colon only.
  expect(await answerTo(["bash", "=:", "clio-relay worker keys revoke -c far SHA256:a/"], env)).toBe(
    `words\n${fingerprint.slice("SHA256:".length)}\n`,
  );
  expect(await answerTo(["bash", "=:", "clio-relay job submit -c far --used-artifact=artifact_1=11"], env)).toBe(
    `words\n${"1".repeat(64)}\n`,
  );
});

test("a cluster that does not answer takes nothing from the others, and a daemon that does not has nothing", async () => {
  const never = (): Promise<Response> => new Promise(() => undefined);
  const one = daemon((route) => (route === "/links" ? links() : route === "/clusters/far/jobs" ? never() : jobs([id("a"), "one"])));
  expect(await zsh(one.env, "job", "status", "")).toBe(`words\n${id("a")}\trunning: one\n`);
  const hung = daemon(never);
  await expect(zsh(hung.env, "job", "status", "")).rejects.toThrow();
  const broken = daemon(() => new Response("not JSON", { headers: { "content-type": "application/json" } }));
  await expect(zsh(broken.env, "job", "status", "")).rejects.toThrow();
});

test("no daemon is started, and clusters are those of the registry", async () => {
  const home = path.join(directories(), "h");
  fs.mkdirSync(path.join(home, "config"), { recursive: true, mode: 0o700 });
  const env = readEnvironment({ CLIO_RELAY_HOME: home, HOME: home }, home);
  await expect(zsh(env, "job", "status", "")).rejects.toThrow("no daemon");
  expect(await zsh(env, "connect", "")).toBe("words\n");
  const clusters = [
    { name: "local", mode: "local" },
    { name: "far", mode: "ssh", ssh_host: "login" },
  ];
  fs.writeFileSync(path.join(home, "config", "clusters.json"), JSON.stringify({ version: 2, clusters }), { mode: 0o600 });
  expect(await zsh(env, "connect", "")).toBe("words\nlocal\tthis machine\nfar\tssh\n");
  expect(await answerTo(["bash", "=:", "clio-relay job list --cluster=f"], env)).toBe("words\nfar\n");
  expect(await answerTo(["bash", " ", "clio-relay job list --cluster=f"], env)).toBe("words\n--cluster=far\n");
  expect(fs.readdirSync(home)).toEqual(["config"]);
});

test("files are the shell's, but where it does not see where a name begins", async () => {
  const cwd = directories();
  for (const name of ["a:b c", "a:b'", "ab", ".a:hidden"]) fs.writeFileSync(path.join(cwd, name), "");
  fs.mkdirSync(path.join(cwd, "a:dir"));
  const env = readEnvironment({ HOME: cwd }, cwd);
  const bash = (line: string, breaks = "=:"): Promise<string> => answerTo(["bash", breaks, `clio-relay ${line}`], env);
  expect(await bash("job submit --script a")).toBe("files\n");
  expect(await bash("job submit --script=a")).toBe("files\n");
  expect(await bash("worker configure < a")).toBe("files\n");
  expect(await bash("install-frp --destination a")).toBe("directories\n");
  expect((await bash("job submit --script a:")).split("\n").toSorted()).toEqual(["", "b\\ c", "b\\'", "dir/", "words"]);
  expect(await bash("install-frp --destination a:")).toBe("words nospace\ndir/\n");
  expect(
    (await bash("job submit --script=a", ""))
      .split("\n")
      .filter((line) => line.startsWith("--script=a"))
      .toSorted(),
  ).toEqual(["--script=a:b\\ c", "--script=a:b\\'", "--script=a:dir/", "--script=ab"]);
  expect(await zsh(env, "job", "submit", "--script=a:")).toBe("files\n");
  expect((await answerTo(["fish", "job", "submit", "--script=a:b"], env)).split("\n").toSorted()).toEqual([
    "",
    "--script=a:b c",
    "--script=a:b'",
    "words",
  ]);
});

test("a line that nobody types has no answer", async () => {
  const env = readEnvironment({}, "/");
  expect(await answerTo(["bash", "=:", `clio-relay ${"x".repeat(70_000)}`], env)).toBe("words\n");
  expect(await answerTo([], env)).toStartWith("words\n");
});
