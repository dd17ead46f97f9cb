import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { AttendedEvent } from "../../../src/api/desktop/link-views.ts";
import { RelayError } from "../../../src/domain/errors.ts";
import { type Attended, AttendedRun } from "../../../src/roles/desktop/attended-run.ts";
import { following } from "../../../src/roles/desktop/attended-stream.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";

const PROMPT = { kind: "password", message: "Password: ", echo: false, host: "me@login" } as const;
const reported: unknown[] = [];
const run = (work: (attended: Attended) => Promise<unknown>, interactive = true): AttendedRun =>
  new AttendedRun("clio-relay connect far", interactive, work, (error) => reported.push(error));

/** Everything that somebody who follows sees; questions are answered on the way. */
async function seen(one: AttendedRun, began: boolean, answer?: string | null): Promise<AttendedEvent[]> {
  const events: AttendedEvent[] = [];
  for await (const event of following(one, began)(new AbortController().signal)) {
    events.push(event);
    if (event.event === "prompt" && answer !== undefined) expect(one.answer(event.data.id, answer)).toBe(true);
  }
  return events;
}

describe("work that needs a person", () => {
  test("asks the one who began, shows the others what happens, and ends with its result for all", async () => {
    const one = run(async ({ prompter, progress, notice }) => {
      progress("dialing");
      notice("Welcome\n");
      return { answer: await prompter.ask(PROMPT) };
    });
    const other = seen(one, false);
    expect(await seen(one, true, "secret")).toMatchObject([
      { event: "progress", data: { text: "dialing" } },
      { event: "notice", data: { text: "Welcome\n" } },
      { event: "prompt", data: PROMPT },
      { event: "done", data: { answer: "secret" } },
    ]);
    const told = await other;
    expect(told.map(({ event }) => event)).toEqual(["joined", "progress", "notice", "progress", "done"]);
    expect(told[0]).toEqual({ event: "joined", data: { requested_by: "clio-relay connect far" } });
  });

  test.each<[string, boolean, string | null, string]>([
    ["that is not answered", true, null, "prompt_cancelled"],
    ["where nobody is there", false, "never", "authorization_required"],
  ])("a question %s is its failure", async (_what, interactive, answer, reason) => {
    const one = run(({ prompter }) => prompter.ask(PROMPT), interactive);
    expect((await seen(one, true, answer)).at(-1)).toMatchObject({ event: "failed", data: { reason } });
  });

  test("is given up when the one who began leaves, and not when another does", async () => {
    let signal: AbortSignal | undefined;
    const one = run(({ attending, prompter }) => {
      signal = attending.signal;
      return prompter.ask(PROMPT);
    });
    const leave = async (began: boolean): Promise<void> => {
      const gone = new AbortController();
      const events = following(one, began)(gone.signal);
      await events.next();
      const next = events.next();
      gone.abort();
      await next;
      await events.return(undefined);
    };
    await leave(false);
    expect(signal?.aborted).toBe(false);
    await leave(true);
    expect(signal?.aborted).toBe(true);
    expect((await seen(one, false)).at(-1)).toMatchObject({ event: "failed", data: { reason: "prompt_cancelled" } });
  });

  test("an answer that is late, doubled or for nobody is refused; what a failure of ours was is for the log only", async () => {
    let id = "";
    const one = run(async ({ prompter }) => {
      await prompter.ask(PROMPT);
      throw new TypeError("a secret of the program");
    });
    for await (const event of following(one, true)(new AbortController().signal)) {
      if (event.event !== "prompt") continue;
      id = event.data.id;
      expect(one.answer(`${id}x`, "a")).toBe(false);
      expect(one.answer(id, "a")).toBe(true);
      expect(one.answer(id, "a")).toBe(false);
    }
    expect(one.answer(id, "a")).toBe(false);
    const events = await seen(one, false);
    expect(events.at(-1)).toMatchObject({ event: "failed", data: { reason: "internal_error" } });
    expect(JSON.stringify(events)).not.toContain("a secret of the program");
    expect(reported).toEqual([expect.any(TypeError)]);
  });

  test("a server that talks without end fills no memory, and its questions are asked", async () => {
    const one = run(async ({ notice, prompter }) => {
      for (let i = 0; i < 5_000; i++) notice(`line ${i}\n`);
      return prompter.ask(PROMPT);
    });
    const events = await seen(one, true, "x");
    expect(events.length).toBeLessThan(1_100);
    expect(events.at(-1)).toEqual({ event: "done", data: "x" });
  });
});

describe("the routes", () => {
  let directory: ReturnType<typeof temporaryDirectory>;
  let daemon: TestDaemon;
  beforeEach(async () => {
    directory = temporaryDirectory();
    daemon = await startDaemon(directory.path, { clusters: ["near"] });
    await daemon.client.putCluster({ name: "far", mode: "ssh", ssh_host: "login.invalid" });
  });
  afterEach(async () => {
    await daemon.stop();
    directory[Symbol.dispose]();
  });

  const around = { requested_by: "a test", interactive: false, directory: "/", agent_socket: null, ssh_config: "none", variables: {} };
  const post = (route: string, body: unknown) => daemon.fetch(route, { method: "POST", body: JSON.stringify(body) });
  const reason = async (response: Response) => [response.status, ((await response.json()) as { reason: string }).reason];

  test("refuse what does not fit, before anything is dialed", async () => {
    expect(await reason(await post("/clusters/none/connect", around))).toEqual([404, "cluster_not_found"]);
    for (const wrong of [
      {},
      { ...around, requested_by: "" },
      { ...around, variables: { A: 1 } },
      { ...around, variables: { A: "x".repeat(200_000) } },
      { ...around, password: "x" },
    ]) {
      expect(await reason(await post("/clusters/far/connect", wrong))).toEqual([422, "request_validation_failed"]);
    }
    expect(await reason(await post("/clusters/far/prompts/prompt_1", { answer: "x" }))).toEqual([404, "not_found"]);
    expect(await reason(await post("/clusters/far/prompts/prompt_1", { answer: "x".repeat(4_097) }))).toEqual([
      422,
      "request_validation_failed",
    ]);
    expect((await daemon.client.links()).find(({ cluster }) => cluster === "far")).toMatchObject({ state: "down", ledger: [] });
  });

  test("a cluster of this machine needs no connection, but a worker", async () => {
    const refused = await daemon.client
      .connect("near", around)
      .next()
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "worker_not_running", data: { cluster: "near" } });
    expect(await daemon.client.disconnect("near")).toMatchObject({ cluster: "near" });
  });

  test("a host that is not there is a failure with its reason, in the stream and in the ledger; the link is as it was", async () => {
    const stream = daemon.client.connect("far", around);
    const failure = await (async () => {
      for (;;) if ((await stream.next()).done) return null;
    })().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RelayError);
    expect((failure as RelayError).code).toBe("host_unreachable");
    const far = (await daemon.client.links()).find(({ cluster }) => cluster === "far")!;
    expect(far).toMatchObject({ state: "down", ledger: [{ outcome: "failed", reason: "host_unreachable", requested_by: "a test" }] });
    const refused = await daemon.fetch("/clusters/far/jobs");
    expect(await reason(refused)).toEqual([503, "link_down"]);
  });
});
