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

test("what a program says of the proxy's password is not repeated", async () => {
  const directory = directories();
  const frpc = path.join(directory, "frpc");
  fs.writeFileSync(frpc, '#!/bin/sh\necho "proxy: $(grep proxyURL "$2") token: $(grep token "$2")" | tr "\\n" " "\nexit 1\n', {
    mode: 0o700,
  });
  const server = {
    address: "127.0.0.1",
    port: 1,
    protocol: "tcp",
    token: "the-token-of-frps",
    proxyUrl: "http://user:p%40ss-word@127.0.0.1:2",
  } as const;
  const failed = visit(
    {
      server,
      room: { name: "room", secret: "the-secret-of-the-room" },
      direct: false,
      directMs: 1,
      frpc,
      directory: path.join(directory, "run"),
      name: "visitor",
      variables: { PATH: process.env["PATH"] },
      onTrouble: () => undefined,
    },
    () => Promise.reject(new Error("nobody is there")),
    new AbortController().signal,
  );
  const error = await failed.then(
    () => null,
    (caught: unknown) => caught as RelayError,
  );
  expect([error?.code, error?.message.includes("proxy: ")]).toEqual(["frp_unreachable", true]);
  for (const secret of ["p%40ss-word", "p@ss-word", "the-token"])
    expect(JSON.stringify([error?.message, error?.data])).not.toContain(secret);
});

test("of the names in an archive, those that a program would take for its options are passed over", () => {
  expect(programsIn("frp_1/LICENSE\n--use-compress-program=sh x/frpc\n-Cx/frps\nfrp_1/frpc.exe\r\nfrp_1/frps\nfrp_2/frpc\n")).toEqual({
    frpc: "frp_1/frpc.exe",
    frps: "frp_1/frps",
  });
});
