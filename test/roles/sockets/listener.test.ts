import { expect, test } from "bun:test";
import net from "node:net";
import { listen } from "../../../src/roles/sockets/listener.ts";
import { eventually } from "../../runner/wait.ts";

test("what goes wrong on one connection is told, ends that one, and no other", async () => {
  const faults: string[] = [];
  let closed = 0;
  const listener = listen({
    address: { host: null, port: 0 },
    tls: null,
    onFault: ({ message }) => faults.push(message),
    onConnection: (carrier) => {
      carrier.sink = {
        data: (chunk) => {
          if (chunk.toString() === "fault") throw new Error("of ours");
          carrier.write(chunk);
        },
        drain: () => undefined,
        end: () => carrier.end(),
        close: () => undefined,
      };
      return () => {
        closed++;
      };
    },
  });
  const dial = (host: string) => net.connect({ host, port: listener.address.port });
  const [one, other] = [dial("127.0.0.1"), dial("127.0.0.1")];
  const failed = new Promise<NodeJS.ErrnoException>((resolve) => one.once("error", resolve));
  one.write("fault");
  expect((await failed).code).toBe("ECONNRESET");
  expect(faults).toEqual(["of ours"]);
  await eventually(() => closed === 1);
  const heard = new Promise<string>((resolve) => other.once("data", (chunk) => resolve(chunk.toString())));
  other.write("still there");
  expect(await heard).toBe("still there");
  other.destroy();
  await eventually(() => closed === 2);
  listener.stop();
});
