import { expect } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { Weather } from "../rigs/proxy/tcp-proxy.ts";
import type { Relay } from "../runner/relay.ts";
import { scaled, soakSettings } from "../runner/soak.ts";
import { eventually } from "../runner/wait.ts";
import type { Campaign, CampaignOptions } from "./campaign.ts";
import { LinkLoad } from "./link-load.ts";

const ROUNDS = 100;
const JOBS = 150;

/** A path as it is. */
export const CALM: Omit<Weather, "passes"> = { delayMs: 0, bytesPerSecond: Number.POSITIVE_INFINITY, blackhole: false };

/** Jobs of every kind that a link can be of importance to. */
export const KINDS: NonNullable<CampaignOptions["kinds"]> = [
  "plain",
  "plain",
  "failing",
  "bulk",
  "reporting",
  "leaving",
  "leaving",
  "retried",
  "canceled",
];

/** A line of the ledger, as far as it is looked at. */
export interface Dialed {
  readonly outcome: string;
  readonly client: string;
  readonly attended: boolean;
  readonly requested_by: string;
}

export const linkState = async (desk: Relay): Promise<string> =>
  (await desk.json<{ links: { state: string }[] }>("link", "list")).links[0]!.state;

/** The link is had again by itself. */
export const upAgain = (desk: Relay): Promise<boolean> =>
  eventually(async () => (await linkState(desk)) === "up", { everyMs: 50, what: "a link that comes back by itself" });

/** Bad weather on one of two paths, for a while. */
export async function badWeather(campaign: Campaign, paths: readonly { readonly weather: Weather }[], blackhole: boolean): Promise<void> {
  const { faults } = campaign;
  const { weather } = paths[faults.below(paths.length)]!;
  const away = faults.between(0, 3_000);
  Object.assign(weather, blackhole ? { blackhole: true } : { bytesPerSecond: faults.between(100_000, 3_000_000) });
  await Bun.sleep(away);
  Object.assign(weather, CALM);
}

interface CutRounds<Fault extends string> {
  readonly campaign: Campaign;
  /** The users' installation. */
  readonly desk: Relay;
  /** What may happen, in the share in which it does. */
  readonly kinds: readonly [Fault, ...Fault[]];
  readonly fault: (kind: Fault) => Promise<unknown>;
  /** Have the link again, and see that all is as it was. */
  readonly again: () => Promise<unknown>;
  /** What else there is to say at the end. */
  readonly summary?: (ledger: readonly Dialed[]) => string;
}

/** Cut a link under load, again and again; nothing may be lost, doubled or altered. @returns what was dialed */
export async function cutRounds<Fault extends string>({
  campaign,
  desk,
  kinds,
  fault,
  again,
  summary,
}: CutRounds<Fault>): Promise<Dialed[]> {
  const { faults, submitted } = campaign;
  const rounds = scaled(ROUNDS, 6);
  const jobs = scaled(JOBS, 15);
  const happened = new Map<Fault, number>();
  await again();
  const load = new LinkLoad({ campaign, desk, rounds, jobs });
  for (; load.round < rounds; load.round++) {
    await Bun.sleep(faults.below(800));
    const kind = faults.of(kinds);
    happened.set(kind, (happened.get(kind) ?? 0) + 1);
    await fault(kind);
    await again();
  }
  await load.over();
  const wrong = await load.wrong();
  const ledger = fs
    .readFileSync(path.join(desk.home, "state", "connections.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Dialed);
  const said = [
    `seed ${soakSettings().seed}: ${rounds} rounds (${[...happened].map(([kind, times]) => `${times} ${kind}`).join(", ")})`,
    `${submitted.length} jobs, ${load.watched} watched, ${load.outages} followers went on after an outage, ${load.contents} contents read`,
    summary?.(ledger) ?? `${openOf(ledger)} links`,
  ];
  console.log(said.join("; "));
  expect(wrong).toEqual([]);
  expect(submitted.length).toBe(jobs);
  expect(await campaign.verify()).toEqual([]);
  return ledger;
}

export const openOf = (ledger: readonly Dialed[]): number => ledger.filter(({ outcome }) => outcome === "open").length;
