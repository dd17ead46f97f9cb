import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { authorize, makeKey, makeUser, type RigUser, removeUser, type Sshd, startSshd } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { kill, processesMarked } from "../../runner/leftovers.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { authority } from "../../transport/outbound/certificates.ts";
import { TestRelayHost, TOKEN } from "../relay-desk.ts";
import { farLink, sshDesk } from "../ssh-desk.ts";

describeWith(["sshd", "ssh", "openssl"], "a cluster that is set up over SSH and met at a relay-host", () => {
  const files = temporaryDirectory();
  let sshd: Sshd;
  let user: RigUser;
  let key: string;
  let host: TestRelayHost;
  /** Of the site alone: neither side trusts it by itself. */
  let ca: ReturnType<typeof authority>;

  beforeAll(async () => {
    ca = authority(files.path);
    const certificate = ca.issue("relay", "DNS:localhost");
    [sshd, host] = await Promise.all([startSshd(), TestRelayHost.start({ certificate })]);
    user = makeUser();
    key = makeKey(files.path);
    authorize(user, `${key}.pub`);
  });
  afterAll(async () => {
    for (const { pid } of processesMarked("HOME", user.home)) kill(pid);
    await host[Symbol.asyncDispose]();
    await sshd[Symbol.asyncDispose]();
    removeUser(user);
    files[Symbol.dispose]();
  });

  test("needs SSH once: bootstrap gives the worker address and token, pins its key, and from then on no sshd is needed", async () => {
    await using desk = await sshDesk({ directory: files.path, sshd, user, key });
    const url = `wss://localhost:${host.port}`;
    const added = await desk.run(
      ["cluster", "add", "--name", "far", "--relay-host", url, "--relay-token-file", "-", "--relay-ca-file", ca.file],
      {
        stdin: `${TOKEN}\n`,
      },
    );
    expect([added.code, added.stderr]).toEqual([0, expect.any(String)]);
    const early = await desk.run(["connect", "far"]);
    expect([early.code, early.stderr]).toEqual([5, expect.stringContaining("clio-relay cluster bootstrap --cluster far")]);
    expect(sshd.connections()).toBe(0);

    // The same bytes to the end, whatever is built meanwhile.
    const executable = path.join(files.path, "clio-relay");
    fs.copyFileSync(EXECUTABLE, executable);
    // A worker that runs, and is not let in where it is to be met, is no link: only it knows why.
    const wrong = await desk.run(["cluster", "add", "far", "--relay-token-file", "-"], { stdin: `${TOKEN}-of-another\n` });
    expect(wrong.code).toBe(0);
    const unmet = await desk.run(["cluster", "bootstrap", "far", "--artifact", executable]);
    expect([unmet.code, unmet.stderr]).toEqual([0, expect.stringContaining(`the worker is not at ${url}: relay_token_refused`)]);
    expect((await desk.run(["cluster", "add", "far", "--relay-token-file", "-"], { stdin: `${TOKEN}\n` })).code).toBe(0);
    const report = await desk.ok("cluster", "bootstrap", "far", "--artifact", executable, "--json");
    expect(report).not.toContain(TOKEN);
    await eventually(async () => (await farLink(desk)).state === "up", { what: "the link by the relay-host" });
    const kept = path.join(user.home, ".local/share/clio-relay/core/far/relay-token");
    expect([fs.readFileSync(kept, "utf8"), fs.statSync(kept).mode & 0o777]).toEqual([`${TOKEN}\n`, 0o600]);

    const broughtCa = path.join(user.home, ".local/share/clio-relay/core/far/relay-ca.pem");
    expect(fs.readFileSync(broughtCa, "utf8")).toBe(fs.readFileSync(ca.file, "utf8"));

    // What is there already is not touched.
    const again = await desk.json<{ worker: { state: string }; configured: { changed: boolean } }>(
      "cluster",
      "bootstrap",
      "far",
      "--artifact",
      executable,
    );
    expect(again).toMatchObject({ worker: { state: "kept" }, configured: { changed: false } });
    // A service keeps its worker as that of any other, over the same connection.
    const service = await desk.json("cluster", "install-endpoint-service", "far", "--launcher", "setsid", "--concurrency", "4");
    expect(service).toMatchObject({ status: { state: "ready" } });
    expect(await desk.json("cluster", "endpoint-service-status", "far")).toMatchObject({ state: "ready", launcher: "setsid" });
    await desk.ok("cluster", "remove-endpoint-service", "far");
    await desk.ok("worker", "start", "--cluster", "far", "--ssh");
    expect(sshd.connections()).toBe(1);
    await sshd[Symbol.asyncDispose]();
    const job = await desk.submit("--wait", "--", "id", "-un");
    expect(await desk.ok("job", "read-log", job)).toBe(user.name);
    const { state, ledger, ssh_connections_since_bring_up } = await farLink(desk);
    expect([state, ssh_connections_since_bring_up]).toEqual(["up", 0]);
    const dialed = ledger.map(({ client, purpose }) => `${client} ${purpose}`);
    expect(dialed.filter((one) => one !== "relay connect")).toEqual(["builtin bootstrap"]);
    expect(dialed).toContain("relay connect");
    const everything = processesMarked("HOME", user.home).map(({ command }) => command);
    expect(everything.length).toBeGreaterThan(0);
    expect(everything.filter((command) => command.includes(TOKEN))).toEqual([]);
  });
});
