import { expect, test } from "bun:test";
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import type { RelayError } from "../../../src/domain/errors.ts";
import { Echo } from "../../../src/transport/frp/echo.ts";
import { programsIn } from "../../../src/transport/frp/unpack.ts";
import { visit } from "../../../src/transport/frp/visit.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";

const directories = temporaryDirectories();

test("whoever comes to the echo and says nothing, or does not end, is sent away; there are few of them at a time", async () => {
  const socket = path.join(directories(), "echo");
  const echo = await Echo.listen(socket, { patienceMs: 1_000 });
  const idle = Array.from({ length: 100 }, (_, index) => {
    const one = net.connect({ path: socket, allowHalfOpen: true });
    one.on("error", () => undefined);
    if (index % 2 === 0) one.write("?");
    return one.resume();
  });
  let most = 0;
  await eventually(() => {
    most = Math.max(most, echo.connections);
    return idle.every((one) => one.readableEnded || one.destroyed);
  });
  await eventually(() => echo.connections === 0);
  expect(most).toBe(32);
  for (const one of idle) one.destroy();
  echo.close();
  expect(fs.existsSync(socket)).toBe(false);
});

/** What a frpc that is a line of shell said last, to whoever visited with it. */
async function saidOf(line: string, more: { direct?: boolean; proxyUrl?: string } = {}): Promise<RelayError> {
  const directory = directories();
  const frpc = path.join(directory, "frpc");
  fs.writeFileSync(frpc, `#!/bin/sh\n${line}\nexit 1\n`, { mode: 0o700 });
  const { direct = false, ...server } = more;
  const failed = visit(
    {
      server: { address: "127.0.0.1", port: 1, protocol: "tcp", token: "the-token-of-frps", ...server },
      cluster: "other",
      room: { name: "room", secret: "the-secret-of-the-room" },
      direct,
      directMs: 1,
      frpc,
      directory: path.join(directory, "run"),
      name: "visitor",
      variables: { PATH: process.env["PATH"], GOMAXPROCS: "17" },
      onTrouble: () => undefined,
    },
    () => Promise.reject(new Error("nobody is there")),
    new AbortController().signal,
  );
  const error = await failed.then(
    () => null,
    (caught: unknown) => caught as RelayError,
  );
  expect(error?.code).toBe("frp_unreachable");
  return error!;
}

test("what a program says of the proxy's password is not repeated", async () => {
  const said = 'echo "proxy: $(grep proxyURL "$2") token: $(grep token "$2")" | tr "\\n" " "';
  const { message, data } = await saidOf(said, { proxyUrl: "http://user:p%40ss-word@127.0.0.1:2" });
  expect(message).toContain("proxy: ");
  for (const secret of ["p%40ss-word", "p@ss-word", "the-token"]) expect(JSON.stringify([message, data])).not.toContain(secret);
});

test("a frpc that carries over frps alone has one processor, one that looks for the direct way as many as there are", async () => {
  const said = 'echo "processors: ${GOMAXPROCS-all}"';
  expect((await saidOf(said)).data["said"]).toBe("processors: 1");
  expect((await saidOf(said, { direct: true })).data["said"]).toBe("processors: all");
});

test("of the names in an archive, those that a program would take for its options are passed over", () => {
  expect(programsIn("frp_1/LICENSE\n--use-compress-program=sh x/frpc\n-Cx/frps\nfrp_1/frpc.exe\r\nfrp_1/frps\nfrp_2/frpc\n")).toEqual({
    frpc: "frp_1/frpc.exe",
    frps: "frp_1/frps",
  });
});
