import { afterEach, describe } from "bun:test";
import { attemptContract } from "./attempts.ts";
import { auditContract } from "./audit.ts";
import type { BackendFactory } from "./backend.ts";
import { batchContract } from "./batches.ts";
import { cancelContract } from "./cancel.ts";
import { claimContract } from "./claim.ts";
import { clockContract } from "./clock.ts";
import { endpointContract } from "./endpoints.ts";
import { eventContract } from "./events.ts";
import { idempotencyContract } from "./idempotency.ts";
import { ingestContract } from "./ingest.ts";
import { inputContract } from "./inputs.ts";
import { lineageContract } from "./lineage.ts";
import { listingContract } from "./listing.ts";
import { modelContract } from "./model.ts";
import { quarantineContract } from "./quarantine.ts";
import { recordContract } from "./records.ts";
import { type OpenScene, Scene } from "./scene.ts";
import { schedulerContract } from "./scheduler.ts";
import { settleContract } from "./settle.ts";
import { submitContract } from "./submit.ts";
import { transitionContract } from "./transitions.ts";

/** What every QueueStore promises, as tests. */
export function queueStoreContract(name: string, factory: BackendFactory): void {
  const scenes: Scene[] = [];
  const open: OpenScene = async (options) => {
    const scene = await Scene.open(factory, options);
    scenes.push(scene);
    return scene;
  };
  describe(`queue store on ${name}`, () => {
    afterEach(async () => {
      for (const scene of scenes.splice(0)) await scene.dispose();
    });
    submitContract(open);
    idempotencyContract(open);
    claimContract(open);
    attemptContract(open);
    settleContract(open);
    transitionContract(open);
    cancelContract(open);
    ingestContract(open);
    inputContract(open);
    eventContract(open);
    recordContract(open);
    endpointContract(open);
    lineageContract(open);
    schedulerContract(open);
    listingContract(open);
    quarantineContract(open);
    batchContract(open);
    clockContract(open);
    auditContract(open);
    modelContract(open);
  });
}
