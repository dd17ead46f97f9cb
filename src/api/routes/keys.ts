import { LinkKeys, PairingCodeMade, PairRequest, Revoked, RevokeRequest, RotateRequest, Rotation } from "../../domain/link-keys.ts";
import type { KeyServices } from "../key-services.ts";
import { json, type Operation, operation } from "../operation.ts";

/** The keys by which links are let in, and the worker's own. */
export const keyRoutes = ({ keys }: { readonly keys: KeyServices }): Operation[] => [
  operation({
    method: "get",
    path: "/keys",
    id: "listKeys",
    summary: "The worker's own key, and the keys of desktops that it lets in",
    answer: { kind: "json", schema: LinkKeys },
    errors: ["configuration_error"],
    handler: async () => json(await keys.list()),
  }),
  operation({
    method: "post",
    path: "/keys/revoke",
    id: "revokeKey",
    summary: "Let a desktop's key in no longer, and end its sessions at once",
    body: RevokeRequest,
    answer: { kind: "json", schema: Revoked },
    errors: ["not_found", "usage", "state_conflict", "configuration_error"],
    handler: async ({ body }) => json(await keys.revoke(body.key)),
  }),
  operation({
    method: "post",
    path: "/keys/rotate",
    id: "rotateHostKey",
    summary: "Give the worker another key, after a time in which its desktops learn it",
    body: RotateRequest,
    answer: { kind: "json", schema: Rotation },
    errors: ["state_conflict", "configuration_error"],
    handler: async ({ body }) => json(await keys.rotate(body.overlap_seconds)),
  }),
  operation({
    method: "post",
    path: "/pairings",
    id: "makePairingCode",
    summary: "Make a code that lets one desktop's key in, for ten minutes; the one before ends with that",
    body: PairRequest,
    answer: { kind: "json", schema: PairingCodeMade },
    errors: ["state_conflict", "configuration_error", "usage"],
    handler: async ({ body }) => json(await keys.pair(body.relay_host, body.key_ttl_seconds), 200, { "cache-control": "no-store" }),
  }),
];
