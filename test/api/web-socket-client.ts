/** What came over a WebSocket: its messages, and how it ended. */
export interface Heard {
  readonly messages: { readonly event: string; readonly id: string | null; readonly data: unknown }[];
  readonly code: number;
  readonly reason: string;
}

export interface Listening {
  readonly headers?: Readonly<Record<string, string>>;
  readonly tls?: { readonly ca: string };
  /** Told of each message; true: leave. */
  readonly onMessage?: (message: Heard["messages"][number]) => boolean | undefined;
}

/**
 * Listen until the other side closes, or the listener leaves.
 *
 * @param url ws://… or ws+unix://SOCKET:/PATH
 */
export function listen(url: string, { headers = {}, tls, onMessage }: Listening = {}): Promise<Heard> {
  const socket = new WebSocket(url, { headers, ...(tls === undefined ? {} : { tls }) } as unknown as string[]);
  const messages: Heard["messages"] = [];
  return new Promise((resolve) => {
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data)) as Heard["messages"][number];
      messages.push(message);
      if (onMessage?.(message) === true) socket.close(1000, "enough");
    };
    socket.onclose = ({ code, reason }) => resolve({ messages, code, reason });
  });
}
