import type { McpFailure } from "../../domain/mcp-call.ts";

/** What keeps a call from an answer of the server's; it becomes that of its result. */
export class CallFailed extends Error {
  constructor(
    readonly reason: McpFailure,
    message: string,
  ) {
    super(message.slice(0, 2_000));
  }
}

/** An error of the protocol, as the server answered a request with it (JSON-RPC 2.0, 5.1). */
export class ServerError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data: unknown,
  ) {
    super(message);
  }
}
