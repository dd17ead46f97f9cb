import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { type ErrorCode, isRelayError } from "../../../src/domain/errors.ts";
import { findJarvis } from "../../../src/execution/jarvis/program.ts";
import { sha256Hex } from "../../../src/lib/digest.ts";
import { runSiteCommand } from "../../../src/scheduler/site-command.ts";
import { uninstall } from "../../../src/transport/bootstrap/install.ts";
import { deliverJarvis, JarvisInstalled, jarvisPayloads } from "../../../src/transport/jarvis/deliver.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { remoteAt, root } from "../bootstrap/host.ts";
import type { ShellHost } from "../script/shells.ts";

const STAND_IN = path.resolve(import.meta.dir, "../../rigs/jarvis/stand-in");
const signal = new AbortController().signal;

describeWith("python3", "a JARVIS-CD that is brought to a host", () => {
  const directories = temporaryDirectories();
  interface From {
    readonly source?: string;
    readonly wheel?: string;
    readonly setup?: string;
    readonly host?: Partial<ShellHost>;
  }
  /** A host's Python without PyYAML, whatever this machine's has. */
  const blind = (home: string) => {
    fs.writeFileSync(path.join(home, "yaml.py"), "raise ImportError('no PyYAML')\n");
    return { env: { PYTHONPATH: home, PYTHONDONTWRITEBYTECODE: "1" } };
  };
  /** One with it. */
  const able = (home: string) => {
    fs.writeFileSync(path.join(home, "yaml.py"), "");
    return { env: { PYTHONPATH: home, PYTHONDONTWRITEBYTECODE: "1" } };
  };
  const bring = async (home: string, { source = STAND_IN, wheel, setup, host }: From = {}) => {
    const payloads = await jarvisPayloads({ source, expectedDigest: null, wheel: wheel ?? null });
    const sent: number[] = [];
    const options = { home: null, envSetup: setup ?? null, signal, onSent: (bytes: number) => sent.push(bytes) };
    const installed = await deliverJarvis(remoteAt(home, host ?? able(home)), payloads, options);
    expect(v.parse(JarvisInstalled, installed)).toEqual(installed);
    expect(sent.at(-1) ?? 0).toBe(installed.sent_bytes);
    return installed;
  };
  const refused = async (work: Promise<unknown>, code: ErrorCode): Promise<string> => {
    const error: unknown = await work.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code });
    return isRelayError(error) ? error.message : "";
  };
  /** Without an upload that may still be looked at there. */
  const copies = (home: string): string[] =>
    fs
      .readdirSync(path.join(root(home), "jarvis"))
      .filter((name) => /^[0-9a-f]{64}$/.test(name))
      .toSorted();
  const jarvis = (home: string, program: string, ...args: string[]) =>
    spawnSync(program, args, { encoding: "utf8", env: { HOME: home, PATH: "/usr/bin:/bin" } });
  const python = (...args: string[]) => {
    const { status, stderr } = spawnSync("python3", args, { encoding: "utf8" });
    if (status !== 0) throw new Error(stderr);
  };

  test("runs from its source tree and is initialized; the same again sends nothing; another one lies beside it", async () => {
    const home = directories();
    const first = await bring(home);
    expect(first).toMatchObject({ initialized: "made", wheel: null, source: STAND_IN });
    expect(first.program).toBe(path.join(root(home), "jarvis", first.digest, "bin/jarvis"));
    expect(jarvis(home, first.program, "execution", "get", "x", "--pipeline-id", "y").stdout).toStartWith("Error: ");
    const again = await bring(home);
    expect(again).toEqual({ ...first, sent_bytes: 0, initialized: "kept" });

    const changed = directories();
    fs.cpSync(STAND_IN, changed, { recursive: true });
    expect((await jarvisPayloads({ source: changed, expectedDigest: null, wheel: null }))[0].digest).toBe(first.digest);
    fs.appendFileSync(path.join(changed, "jarvis_cd/core/cli.py"), "# another\n");
    fs.symlinkSync("/etc/passwd", path.join(changed, "a-link"));
    const second = await bring(home, { source: changed });
    expect(second).toMatchObject({ initialized: "kept" });
    expect(copies(home)).toEqual([first.digest, second.digest].toSorted());
    expect(fs.existsSync(path.join(path.dirname(second.program), "../a-link"))).toBe(false);
    expect(fs.existsSync(first.program)).toBe(true);
    const { removed } = await uninstall(remoteAt(home), { home: null, signal }, { cluster: "c", purge: true });
    expect(removed).toEqual(expect.arrayContaining([first, second].map(({ digest }) => path.join(root(home), "jarvis", digest))));
  });

  test("comes as an archive, too: with a directory around it, or a wheel; with long names", async () => {
    const home = directories();
    const place = directories();
    const long = `jarvis_cd/${"long/".repeat(30)}`;
    fs.cpSync(STAND_IN, path.join(place, "jarvis-cd-1.0"), { recursive: true });
    fs.mkdirSync(path.join(place, "jarvis-cd-1.0", long), { recursive: true });
    fs.writeFileSync(path.join(place, "jarvis-cd-1.0", long, "ü.txt"), "deep");
    const tar = path.join(place, "jarvis.tar.gz");
    spawnSync("tar", ["-C", place, "-czf", tar, "jarvis-cd-1.0"]);
    const wheel = path.join(place, "jarvis-1.0-py3-none-any.whl");
    python("-m", "zipfile", "-c", wheel, path.join(STAND_IN, "jarvis_cd"));
    for (const source of [tar, path.join(place, "jarvis-cd-1.0"), wheel]) {
      const { program, digest } = await bring(home, { source });
      expect(jarvis(home, program, "execution", "get", "x", "--pipeline-id", "y").stdout).toStartWith("Error: ");
      if (source !== wheel) expect(fs.readFileSync(path.join(root(home), "jarvis", digest, long, "ü.txt"), "utf8")).toBe("deep");
      if (fs.statSync(source).isFile()) expect(digest).toBe(sha256Hex(fs.readFileSync(source)));
    }
  });

  test("is refused where it cannot run, and leaves nothing", async () => {
    const home = directories();
    const place = directories();
    const other = path.join(place, "other.tar");
    fs.writeFileSync(path.join(place, "x"), "x");
    spawnSync("tar", ["-C", place, "-cf", other, "x"]);
    expect(await refused(bring(home, { source: other }), "artifact_unfit")).toContain("it has no jarvis_cd/core/cli.py");
    expect(await refused(bring(home, { source: path.join(place, "x") }), "artifact_unfit")).toContain("neither a tar archive nor a zip");
    const out = path.join(place, "out.zip");
    python("-c", `import zipfile; zipfile.ZipFile(${JSON.stringify(out)}, "w").writestr("../out", "x")`);
    expect(await refused(bring(home, { source: out }), "artifact_unfit")).toContain("it has a file '../out'");
    const broken = path.join(place, "broken");
    fs.cpSync(STAND_IN, broken, { recursive: true });
    fs.writeFileSync(path.join(broken, "jarvis_cd/core/execution.py"), "ExecutionRecord = 1\n");
    expect(await refused(bring(home, { source: broken }), "artifact_unfit")).toContain("does not run on that host: ImportError");
    expect(await refused(bring(home, { host: blind(home) }), "host_unfit")).toContain("has none");
    expect(await refused(bring(home, { setup: "PATH=/nowhere" }), "host_unfit")).toContain("Python 3.11");
    expect(copies(home)).toEqual([]);
    await refused(bring(home, { source: path.join(place, "absent") }), "local_file_missing");
    await refused(bring(home, { source: place }), "artifact_unfit");
    const [{ digest }] = await jarvisPayloads({ source: other, expectedDigest: null, wheel: null });
    await refused(jarvisPayloads({ source: other, expectedDigest: "0".repeat(64), wheel: null }), "artifact_unfit");
    expect((await jarvisPayloads({ source: other, expectedDigest: digest, wheel: null }))[0].digest).toBe(digest);
  });

  test("has PyYAML of a wheel where the host's Python has none; an older python3 is passed over; a JARVIS that was initialized stays", async () => {
    const home = directories();
    const place = directories();
    fs.mkdirSync(path.join(place, "yaml"));
    fs.writeFileSync(path.join(place, "yaml/__init__.py"), "");
    const wheel = path.join(place, "PyYAML-6.0-cp311-cp311-linux_x86_64.whl");
    python("-m", "zipfile", "-c", wheel, path.join(place, "yaml"));
    fs.mkdirSync(path.join(home, ".ppi-jarvis"));
    fs.writeFileSync(path.join(home, ".ppi-jarvis/jarvis_config.json"), '{"mine":true}');
    const installed = await bring(home, { wheel, host: blind(home) });
    expect(installed).toMatchObject({ initialized: "kept", wheel: sha256Hex(fs.readFileSync(wheel)) });
    expect(copies(home)).toEqual([sha256Hex(`${installed.digest} ${installed.wheel}`)]);
    expect(fs.readFileSync(path.join(home, ".ppi-jarvis/jarvis_config.json"), "utf8")).toBe('{"mine":true}');

    const newer = installed.python;
    const names = path.join(place, "names");
    fs.mkdirSync(names);
    fs.writeFileSync(path.join(names, "python3"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    fs.writeFileSync(path.join(names, "python3.14"), `#!/bin/sh\nexec ${newer} "$@"\n`, { mode: 0o755 });
    expect((await bring(home, { setup: `PATH=${names}:/usr/bin:/bin; echo chatty` })).python).toBe(newer);
  });

  test("runs with a Python whose path is too long for a line of its own, and is found with it", async () => {
    const home = directories();
    const deep = path.join(home, "d".repeat(140), "bin");
    fs.mkdirSync(deep, { recursive: true });
    const { stdout } = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" });
    fs.symlinkSync(stdout.trim(), path.join(deep, "python3"));
    const { program, python: found } = await bring(home, { setup: `PATH=${deep}:/usr/bin:/bin` });
    expect(found).toBe(path.join(deep, "python3"));
    expect(jarvis(home, program, "execution", "get", "x", "--pipeline-id", "y").stdout).toStartWith("Error: ");
    const site = { program, environment: {}, envSetup: null, run: runSiteCommand };
    expect(await findJarvis(site)).toEqual({ file: program, python: [found], place: path.dirname(path.dirname(program)) });
  });

  test("whose upload was cut is sent again, and what arrives as something else does not count", async () => {
    const home = directories();
    const payloads = await jarvisPayloads({ source: STAND_IN, expectedDigest: null, wheel: null });
    const cut = new AbortController();
    const options = { home: null, envSetup: null, signal: cut.signal, onSent: () => cut.abort(new Error("the laptop is closed")) };
    await expect(deliverJarvis(remoteAt(home, able(home)), payloads, options)).rejects.toThrow("the laptop is closed");
    const [{ bytes, digest, file }] = payloads;
    const torn = [{ file, digest, bytes: bytes.subarray(0, 100) }] as const;
    await refused(deliverJarvis(remoteAt(home, able(home)), torn, { ...options, signal, onSent: () => undefined }), "script_failed");
    expect((await bring(home)).sent_bytes).toBe(bytes.length);
    expect(copies(home)).toEqual([digest]);
  });
});
