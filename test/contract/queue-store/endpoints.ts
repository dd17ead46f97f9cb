import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import { Endpoint } from "../../../src/domain/endpoint.ts";
import { endpointOf, type OpenScene, refused } from "./scene.ts";

export function endpointContract(open: OpenScene): void {
  describe("endpoints", () => {
    test("are registered once and listed in order", async () => {
      const scene = await open();
      const endpoint = endpointOf("endpoint_1", scene.clock);
      await scene.store.registerEndpoint(endpoint);
      await refused(scene.store.registerEndpoint(endpoint), "state_conflict");
      await scene.store.registerEndpoint(endpointOf("endpoint_2", scene.clock));
      const page = await scene.store.endpoints({ cursor: 1, limit: 1 });
      expect(page).toMatchObject({ items: [endpoint], next_cursor: 2, total: 2 });
      expect(v.parse(Endpoint, page.items[0])).toEqual(endpoint);
      expect((await scene.store.endpoints({ cursor: 2, limit: 5 })).items[0]?.endpoint_id).toBe("endpoint_2");
    });

    test("a heartbeat shows life, keeps the lane's last error and renews the leases it returns", async () => {
      const scene = await open({ leaseSeconds: 120 });
      const { lease } = await scene.claimed();
      const other = await scene.claimed();
      scene.clock.advance(30_000);
      const held = await scene.store.heartbeat(lease.endpoint_id, "a lane survived this");
      expect(held).toEqual([{ ...lease, expires_at: "2030-01-01T00:02:30.000Z" }]);
      const find = async (id: string) => (await scene.store.endpoints({ cursor: 1, limit: 10 })).items.find((e) => e.endpoint_id === id);
      expect(await find(lease.endpoint_id)).toMatchObject({
        last_seen_at: "2030-01-01T00:00:30.000Z",
        lane_last_error: "a lane survived this",
      });
      expect(await find(other.lease.endpoint_id)).toMatchObject({ last_seen_at: "2030-01-01T00:00:00.000Z" });
      expect(await scene.store.heartbeat(lease.endpoint_id, null)).toHaveLength(1);
      expect(await find(lease.endpoint_id)).toMatchObject({ lane_last_error: null });
    });

    test("one that has stopped shows no life, and stopping twice changes nothing", async () => {
      const scene = await open();
      const { lease } = await scene.claimed();
      await scene.store.stopEndpoint(lease.endpoint_id);
      scene.clock.advance(5_000);
      await scene.store.stopEndpoint(lease.endpoint_id);
      expect((await scene.store.endpoints({ cursor: 1, limit: 1 })).items[0]?.stopped_at).toBe("2030-01-01T00:00:00.000Z");
      await refused(scene.store.heartbeat(lease.endpoint_id, null), "state_conflict");
      expect((await scene.store.stats()).leases_by_kind).toEqual({ command: 1 });
    });

    test("unknown ones are not_found", async () => {
      const scene = await open();
      await refused(scene.store.heartbeat("endpoint_none", null), "not_found");
      await refused(scene.store.stopEndpoint("endpoint_none"), "not_found");
    });
  });
}
