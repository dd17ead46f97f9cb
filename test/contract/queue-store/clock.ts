import { describe, expect, test } from "bun:test";
import { type OpenScene, ROOMY, settlement, withRetries } from "./scene.ts";

const HOUR = 3_600_000;

export function clockContract(open: OpenScene): void {
  describe("a wall clock that is set", () => {
    for (const [name, step] of [
      ["back", -HOUR],
      ["forward", HOUR],
    ] as const) {
      test(`${name}: a delayed retry neither waits longer nor starts early`, async () => {
        const scene = await open();
        const { fence } = await scene.running(withRetries(1));
        await scene.store.settle(fence, settlement(scene.clock, "exit_nonzero"));
        scene.clock.step(step);
        expect(await scene.store.nextDelay()).toBe(1_000);
        const endpoint = await scene.endpoint();
        expect(await scene.store.claim(endpoint, ROOMY)).toBeNull();
        scene.clock.advance(1_000);
        expect(await scene.store.nextDelay()).toBe(0);
        expect((await scene.store.claim(endpoint, ROOMY))?.attempt.attempt).toBe(2);
      });

      test(`${name}: a lease neither expires nor is prolonged`, async () => {
        const scene = await open({ leaseSeconds: 120 });
        const { lease } = await scene.claimed();
        scene.clock.step(step);
        scene.clock.advance(30_000);
        const [renewed] = await scene.store.heartbeat(lease.endpoint_id, null);
        expect(Date.parse(renewed!.expires_at) - Date.parse(lease.expires_at)).toBe(30_000);
      });
    }

    test("back, and a restart: a delayed retry waits no longer than the longest delay", async () => {
      const scene = await open();
      const { fence } = await scene.running(withRetries(1));
      await scene.store.settle(fence, settlement(scene.clock, "exit_nonzero"));
      scene.clock.step(-24 * HOUR);
      await scene.reopen();
      expect(await scene.store.nextDelay()).toBe(60_000);
      scene.clock.advance(60_000);
      expect((await scene.store.claim(await scene.endpoint(), ROOMY))?.attempt.attempt).toBe(2);
      await scene.expectSound();
    });

    test("back: events keep their order", async () => {
      const scene = await open();
      const { job_id } = await scene.submit();
      scene.clock.step(-HOUR);
      await scene.store.appendEvents(job_id, [{ event_type: "execution.adopted", message: "earlier by the clock" }]);
      const events = await scene.events(job_id);
      expect(events.map((event) => event.seq)).toEqual([1, 2, 3]);
      expect(events[2]!.created_at < events[1]!.created_at).toBe(true);
    });
  });
}
