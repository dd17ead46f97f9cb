import { MCP_LIMITS, type RemoteTool } from "../../domain/mcp-call.ts";
import type { JsonObject } from "../../domain/primitives.ts";
import { canonicalJson } from "../../lib/digest.ts";
import { CallFailed } from "./call-failed.ts";
import type { Dialogue } from "./dialogue.ts";
import { isObject } from "./message.ts";
import type { Session } from "./session.ts";

export interface ListedTools {
  readonly pages: number;
  /** As the server describes them; of equal ones the first. */
  readonly tools: readonly RemoteTool[];
  /** Entries that have no name. */
  readonly nameless: number;
}

/** Every page of a server's tools. @throws CallFailed, ServerError, the reason of `signal` */
export async function listTools(dialogue: Dialogue, session: Session, signal: AbortSignal): Promise<ListedTools> {
  const byName = new Map<string, RemoteTool>();
  const cursors = new Set<string>();
  let cursor: string | null = null;
  let bytes = 0;
  let nameless = 0;
  for (let pages = 1; ; pages++) {
    const page: JsonObject = await dialogue.request("tools/list", session.params(cursor === null ? {} : { cursor }), { signal });
    const { tools, nextCursor } = page;
    if (!Array.isArray(tools)) throw new CallFailed("protocol_violation", "a page of tools has no list of them");
    bytes += Buffer.byteLength(JSON.stringify(tools));
    if (bytes > MCP_LIMITS.responseBytes)
      throw new CallFailed("response_too_large", `its tools take more than ${MCP_LIMITS.responseBytes} bytes together`);
    for (const tool of tools) {
      // One that cannot be called keeps no other from being.
      if (isTool(tool)) take(byName, tool);
      else nameless++;
    }
    if (nextCursor === undefined || nextCursor === null) return { pages, tools: [...byName.values()], nameless };
    if (typeof nextCursor !== "string") throw new CallFailed("protocol_violation", "the cursor of the next page is no text");
    if (cursors.has(nextCursor)) throw new CallFailed("list_cursor_repeated", `the cursor of page ${pages + 1} came before`);
    if (pages >= MCP_LIMITS.pages) throw new CallFailed("list_pages_exceeded", `there are more than ${MCP_LIMITS.pages} pages`);
    cursors.add(nextCursor);
    cursor = nextCursor;
  }
}

const isTool = (value: unknown): value is RemoteTool => isObject(value) && typeof value["name"] === "string";

function take(byName: Map<string, RemoteTool>, named: RemoteTool): void {
  const known = byName.get(named.name);
  if (known !== undefined) {
    if (canonicalJson(known) === canonicalJson(named)) return;
    throw new CallFailed("list_conflict", `there are two definitions of ${named.name.slice(0, 200)}`);
  }
  if (byName.size >= MCP_LIMITS.tools) throw new CallFailed("list_tools_exceeded", `there are more than ${MCP_LIMITS.tools} tools`);
  byName.set(named.name, named);
}
