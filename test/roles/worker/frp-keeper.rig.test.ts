import { afterAll, beforeAll, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { systemTimers } from "../../../src/lib/waiting/timers.ts";
import { FrpKeeper } from "../../../src/roles/worker/frp-keeper.ts";
import { frpProgram } from "../../rigs/frp/programs.ts";
import { Frps } from "../../rigs/frp/server.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";

describeWith("frp", "the worker's frpc", () => {
  const files = temporaryDirectory();
  const directory = path.join(files.path, "frp");
  const said: string[] = [];
  const note = (message: string, data?: unknown): void => void said.push(`${message} ${JSON.stringify(data ?? null)}`);
  let frps: Frps;
  let keeper: FrpKeeper;

  beforeAll(async () => {
    frps = await Frps.start();
    keeper = keeperOf("far", 2_000);
    await reached();
  });
  afterAll(async () => {
    await keeper.stop();
    await frps[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  const keeperOf = (cluster: string, askMs: number) =>
    new FrpKeeper({
      cluster,
      server: () => frps.server(),
      place: "tcp://there:1",
      room: { name: cluster.repeat(8), secret: "a secret of the room" },
      types: ["stcp"],
      frpc: frpProgram("frpc"),
      directory,
      variables: process.env,
      linkSocket: path.join(files.path, "link.sock"),
      clock: systemClock,
      timers: systemTimers,
      times: { askMs, answerMs: 1_000, againMs: 50 },
      log: { info: note, warn: note, error: note },
    });
  const reached = (one = keeper) => eventually(() => one.presence.reached, { what: "the way through frps" });
  const pid = (): number => (JSON.parse(fs.readFileSync(path.join(directory, "worker-far.json"), "utf8")) as { pid: number }).pid;

  test("one without a direct way has one processor", () => {
    expect(fs.readFileSync(`/proc/${pid()}/environ`, "utf8").split("\0")).toContain("GOMAXPROCS=1");
  });

  test("one that lives and is deaf is replaced", async () => {
    const deaf = pid();
    process.kill(deaf, "SIGSTOP");
    await eventually(() => pid() !== deaf, { what: "another frpc" });
    await reached();
    expect(fs.existsSync(`/proc/${deaf}/cmdline`)).toBe(false);
    expect(said.filter((line) => line.includes("frp_unreachable"))).toHaveLength(1);
  });

  test("a frps that hangs, goes and comes", async () => {
    frps.stop();
    await eventually(() => !keeper.presence.reached);
    frps.goOn();
    await reached();
    await frps.kill();
    await eventually(() => !keeper.presence.reached);
    // With frpc's own last words.
    expect(keeper.presence).toEqual({
      server: "tcp://there:1",
      reached: false,
      reason: expect.stringMatching(/frpc ended: \S|nothing comes back/),
    });
    await frps.again();
    await reached();
    expect(said.join("\n")).not.toContain(frps.token);
  });

  test("a frps that goes is noticed at once, however seldom the way is asked for, and so is one that is back", async () => {
    const seldom = keeperOf("seldom", 3_600_000);
    try {
      await reached(seldom);
      await frps.kill();
      await eventually(() => !seldom.presence.reached);
      await frps.again();
      await reached(seldom);
      expect(seldom.presence.reached).toBe(true);
    } finally {
      await seldom.stop();
    }
    await reached();
  });

  test("nothing is left of it when it stops", async () => {
    const last = pid();
    await keeper.stop();
    expect(fs.existsSync(`/proc/${last}/cmdline`)).toBe(false);
    expect(fs.readdirSync(directory)).toEqual([]);
  });
});
