import { MeetingDesk, TestRelayHost } from "../../test/cli/relay-desk.ts";
import type { SourceRelay } from "../../test/cli/source-relay.ts";
import { farLink } from "../../test/cli/ssh-desk.ts";
import { ThreeNetworks } from "../../test/rigs/three-networks.ts";
import { eventually } from "../../test/runner/wait.ts";
import type { BenchContext, Result, Row } from "../row.ts";

/** The longest pause between two tries, and what may come on top of it; seconds. */
const AT_MOST = 5 + 1;

/** Seconds until an operation is answered again, asked for without a pause; nobody hastens the next try by it. */
export async function answeredAfter(desk: SourceRelay): Promise<number> {
  const began = performance.now();
  const asks = async (): Promise<boolean> => {
    const response = await fetch("http://relay/clusters/far/workers", { unix: `${desk.home}/run/desktop.sock` } as RequestInit);
    await response.arrayBuffer();
    return response.ok;
  };
  await eventually(asks, { timeoutMs: 120_000, everyMs: 20, what: "an answer" });
  return (performance.now() - began) / 1_000;
}

/** Somewhere in between two tries, where the pauses have become as long as they do; milliseconds. @param share of the rounds that are over */
export const awayMs = (share: number): number => 15_000 + share * 10_000;

/** How long it takes from a path that is back to an operation that is answered, when it was away for some time. */
export const row: Row = {
  name: "path-back",
  async run({ scale, note }: BenchContext): Promise<Result[]> {
    if (process.getuid?.() !== 0) {
      note("left out: it needs network namespaces, and root for them");
      return [];
    }
    using networks = new ThreeNetworks();
    await using host = await TestRelayHost.start({ plain: true, address: "0.0.0.0", before: networks.inside("middle") });
    await using both = await MeetingDesk.start({
      url: `tcp://${networks.middleFrom("cluster")}:${host.port}`,
      deskUrl: `tcp://${networks.middleFrom("desk")}:${host.port}`,
      before: { cluster: networks.inside("cluster"), desk: networks.inside("desk") },
    });
    await both.up();
    const rounds = Math.max(1, Math.round(6 * scale));
    const away = async (round: number, begin: () => unknown, end: () => unknown): Promise<number> => {
      await begin();
      await eventually(async () => (await farLink(both.desk)).state !== "up", {
        timeoutMs: 90_000,
        everyMs: 100,
        what: "the end of the link",
      });
      await eventually(async () => (await farLink(both.desk)).state === "connecting", { timeoutMs: 90_000, what: "the first try" });
      await Bun.sleep(awayMs(round / rounds));
      await end();
      return answeredAfter(both.desk);
    };
    const silent: number[] = [];
    const restarted: number[] = [];
    for (let round = 0; round < rounds; round++) {
      silent.push(
        await away(
          round,
          () => networks.silence("desk", true),
          () => networks.silence("desk", false),
        ),
      );
      await both.up();
      restarted.push(
        await away(
          round,
          () => host.end(),
          () => host.start(),
        ),
      );
      await both.up();
    }
    const target = { atMost: AT_MOST };
    return [
      { name: "answered again, after the desktop's packets were lost", unit: "s", yardstick: null, ours: Math.max(...silent), target },
      { name: "answered again, after the relay-host was gone", unit: "s", yardstick: null, ours: Math.max(...restarted), target },
    ];
  },
};
