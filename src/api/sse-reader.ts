/** One message of a server-sent event stream (HTML standard, section 9.2). */
export interface SseMessage {
  readonly event: string;
  readonly data: string;
  readonly id: string | null;
}

/** A page of events has 4 MiB at most, and stands beside the status document in a monitor's message. */
const MAX_MESSAGE = 16 * 1024 * 1024;

/** Parse an SSE body. Comments are skipped; a message cut off by the end of the body is dropped, as the standard says. */
export async function* readSse(body: ReadableStream<Uint8Array>): AsyncGenerator<SseMessage> {
  const decoder = new TextDecoder();
  let rest = "";
  let event = "message";
  let data: string[] = [];
  let id: string | null = null;
  for await (const bytes of body as unknown as AsyncIterable<Uint8Array>) {
    rest += decoder.decode(bytes, { stream: true });
    if (rest.length > MAX_MESSAGE) throw new RangeError("SSE line too long");
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop()!;
    for (const line of lines) {
      if (line === "") {
        if (data.length > 0) yield { event, data: data.join("\n"), id };
        event = "message";
        data = [];
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") event = value;
      else if (field === "data") data.push(value);
      else if (field === "id") id = value;
    }
  }
}
