import { expect, test } from "bun:test";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { ClusterClient } from "../../src/api/client.ts";
import { HttpPeer } from "../../src/api/http-peer.ts";
import { withLifeSigns } from "../../src/cli/follow/life-signs.ts";
import { Reconnect } from "../../src/cli/follow/reconnect.ts";
import { RelayError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { eventually } from "../runner/wait.ts";

const TIMEOUT = 120_000;

/** A process that answers on a socket, so that it can be stopped by a signal. */
function server(socket: string) {
  const code = `Bun.serve({ unix: ${JSON.stringify(socket)}, fetch: () => Response.json({ ok: true, auth: false, version: "1", cluster: "local" }) }); console.log("ready")`;
  return Bun.spawn([process.execPath, "-e", code], { stdout: "pipe", stderr: "inherit" });
}

test(
  "silence is said once, and so is its end; a quiet worker that answers is not silent",
  async () => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-signs-"));
    const socket = path.join(directory, "s");
    const child = server(socket);
    try {
      await child.stdout.getReader().read();
      const said: string[] = [];
      const stderr = { write: async (text: string | Uint8Array) => void said.push(String(text)) };
      const reconnect = new Reconnect(stderr, systemClock, new AbortController().signal);
      const cluster = new ClusterClient("local", new HttpPeer({ kind: "unix", path: socket }));
      const over = Promise.withResolvers<string>();
      const work = withLifeSigns(cluster, reconnect, () => over.promise, { quietMs: 50, answerMs: 300 });
      // Asked many times, and silent never.
      await eventually(() => reconnect.silentMs > 0 && reconnect.silentMs < 40);
      await Bun.sleep(400);
      expect(said).toEqual([]);
      child.kill("SIGSTOP");
      await eventually(() => said.length > 0);
      await Bun.sleep(800);
      expect(said.length).toBe(1);
      expect(said[0]).toMatch(/^notice: no sign of life from the worker of local for \d+ s; still waiting\n$/);
      child.kill("SIGCONT");
      await eventually(() => said.length > 1);
      expect(said.slice(1)).toEqual(["notice: it answers again\n"]);
      child.kill("SIGSTOP");
      await eventually(() => said.length > 2);
      over.resolve("done");
      expect(await work).toBe("done");
    } finally {
      child.kill("SIGCONT");
      child.kill("SIGKILL");
      await child.exited;
      fs.rmSync(directory, { recursive: true });
    }
  },
  TIMEOUT,
);

test("what only a person can put right is said once an outage, also where it began as a broken connection", async () => {
  const said: string[] = [];
  const stderr = { write: async (text: string | Uint8Array) => void said.push(String(text)) };
  const reconnect = new Reconnect(stderr, systemClock, new AbortController().signal);
  const answers = [
    new RelayError("link_down", "the connection broke"),
    new RelayError("authorization_required", "only you", {}, "clio-relay connect far"),
    new RelayError("authorization_required", "only you", {}, "clio-relay connect far"),
  ];
  expect(await reconnect.persist(async () => "up")).toBe("up");
  const work = async (): Promise<string> => {
    const failure = answers.shift();
    if (failure !== undefined) throw failure;
    return "up again";
  };
  expect(await reconnect.persist(work)).toBe("up again");
  expect(said).toEqual([
    "notice: the connection broke; trying again until it is back\n",
    "notice: it does not come back by itself: clio-relay connect far\n",
    "notice: connected again\n",
  ]);
});
