import { acknowledged, type Listening, type Message, resourceUpdated } from "../listen.ts";

/** An event stream that carries a subscription, with the tasks and resources that are looked after here on it. */
export function withSubscription(response: Response, wanted: Listening): Response {
  const source = response.body;
  if (source === null || !(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    wanted.stop();
    return response;
  }
  const reader = source.getReader();
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (message: Message): void => {
        try {
          controller.enqueue(encoder.encode(frame(message)));
        } catch {
          // The client is gone.
        }
      };
      // The first event is the acknowledgement, whole: the SDK writes one event at a time.
      const first = await reader.read();
      if (first.value === undefined) {
        wanted.stop();
        return controller.close();
      }
      const answer = messageOf(first.value);
      const told = answer === null ? null : acknowledged(answer, wanted);
      if (told === null) controller.enqueue(first.value);
      else {
        send(told);
        wanted.start(send, (uri) => send(resourceUpdated(wanted.id, uri)));
      }
      void forward(controller);
    },
    cancel(reason) {
      wanted.stop();
      return reader.cancel(reason);
    },
  });
  async function forward(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) controller.enqueue(next.value);
      controller.close();
    } catch (error) {
      try {
        controller.error(error);
      } catch {
        // It is over already.
      }
    } finally {
      wanted.stop();
    }
  }
  return new Response(body, { status: response.status, headers: response.headers });
}

const frame = (message: Message): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`;

function messageOf(bytes: Uint8Array): Message | null {
  const data = /^data: (.*)$/m.exec(new TextDecoder().decode(bytes))?.[1];
  try {
    return data === undefined ? null : (JSON.parse(data) as Message);
  } catch {
    return null;
  }
}
