import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import { SHIM_ENVIRONMENT } from "../../../src/execution/direct-spawner.ts";
import { softLimit } from "../../../src/lib/system/process-limits.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";

const ENTRY = path.join(import.meta.dir, "file-threads-entry.ts");

test("a limit that is set is told, one that is not is null", () => {
  const script = `const { softLimit } = await import(${JSON.stringify(path.join(import.meta.dir, "../../../src/lib/system/process-limits.ts"))});
    console.log(JSON.stringify([softLimit("Max core file size"), softLimit("Max resident set"), softLimit("Max nothing")]));`;
  const shell = `ulimit -c 0; exec "$@"`;
  const { stdout } = Bun.spawnSync(["/bin/sh", "-c", shell, "sh", process.execPath, "-e", script]);
  expect(JSON.parse(stdout.toString())).toEqual([0, null, null]);
  expect(softLimit("Max open files")).toBeGreaterThan(0);
});

describeWith("root", "under a limit of processes", () => {
  const temporary = temporaryDirectories();

  /** In one file, as loading several takes such a thread, and as a user who has nothing else that runs: root knows no such limit. */
  const limitedTo = async (processes: number): Promise<unknown> => {
    const outdir = temporary();
    const built = await Bun.build({ entrypoints: [ENTRY], target: "bun", outdir });
    fs.chmodSync(outdir, 0o755);
    const entry = built.outputs[0]!.path;
    const { stdout, stderr } = Bun.spawnSync(
      ["setpriv", "--reuid", "54902", "--clear-groups", "prlimit", `--nproc=${processes}`, process.execPath, entry],
      { env: { ...SHIM_ENVIRONMENT } },
    );
    return stdout.length === 0 ? stderr.toString().slice(-300) : JSON.parse(stdout.toString());
  };

  test("that there is no thread for file calls is found out, and one is enough for all of them", async () => {
    expect(await limitedTo(1)).toEqual({ found: false, ended: 0 });
    expect(await limitedTo(2)).toEqual({ found: true, ended: 200 });
  });
});
