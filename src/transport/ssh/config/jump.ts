import { RelayError } from "../../../domain/errors.ts";
import type { Named } from "./target.ts";

/** `[user@]host[:port]`, or an ssh:// URI, as ProxyJump has it. */
export function parseJump(text: string): Named {
  const bare = text
    .trim()
    .replace(/^ssh:\/\//, "")
    .replace(/\/$/, "");
  const match = /^(?:(?<user>[^@]+(?:@[^@]+)*)@)?(?:\[(?<address>[^\]]+)\]|(?<host>[^:]+|[^:]*:[^:]*:.*?))(?::(?<port>\d{1,5}))?$/.exec(
    bare,
  );
  const host = match?.groups?.["address"] ?? match?.groups?.["host"];
  if (host === undefined || host.startsWith("-")) {
    throw new RelayError("configuration_error", `ProxyJump names ${JSON.stringify(text.slice(0, 200))}, which is no host`);
  }
  const { user, port } = match!.groups!;
  return { host, ...(user === undefined ? {} : { user }), ...(port === undefined ? {} : { port: Number(port) }) };
}
