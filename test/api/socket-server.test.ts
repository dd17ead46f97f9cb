import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { Hono } from "hono";
import { keepServing, serveOnSocket } from "../../src/api/socket-server.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { eventually } from "../runner/wait.ts";

const temporary = temporaryDirectories();
const app = new Hono().get("/", (c) => c.text("here"));
const ask = async (socket: string): Promise<string> => (await fetch("http://relay/", { unix: socket })).text();

test("the socket is private, takes the place of a left-over file, and is gone at the end", async () => {
  const socket = path.join(temporary(), "run", "s.sock");
  fs.mkdirSync(path.dirname(socket));
  fs.writeFileSync(socket, "left over");
  const server = serveOnSocket(app, socket);
  expect(await ask(socket)).toBe("here");
  expect(fs.statSync(socket).mode & 0o777).toBe(0o600);
  await server.stop(1_000);
  expect(fs.existsSync(socket)).toBe(false);
});

test("answers in flight are finished before the server is gone", async () => {
  const socket = path.join(temporary(), "s.sock");
  const arrived = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const slow = new Hono().get("/", async (c) => {
    arrived.resolve();
    await release.promise;
    return c.text("late");
  });
  const server = serveOnSocket(slow, socket);
  const answer = ask(socket);
  await arrived.promise;
  const stopped = server.stop(10_000);
  release.resolve();
  expect(await answer).toBe("late");
  await stopped;
});

test("a socket that is taken away, with its directory, is made anew; trouble on the way is told and tried again", async () => {
  const directory = path.join(temporary(), "run");
  const socket = path.join(directory, "s.sock");
  let renewed = 0;
  const troubles: unknown[] = [];
  let fail = true;
  let first = true;
  const server = keepServing(
    () => {
      if (!first && fail) {
        fail = false;
        throw new Error("not yet");
      }
      first = false;
      return serveOnSocket(app, socket);
    },
    { onRenewed: () => renewed++, onTrouble: (error) => troubles.push(error), lookMs: 10 },
  );
  expect(await ask(socket)).toBe("here");
  fs.rmSync(directory, { recursive: true });
  await eventually(() => renewed === 1);
  expect(await ask(socket)).toBe("here");
  expect(troubles.length).toBe(1);
  await server.stop(1_000);
  expect(fs.existsSync(socket)).toBe(false);
});

test("a server that stops leaves the socket of one that has taken its place", async () => {
  const directory = path.join(temporary(), "run");
  const socket = path.join(directory, "s.sock");
  const first = serveOnSocket(app, socket);
  fs.rmSync(directory, { recursive: true });
  const second = serveOnSocket(
    new Hono().get("/", (c) => c.text("second")),
    socket,
  );
  await first.stop(1_000);
  expect(await ask(socket)).toBe("second");
  expect(fs.readdirSync(directory).sort()).toEqual(["s.sock", "s.sock.lock"]);
  await second.stop(1_000);
  expect(fs.readdirSync(directory)).toEqual(["s.sock.lock"]);
});
