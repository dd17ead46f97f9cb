import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { readEnvironment } from "../../src/config/environment.ts";
import { resolvePaths } from "../../src/config/paths.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { environment } from "./environments.ts";

const directory = temporaryDirectories();
/** The most that unix(7) takes, without the final NUL. */
const SUN_PATH = 107;

/** A place for sockets such as a login makes it, mode 0700. */
const runtimeDirectory = (): string => {
  const made = path.join(directory(), "runtime");
  fs.mkdirSync(made, { mode: 0o700 });
  return made;
};

describe("with CLIO_RELAY_HOME", () => {
  test("everything lies below it", () => {
    const home = directory();
    const paths = resolvePaths(environment({ CLIO_RELAY_HOME: home }));
    expect(paths.clustersFile).toBe(path.join(home, "config", "clusters.json"));
    expect(paths.settingsFile).toBe(path.join(home, "config", "config.toml"));
    expect(paths.coreDir("a")).toBe(path.join(home, "core", "a"));
    expect(paths.spoolDir("a")).toBe(path.join(home, "spool", "a"));
    expect(paths.cacheDir).toBe(path.join(home, "cache"));
    expect(paths.desktopLog).toBe(path.join(home, "log", "desktop.log"));
    expect(paths.desktopSocket).toBe(path.join(home, "run", "desktop.sock"));
    expect(paths.workerSocket("a")).toBe(path.join(home, "run", "worker-a.sock"));
  });

  test("a relative one is refused: it would be another installation in every directory", () => {
    const cwd = directory();
    let refused: unknown;
    try {
      resolvePaths(environment({ CLIO_RELAY_HOME: "here" }, { cwd }));
    } catch (error) {
      refused = error;
    }
    expect(refused).toMatchObject({
      code: "configuration_error",
      data: { variable: "CLIO_RELAY_HOME" },
      hint: `CLIO_RELAY_HOME=${path.join(cwd, "here")}`,
    });
  });

  test("an empty one is none", () => {
    expect(resolvePaths(environment({ CLIO_RELAY_HOME: "" })).coreRoot).toBe("/home/somebody/.local/share/clio-relay/core");
  });

  test("one that is too long for a socket's path has its sockets in the runtime directory", () => {
    const home = path.join(directory(), "x".repeat(80));
    const runtime = runtimeDirectory();
    const paths = resolvePaths(environment({ CLIO_RELAY_HOME: home, XDG_RUNTIME_DIR: runtime }));
    expect(path.dirname(paths.runDir)).toBe(path.join(runtime, "clio-relay"));
    expect(paths.coreRoot).toBe(path.join(home, "core"));
  });

  test("without a runtime directory they are in one of the user's own for temporary files", () => {
    const temporary = directory();
    const home = path.join(directory(), "x".repeat(80));
    const env = environment({ CLIO_RELAY_HOME: home }, { temporary, uid: 4_711 });
    expect(path.dirname(resolvePaths(env).runDir)).toBe(path.join(temporary, "clio-relay-4711"));
  });

  test("two of them never meet", () => {
    const long = "x".repeat(90);
    const [one, other] = ["a", "b"].map((name) => resolvePaths(environment({ CLIO_RELAY_HOME: `/nowhere/${name}${long}` })).runDir);
    expect(one).not.toBe(other);
  });

  test("another name of the same directory finds the same sockets", () => {
    const real = path.join(directory(), "y".repeat(80));
    fs.mkdirSync(real);
    const link = path.join(directory(), "z".repeat(80));
    fs.symlinkSync(real, link);
    expect(resolvePaths(environment({ CLIO_RELAY_HOME: link })).runDir).toBe(resolvePaths(environment({ CLIO_RELAY_HOME: real })).runDir);
  });
});

describe("without CLIO_RELAY_HOME", () => {
  test("files lie where the user's files of that kind do, sockets never in the home directory", () => {
    const runtime = runtimeDirectory();
    const paths = resolvePaths(environment({ XDG_RUNTIME_DIR: runtime }));
    expect(paths.configDir).toBe("/home/somebody/.config/clio-relay");
    expect(paths.coreDir("local")).toBe("/home/somebody/.local/share/clio-relay/core/local");
    expect(paths.spoolDir("local")).toBe("/home/somebody/.local/share/clio-relay/spool/local");
    expect(paths.cacheDir).toBe("/home/somebody/.cache/clio-relay");
    expect(paths.runDir.startsWith(`${runtime}/clio-relay/`)).toBe(true);
  });

  test.each([
    ["open to others", (made: string) => fs.chmodSync(made, 0o755)],
    [
      "a link",
      (made: string) => {
        fs.rmdirSync(made);
        fs.symlinkSync("/tmp", made);
      },
    ],
    ["missing", (made: string) => fs.rmdirSync(made)],
  ])("a runtime directory that is %s is not used", (_what, spoil) => {
    const runtime = runtimeDirectory();
    spoil(runtime);
    const temporary = directory();
    expect(resolvePaths(environment({ XDG_RUNTIME_DIR: runtime }, { temporary, uid: 4_711 })).runDir.startsWith(temporary)).toBe(true);
  });

  test("state, output and registry can be moved by themselves", () => {
    const paths = resolvePaths(
      environment(
        { CLIO_RELAY_CORE_DIR: "/fast/core", CLIO_RELAY_SPOOL_DIR: "/fast/../spool", CLIO_RELAY_CLUSTER_REGISTRY: "/etc/c.json" },
        { cwd: "/w" },
      ),
    );
    expect([paths.coreDir("a"), paths.spoolDir("a"), paths.clustersFile]).toEqual(["/fast/core/a", "/spool/a", "/etc/c.json"]);
  });

  test.each(["CLIO_RELAY_CORE_DIR", "CLIO_RELAY_SPOOL_DIR", "CLIO_RELAY_CLUSTER_REGISTRY", "CLIO_RELAY_REMOTE_MCP_CACHE"])(
    "%s is absolute, or refused",
    (name) => {
      const resolve = () => resolvePaths(environment({ [name]: "here/x" }, { cwd: "/w" }));
      expect(resolve).toThrow(`${name} is "here/x", but must be an absolute path`);
      expect(resolve).toThrow(expect.objectContaining({ code: "configuration_error", hint: `${name}=/w/here/x` }));
    },
  );
});

describe.each(["CLIO_RELAY_HOME", "CLIO_RELAY_CORE_DIR", "CLIO_RELAY_SPOOL_DIR"])("%s", (name) => {
  const refusal = (value: string) => () => resolvePaths(environment({ [name]: value }));

  test.each(["", "/below", "/below/that"])("is refused where a file is in its place (FILE%s)", (rest) => {
    const file = path.join(directory(), "file");
    fs.writeFileSync(file, "");
    expect(refusal(file + rest)).toThrow(`${name} is ${JSON.stringify(file + rest)}, but ${JSON.stringify(file)} is not a directory`);
    expect(refusal(file + rest)).toThrow(
      expect.objectContaining({ code: "configuration_error", hint: expect.stringContaining(`${name}=DIR`) }),
    );
  });

  test("need not be there, and may be a link to a directory", () => {
    const parent = directory();
    fs.symlinkSync(parent, path.join(parent, "link"));
    for (const place of [path.join(parent, "a", "b"), path.join(parent, "link")]) expect(refusal(place)).not.toThrow();
  });
});

test("every socket's path fits, whatever the names are", () => {
  const name = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,127}$/);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), name, name, (length, one, other) => {
      const paths = resolvePaths(environment({ CLIO_RELAY_HOME: `/${"d".repeat(length)}` }));
      for (const socket of [paths.desktopSocket, paths.workerSocket(one), paths.workerSocket(other)]) {
        expect(Buffer.byteLength(socket)).toBeLessThanOrEqual(SUN_PATH);
      }
      expect(paths.workerSocket(one) === paths.workerSocket(other)).toBe(one === other);
    }),
    { numRuns: 200 },
  );
});

test("the environment is read once", () => {
  const source: Record<string, string> = { A: "1" };
  const env = readEnvironment(source, "/somewhere");
  source["A"] = "2";
  expect(env.variables["A"]).toBe("1");
  expect(env.cwd).toBe("/somewhere");
  expect(path.isAbsolute(env.home)).toBe(true);
});
