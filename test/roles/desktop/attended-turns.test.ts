import { describe, expect, test } from "bun:test";
import type { AttendedEvent } from "../../../src/api/desktop/link-views.ts";
import { RelayError } from "../../../src/domain/errors.ts";
import type { Attended } from "../../../src/roles/desktop/attended-run.ts";
import type { Follow } from "../../../src/roles/desktop/attended-stream.ts";
import { AttendedTurns } from "../../../src/roles/desktop/attended-turns.ts";

const REQUEST = {
  requested_by: "clio-relay connect far",
  interactive: true,
  directory: "/",
  agent_socket: null,
  ssh_config: "none",
  variables: {},
};
const PROMPT = { kind: "password", message: "Password: ", echo: false, host: "me@login" } as const;
const asked = ({ prompter }: Attended): Promise<unknown> => prompter.ask(PROMPT);
const done = async (): Promise<unknown> => "done";

/** A person at a command: what comes to it, until it goes away. */
class Client {
  readonly #gone = new AbortController();
  readonly signal = this.#gone.signal;
  readonly events: AttendedEvent[] = [];

  constructor(private readonly turns: AttendedTurns) {}

  leave(): void {
    this.#gone.abort();
  }

  /** Follow to the end, or until there is a question. */
  async follow(follow: Follow, answer?: string): Promise<string[]> {
    for await (const event of follow(this.signal)) {
      this.events.push(event);
      if (event.event !== "prompt") continue;
      if (answer === undefined) break;
      expect(this.turns.answer(event.data.id, answer)).toBe(true);
    }
    return this.events.map(({ event }) => event);
  }
}

function scene(leavingMs?: number) {
  const reported: unknown[] = [];
  const turns = new AttendedTurns("far", (error) => reported.push(error), leavingMs);
  return { turns, reported, client: () => new Client(turns) };
}

describe("commands that want a cluster's connection", () => {
  test("are one at a time: another one is refused while the first is at work, and is let in when that is done", async () => {
    const { turns, client } = scene(10);
    const [one, two] = [client(), client()];
    const first = await turns.take("connect", REQUEST, asked, one.signal);
    await expect(turns.take("probe", REQUEST, done, two.signal)).rejects.toMatchObject({
      code: "state_conflict",
      data: { cluster: "far", requested_by: REQUEST.requested_by },
    });
    expect(await one.follow(first, "secret")).toEqual(["prompt", "done"]);
    expect(await two.follow(await turns.take("probe", REQUEST, done, two.signal))).toEqual(["done"]);
  });

  test("one that went away is not in the way of the next, though it is known only a moment later", async () => {
    const { turns, client } = scene(60_000);
    const [one, two] = [client(), client()];
    await turns.take("connect", REQUEST, asked, one.signal);
    const next = turns.take("probe", REQUEST, done, two.signal);
    one.leave();
    expect(await two.follow(await next)).toEqual(["done"]);
  });

  test("one that went away before it was told anything is given up", async () => {
    const { turns, client } = scene();
    const one = client();
    one.leave();
    let signal: AbortSignal | undefined;
    const work = ({ attending }: Attended): Promise<unknown> => {
      signal = attending.signal;
      return Promise.resolve();
    };
    await turns.take("connect", REQUEST, work, one.signal);
    expect(signal?.aborted).toBe(true);
  });

  test("who joined goes on by himself where the one who began goes away, and is asked then", async () => {
    const { turns, client, reported } = scene();
    const [one, two, three] = [client(), client(), client()];
    const first = await turns.take("connect", REQUEST, asked, one.signal);
    const joins = [two, three].map(async (who) => ({ who, follow: await turns.take("connect", REQUEST, asked, who.signal) }));
    const [joined, other] = (await Promise.all(joins)).map(({ who, follow }) => who.follow(follow, "secret"));
    expect(await one.follow(first)).toEqual(["prompt"]);
    one.leave();
    // One of them begins, and the other joins that one.
    expect((await joined)!.at(-1)).toBe("done");
    expect((await other)!.at(-1)).toBe("done");
    expect([two, three].flatMap(({ events }) => events).filter(({ event }) => event === "prompt")).toHaveLength(1);
    expect(reported).toEqual([]);
  });

  test("who joined ends with the run that was given up for another reason", async () => {
    const { turns, client } = scene();
    const [one, two] = [client(), client()];
    const first = await turns.take("connect", REQUEST, asked, one.signal);
    const joined = two.follow(await turns.take("connect", REQUEST, asked, two.signal));
    const followed = one.follow(first);
    turns.giveUp(new RelayError("link_down", "far was disconnected meanwhile"));
    await followed;
    expect((await joined).at(-1)).toBe("failed");
    expect(two.events.at(-1)).toMatchObject({ data: { reason: "link_down" } });
  });
});
