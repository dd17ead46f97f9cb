import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { isThere } from "../../../src/lib/files/file-system.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { deliver, type Place, rollback, uninstall } from "../../../src/transport/bootstrap/install.ts";
import { remoteOver } from "../../../src/transport/script/remote.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { shellHost } from "../script/shells.ts";
import { program, remoteAt, root, tree } from "./host.ts";
import { inFrontOf } from "./search-path.ts";

const directories = temporaryDirectories();
const PLACE: Place = { home: null, signal: new AbortController().signal };
const [ONE, TWO] = [program("1.0.0"), program("1.1.0", { filler: 1_500_000 })];
const CHANGING = ["mv", "ln", "mkdir", "rm", "chmod", "dd", "cp", "rmdir"];

/** A search path whose programs that change something count their calls, and in place of the n-th one end the whole script by SIGKILL. */
function deadly(nth: number): { readonly path: string; readonly fell: () => boolean } {
  const bin = directories();
  inFrontOf(
    bin,
    CHANGING,
    () => `printf x >>${bin}/.calls\nif [ "$(wc -c <${bin}/.calls)" -eq ${nth} ]; then : >${bin}/.fell; kill -KILL 0; fi\n`,
  );
  return { path: `${bin}:/usr/bin:/bin`, fell: () => fs.existsSync(path.join(bin, ".fell")) };
}

/** What an installation holds, wherever it lies. The lock of a process that is dead counts for nothing. */
const comparable = (home: string): unknown =>
  Object.entries(tree(home))
    .filter(([file]) => !file.endsWith("/bootstrap/lock"))
    .map(([file, what]) => [file, what.replaceAll(home, "")])
    .sort();

const version = (home: string): string =>
  Bun.spawnSync([path.join(root(home), "current/clio-relay"), "--version"])
    .stdout.toString()
    .trim();

/** Do something again and again, each time killed one step later, until it is not killed any more; after each it is done once more, undisturbed. */
async function atEveryStep(
  begin: (home: string) => Promise<unknown>,
  change: (home: string, search: string) => Promise<unknown>,
  check: (home: string, nth: number) => void,
): Promise<number> {
  const wanted = directories();
  await begin(wanted);
  await change(wanted, "/usr/bin:/bin");
  for (let nth = 1; ; nth++) {
    const home = directories();
    await begin(home);
    const trap = deadly(nth);
    const outcome = await change(home, trap.path).then(
      () => "done",
      () => "failed",
    );
    if (!trap.fell()) {
      expect(outcome).toBe("done");
      return nth - 1;
    }
    check(home, nth);
    await change(home, "/usr/bin:/bin");
    expect([nth, comparable(home)]).toEqual([nth, comparable(wanted)]);
  }
}

const put = (home: string, artifact: typeof ONE, search = "/usr/bin:/bin") =>
  deliver(remoteAt(home, { path: search }), artifact, PLACE, systemClock);

test("a channel that is cut at any record: the next run finishes it", async () => {
  const wanted = directories();
  await put(wanted, ONE);
  await put(wanted, TWO);
  for (let nth = 1, cut = true; cut; nth++) {
    const home = directories();
    await put(home, ONE);
    const session = shellHost({ home });
    let records = 0;
    cut = false;
    const remote = remoteOver({
      async exec(command, signal) {
        const channel = await session.exec(command, signal);
        channel.stream.on("data", (chunk: Buffer) => {
          records += chunk.toString("latin1").split("\n").length - 1;
          if (records < nth || cut) return;
          cut = true;
          channel.close();
        });
        return channel;
      },
    });
    await deliver(remote, TWO, PLACE, systemClock).catch(() => undefined);
    if (!cut) expect(nth).toBeGreaterThan(10);
    expect(["1.0.0", "1.1.0"]).toContain(version(home));
    await eventually(() => session.running.size === 0);
    await put(home, TWO);
    expect([nth, comparable(home)]).toEqual([nth, comparable(wanted)]);
    nth += 2;
  }
});

test.each(["sent 0", "sent 3", "there"])(
  'a desktop that is killed at "%s": nothing of it runs on, and the next run finishes it',
  async (mark) => {
    const [home, wanted] = [directories(), directories()];
    const artifact = program("1.1.0", { filler: 6_000_000 });
    for (const one of [home, wanted]) await put(one, ONE);
    await put(wanted, artifact);
    const desktop = Bun.spawn([process.execPath, path.join(import.meta.dir, "deliver-process.ts"), home], { stdout: "pipe" });
    const decoder = new TextDecoder();
    for await (const chunk of desktop.stdout as unknown as AsyncIterable<Uint8Array>) {
      if (decoder.decode(chunk).includes(mark)) break;
    }
    desktop.kill("SIGKILL");
    await desktop.exited;
    expect(["1.0.0", "1.1.0"]).toContain(version(home));
    await put(home, artifact);
    expect(comparable(home)).toEqual(comparable(wanted));
    const running = () => Bun.spawnSync(["pgrep", "-f", home]).stdout.toString();
    await eventually(() => running() === "");
  },
);

describe("a script that is killed before any of its steps", () => {
  test("an installation over another: the old or the new one runs at each moment, and the next run finishes it", async () => {
    const steps = await atEveryStep(
      (home) => put(home, ONE),
      (home, search) => put(home, TWO, search),
      (home, nth) => expect([nth, ["1.0.0", "1.1.0"].includes(version(home))]).toEqual([nth, true]),
    );
    expect(steps).toBeGreaterThan(15);
  });

  test("the first installation: nothing, or all of it, is in its place", async () => {
    const steps = await atEveryStep(
      async () => undefined,
      (home, search) => put(home, TWO, search),
      (home, nth) => {
        const there = fs.existsSync(path.join(root(home), "current"));
        expect([nth, there ? version(home) : "1.1.0"]).toEqual([nth, "1.1.0"]);
      },
    );
    expect(steps).toBeGreaterThan(15);
  });

  test("a way back is gone to its end, and not turned around", async () => {
    const steps = await atEveryStep(
      async (home) => {
        await put(home, ONE);
        await put(home, TWO);
      },
      // Where it is done, another would be another request.
      async (home, search) => {
        if (version(home) === "1.0.0" && !isThere(path.join(root(home), ".rollback"))) return;
        await rollback(remoteAt(home, { path: search }), PLACE, systemClock);
      },
      (home, nth) => expect([nth, ["1.0.0", "1.1.0"].includes(version(home))]).toEqual([nth, true]),
    );
    expect(steps).toBeGreaterThan(5);
  });

  test("a removal", async () => {
    const steps = await atEveryStep(
      async (home) => {
        await put(home, ONE);
        await put(home, TWO);
      },
      (home, search) => uninstall(remoteAt(home, { path: search }), PLACE, { cluster: "c", purge: true }),
      () => undefined,
    );
    expect(steps).toBeGreaterThan(8);
  });
});
