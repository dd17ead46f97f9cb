import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eventually } from "../../runner/wait.ts";
import { MeetingDesk, TestRelayHost } from "../relay-desk.ts";
import { initialized, type SourceRelay } from "../source-relay.ts";
import { type FarLink, farLink } from "../ssh-desk.ts";

/** A worker at the first of two relay-hosts, a desk that meets it there, and another one. */
describe("two of a kind", () => {
  let hosts: [TestRelayHost, TestRelayHost];
  let both: MeetingDesk;
  let other: SourceRelay;

  beforeAll(async () => {
    hosts = await Promise.all([TestRelayHost.start(), TestRelayHost.start()]);
    both = await MeetingDesk.start({ url: url(0) });
    other = await initialized({ CLIO_RELAY_CLUSTER: "far" });
    const { code } = await both.cluster.json<{ code: string }>("worker", "pair");
    const paired = await other.run(["cluster", "add", "--name", "far", "--pair", "--relay-token-file", both.tokenFile], { stdin: code });
    if (paired.code !== 0) throw new Error(paired.stderr);
    await both.up();
    await up(other);
  });
  afterAll(async () => {
    await other[Symbol.asyncDispose]();
    await both[Symbol.asyncDispose]();
    for (const host of hosts) await host[Symbol.asyncDispose]();
  });

  const url = (at: 0 | 1): string => `ws://127.0.0.1:${hosts[at].port}`;
  const up = (desk: SourceRelay): Promise<FarLink> =>
    eventually(
      async () => {
        const link = await farLink(desk);
        return link.state === "up" ? link : null;
      },
      { what: "a link that is up", everyMs: 100 },
    );
  const opened = ({ ledger }: FarLink): number => ledger.filter(({ outcome }) => outcome === "open").length;

  test("two desks meet one worker side by side: both follow one job, and what ends the link of one is nothing to the other", async () => {
    const before = opened(await farLink(both.desk));
    const job = await both.desk.submit("--", "sh", "-c", "for i in $(seq 1 40); do echo line $i; sleep 0.05; done");
    const reading = [both.desk, other].map((desk) => desk.run(["job", "read-log", job, "--follow"]));
    const lines = Array.from({ length: 40 }, (_, at) => `line ${at + 1}`);
    for (const one of reading) expect((await one).stdout.trim().split("\n")).toEqual(lines);
    const { keys } = await both.cluster.json<{ keys: { sessions: number }[] }>("worker", "keys", "list");
    expect(keys.map(({ sessions }) => sessions)).toEqual([1, 1]);
    await other.kill(other.daemons()[0]!);
    await other.ok("disconnect", "far");
    await both.desk.submit("--wait", "--", "true");
    expect(opened(await farLink(both.desk))).toBe(before);
    await other.ok("connect", "far");
    expect(await other.ok("job", "status", job)).toContain("succeeded");
  });

  test("a desk and a worker at two relay-hosts do not meet: the desk says at which it is, and meets it where it is put right", async () => {
    await other.ok("cluster", "add", "far", "--relay-host", url(1), "--relay-token-file", both.tokenFile);
    const link = await eventually(
      async () => {
        const now = await farLink(other);
        return now.detail?.startsWith("worker_absent") === true ? now : null;
      },
      { what: "a worker that is missed", everyMs: 100 },
    );
    expect(link.detail).toContain(url(1));
    expect(link.state).toBe("connecting");
    const refused = await other.run(["job", "list"]);
    expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining(`is not at ${url(1)}`)]);
    // Whoever is where the worker is has it all the while.
    await both.desk.submit("--wait", "--", "true");
    await other.ok("cluster", "add", "far", "--relay-host", url(0), "--relay-token-file", both.tokenFile);
    // It does not stay where it waits in vain.
    const { ledger } = await up(other);
    const there = ledger.filter((entry) => (entry as { target?: string }).target === url(1));
    expect(there.map(({ outcome }) => outcome)).toEqual(["cancelled"]);
    await other.submit("--wait", "--", "true");
  });
});
