import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fs from "node:fs";
import { Agent } from "../../mcp/agent.ts";
import { eventually } from "../../runner/wait.ts";
import { type Answered, type Death, ManyClusters } from "../many-clusters.ts";

const CLUSTERS = 32;
/** Requests at a time to each of those that are tried again all the while, and the size of each. */
const MANY = 32;
const BODY_BYTES = 4 * 2 ** 20;
/** Pauses between tries grow up to 5 s, each drawn from its upper half (docs/connection-model.md); before they do, there are so many. */
const FIRST_TRIES = 8;
const PAUSE_S = 2.5;

const MiB = 2 ** 20;
/** Those of which it is known at once that they are not there. */
const TRIED = ["refused", "mute", "absent"] as const;
/** What a desk says of a cluster that it does not reach. */
const WHY = ["link_down", "worker_absent", "host_unreachable", "upgrade_refused"];

describe("a desk with many clusters, five of which are dead", () => {
  let many: ManyClusters;
  let died: number;
  let takenBefore: number;

  beforeAll(async () => {
    many = await ManyClusters.start(CLUSTERS);
    takenBefore = many.taken("mute");
    died = performance.now();
    await many.die();
  });
  afterAll(async () => {
    await many[Symbol.asyncDispose]();
  });

  /**
   * Do something before a request to a dead cluster is over that began before it, of each of them: whoever waits for one does not get so far.
   *
   * @param work resolves to whether it was right
   */
  async function untouched(what: string, work: () => Promise<boolean>): Promise<void> {
    const hanging = new Set<Death>();
    let wrong = 0;
    await eventually(
      async () => {
        const pending = new Set(many.dead);
        for (const death of many.dead) {
          const over = (): boolean => pending.delete(death);
          many.ask(`/clusters/${death}/jobs`).then(over, over);
        }
        if (!(await work())) wrong++;
        for (const death of pending) hanging.add(death);
        return hanging.size === many.dead.length;
      },
      { what: `${what} while others hang`, everyMs: 100 },
    );
    expect([what, wrong]).toEqual([what, 0]);
  }

  test("lists, submits, and says how its links are and what an agent may do, before any of the dead has answered", async () => {
    const all = async (status: number, ask: (name: string) => Promise<Answered>): Promise<boolean> =>
      (await Promise.all(many.living.map(ask))).every((answer) => answer.status === status);
    const job = (cluster: string) => ({ cluster, kind: "command", spec: { argv: ["true"] } });
    await untouched("listing", () => all(200, (name) => many.ask(`/clusters/${name}/jobs?limit=1`)));
    await untouched("submitting", () => all(201, (name) => many.ask(`/clusters/${name}/jobs`, job(name))));
    await untouched("the links", async () => (await many.links()).length === CLUSTERS);
    await using agent = await Agent.of(many.desk);
    await untouched("the tools of an agent", async () => (await agent.client.listTools()).tools.length > 0);
    await untouched(
      "the clusters of an agent",
      async () => (await agent.ok<{ clusters: unknown[] }>("relay_list_clusters")).clusters.length > 0,
    );
  });

  test("finds a job's cluster among all of them, waits for it, and shows who is there", async () => {
    const { desk } = many;
    const id = await desk.submit("--cluster", many.living.at(-1)!, "--wait", "--", "echo", "done");
    // Nobody says which of the clusters has it.
    expect(await desk.ok("job", "read-log", id)).toBe("done");
    const { links } = await desk.json<{ links: { cluster: string; state: string }[] }>("link", "list");
    const up = links.filter(({ state }) => state === "up").map(({ cluster }) => cluster);
    expect(up).toEqual(expect.arrayContaining([...many.living]));
    expect(links.length).toBe(CLUSTERS + 1);
  });

  const inFlight = async (): Promise<number> =>
    Number(/^clio_relay_desktop_requests_in_flight (\d+)$/m.exec((await many.ask("/metrics")).body)![1]);

  test("does not try them more often because many ask for them, and keeps nothing of what could not be sent", async () => {
    const [daemon] = many.desk.daemons();
    const resident = (): number => Number(/^VmRSS:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${daemon}/status`, "utf8"))![1]) / 1_024;
    const descriptors = (): number => fs.readdirSync(`/proc/${daemon}/fd`).length;
    // Of those that hang, for which nothing is refused yet.
    const waiting = await inFlight();
    const [before, open] = [resident(), descriptors()];
    const body = Buffer.alloc(BODY_BYTES, " ");
    let peak = before;
    const looking = setInterval(() => {
      peak = Math.max(peak, resident());
    }, 50);
    const refused = await Promise.all(
      TRIED.flatMap((death) => Array.from({ length: MANY }, () => many.ask(`/clusters/${death}/jobs`, body))),
    );
    clearInterval(looking);
    for (const { status, body: problem } of refused) {
      expect(status).toBeGreaterThanOrEqual(500);
      expect(WHY).toContain((JSON.parse(problem) as { reason: string }).reason);
    }
    // Of a body that cannot be sent no more is taken than of one that is taken slowly.
    const sent = (TRIED.length * MANY * BODY_BYTES) / MiB;
    console.log(`daemon: ${before.toFixed(0)} MiB, ${peak.toFixed(0)} at most while ${sent} MiB wait to be sent`);
    expect(peak - before).toBeLessThan(sent / 2);
    await eventually(() => descriptors() <= open + 4, { what: "connections that are given back" });
    expect(await inFlight()).toBeLessThanOrEqual(waiting);

    const tries = (await many.links())
      .find(({ cluster }) => cluster === "refused")!
      .ledger.filter(({ outcome }) => outcome !== "open")
      .reduce((sum, entry) => sum + ((entry as { tries?: number }).tries ?? 1), 0);
    // One more: a try at each end of the time.
    const atMost = FIRST_TRIES + 1 + Math.ceil((performance.now() - died) / 1_000 / PAUSE_S);
    expect(tries).toBeGreaterThan(1);
    expect(tries).toBeLessThanOrEqual(atMost);
    expect(many.taken("mute") - takenBefore).toBeLessThanOrEqual(atMost);
    // And the link of nobody else was lost.
    const links = await many.links();
    const dialed = links.filter(({ cluster }) => many.living.includes(cluster)).map(({ ledger }) => ledger.length);
    expect(dialed).toEqual(many.living.map(() => 1));
  });
});
