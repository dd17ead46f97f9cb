import type { McpResult } from "../../domain/mcp-call.ts";
import type { JsonObject } from "../../domain/primitives.ts";
import { within } from "../../lib/waiting/within.ts";
import { CallFailed, ServerError } from "./call-failed.ts";
import type { Dialogue } from "./dialogue.ts";
import { isObject } from "./message.ts";

const MODERN = "2026-07-28";
/** Newest first. */
const HANDSHAKES = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"] as const;
/** How long a server may take to say that it does not know the question, unless more is asked for, in milliseconds. */
export const PROBE_MS = 15_000;
const UNSUPPORTED_VERSION = -32022;
const CAPABILITIES_BYTES = 64 * 1024;

const META = "io.modelcontextprotocol/";
/** Elicitation by a form; nothing else that a server might ask for is offered. */
const CLIENT_CAPABILITIES = { elicitation: { form: {} } };

/** What both sides have agreed on. */
export class Session {
  constructor(
    readonly protocolVersion: string,
    private readonly clientInfo: JsonObject,
    private readonly serverInfo: unknown,
    private readonly capabilities: unknown,
  ) {}

  get modern(): boolean {
    return this.protocolVersion === MODERN;
  }

  /** Params of a request: from 2026-07-28 on, each says who asks and in which version. */
  params(own: JsonObject): JsonObject {
    return this.modern ? { ...own, _meta: envelope(this.clientInfo) } : own;
  }

  get shown(): NonNullable<McpResult["server"]> {
    const info = isObject(this.serverInfo) ? this.serverInfo : {};
    const short = (member: string, max: number): string => {
      const value = info[member];
      return typeof value === "string" ? value.slice(0, max) : "";
    };
    const { capabilities } = this;
    const fits = isObject(capabilities) && Buffer.byteLength(JSON.stringify(capabilities)) <= CAPABILITIES_BYTES;
    return {
      protocol_version: this.protocolVersion.slice(0, 64),
      name: short("name", 256),
      version: short("version", 256),
      capabilities: fits ? capabilities : {},
    };
  }
}

const envelope = (clientInfo: JsonObject): JsonObject => ({
  [`${META}protocolVersion`]: MODERN,
  [`${META}clientInfo`]: clientInfo,
  [`${META}clientCapabilities`]: CLIENT_CAPABILITIES,
});

/**
 * Agree on a version: by `server/discover` (2026-07-28), else by `initialize` (before).
 *
 * @param probeMs how long to wait for an answer to the first alone; null where it is known that the server ends over the question
 * @throws CallFailed, the reason of `signal`
 */
export async function handshake(dialogue: Dialogue, clientInfo: JsonObject, probeMs: number | null, signal: AbortSignal): Promise<Session> {
  if (probeMs === null) return initialized(dialogue, clientInfo, signal);
  const probe = discovered(dialogue, clientInfo, signal);
  if (await within(probe, probeMs)) return (await probe) ?? initialized(dialogue, clientInfo, signal);
  // It passes over what it does not know, or is still starting: then it answers in turn.
  const older = initialized(dialogue, clientInfo, signal);
  older.catch(() => undefined);
  return Promise.race([probe.then((found) => found ?? older), older]);
}

async function initialized(dialogue: Dialogue, clientInfo: JsonObject, signal: AbortSignal): Promise<Session> {
  const params = { protocolVersion: HANDSHAKES[0], capabilities: CLIENT_CAPABILITIES, clientInfo };
  let result: JsonObject;
  try {
    result = await dialogue.request("initialize", params, { signal });
  } catch (error) {
    if (error instanceof ServerError) throw new CallFailed("handshake_failed", `initialize was refused (${error.code}): ${error.message}`);
    throw error;
  }
  const { protocolVersion, serverInfo, capabilities } = result;
  if (!HANDSHAKES.some((version) => version === protocolVersion))
    throw new CallFailed("handshake_failed", `it speaks version ${String(protocolVersion).slice(0, 64)}, which is not known here`);
  dialogue.notify("notifications/initialized", {});
  return new Session(String(protocolVersion), clientInfo, serverInfo, capabilities);
}

/** Null where the server is one of before. */
async function discovered(dialogue: Dialogue, clientInfo: JsonObject, signal: AbortSignal): Promise<Session | null> {
  try {
    const result = await dialogue.request("server/discover", { _meta: envelope(clientInfo) }, { signal });
    const { supportedVersions, capabilities, _meta } = result;
    if (!Array.isArray(supportedVersions) || !supportedVersions.includes(MODERN)) return null;
    return new Session(MODERN, clientInfo, isObject(_meta) ? _meta[`${META}serverInfo`] : null, capabilities);
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    if (error.code === UNSUPPORTED_VERSION) refuseNewer(error);
    return null;
  }
}

/** A server that names its versions, none of which is known here. */
function refuseNewer({ data }: ServerError): void {
  const supported = isObject(data) ? data["supported"] : null;
  if (!Array.isArray(supported) || supported.length === 0) return;
  const known: readonly unknown[] = [MODERN, ...HANDSHAKES];
  if (!supported.some((version) => known.includes(version)))
    throw new CallFailed("handshake_failed", `it speaks ${supported.slice(0, 10).join(", ").slice(0, 200)}, none of which is known here`);
}
