import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { ClusterEntry, DEFAULT_CAPACITY, routeRevision } from "../../src/config/cluster-entry.ts";
import { clusterNames } from "../../src/config/cluster-names.ts";
import { clusterEntry, readClusters, updateClusters } from "../../src/config/clusters.ts";
import { describeWith } from "../runner/components.ts";
import { temporaryDirectories } from "../runner/temporary.ts";
import { environment } from "./environments.ts";

const directory = temporaryDirectories();
const env = environment();

function files() {
  const base = directory();
  return { clustersFile: path.join(base, "config", "clusters.json"), runDir: path.join(base, "run") };
}

function written(content: unknown, mode = 0o600) {
  const paths = files();
  fs.mkdirSync(path.dirname(paths.clustersFile));
  fs.writeFileSync(paths.clustersFile, typeof content === "string" ? content : JSON.stringify(content), { mode });
  fs.chmodSync(paths.clustersFile, mode);
  return paths;
}

const entry = (name: string) => ({ name, mode: "local" as const, env_setup: null, worker_capacity: DEFAULT_CAPACITY });

const far: Extract<ClusterEntry, { mode: "ssh" }> = {
  ...entry("far"),
  mode: "ssh",
  ssh_host: "login",
  ssh_client: "builtin",
  core_dir: null,
  spool_dir: null,
  target_identity: { hostnames: [], ssh_host_key_sha256: [], scheduler_cluster_name: null, site_marker_sha256: null },
  worker_key: null,
  next_worker_key: null,
  worker_cluster: null,
  worker_id: null,
};

test("no file is no cluster", () => {
  expect(readClusters(files(), env)).toEqual({ version: 2, clusters: [] });
});

test("what is written is read, readable by the owner only", async () => {
  const paths = files();
  await updateClusters(paths, env, () => [{ ...entry("a"), env_setup: "module load x\n'\"é" }]);
  expect(readClusters(paths, env).clusters).toEqual([{ ...entry("a"), env_setup: "module load x\n'\"é" }]);
  expect(fs.statSync(paths.clustersFile).mode & 0o777).toBe(0o600);
});

describe("names alone", () => {
  test("are those of the entries, whatever else these hold", async () => {
    const paths = files();
    await updateClusters(paths, env, () => [entry("a"), far]);
    expect(clusterNames(paths, env)).toEqual(["a", "far"]);
    expect(clusterNames(written({ version: 1, clusters: [{ name: "old", later: {} }] }), env)).toEqual(["old"]);
    expect(clusterNames(written({ version: 2, clusters: [] }), env)).toEqual([]);
  });

  test.each<[what: string, content: unknown, mode: number]>([
    ["of a later version", { version: 3, clusters: [{ name: "a" }] }, 0o600],
    ["that is no JSON", "{", 0o600],
    ["that is null", "null", 0o600],
    ["without a list", { version: 2, clusters: { name: "a" } }, 0o600],
    ["with a name that is none", { version: 2, clusters: [{ name: "../a" }] }, 0o600],
    ["with an entry that is none", { version: 2, clusters: [null] }, 0o600],
    ["of other users", { version: 2, clusters: [{ name: "a" }] }, 0o644],
  ])("are not taken from a file %s", (_what, content, mode) => {
    expect(clusterNames(written(content, mode), env)).toBeNull();
  });
});

test("what may be left out has a default", () => {
  const paths = written({ version: 1, clusters: [{ name: "a", mode: "local" }] });
  expect(readClusters(paths, env).clusters).toEqual([entry("a")]);
});

test("a file of version 1 keeps what is in it, byte for byte until it is changed", async () => {
  const paths = written({ version: 1, clusters: [{ name: "a", mode: "local", env_setup: "module load x" }] });
  const before = fs.readFileSync(paths.clustersFile);
  expect(readClusters(paths, env).clusters).toEqual([{ ...entry("a"), env_setup: "module load x" }]);
  expect(fs.readFileSync(paths.clustersFile)).toEqual(before);
  await updateClusters(paths, env, (clusters) => [...clusters, { ...far, name: "b" }]);
  expect(readClusters(paths, env).clusters).toEqual([
    { ...entry("a"), env_setup: "module load x" },
    { ...far, name: "b" },
  ]);
  expect(JSON.parse(fs.readFileSync(paths.clustersFile, "utf8"))).toMatchObject({ version: 2 });
});

describe("the entry of a cluster that is reached by ssh", () => {
  const given = { name: "far", mode: "ssh", ssh_host: "login" };

  test("has a default for everything but its host", () => {
    expect(v.parse(ClusterEntry, given)).toEqual(far);
  });

  test.each<[string, Record<string, unknown>, boolean]>([
    ["a user", { ssh_host: "me@login1.site.example" }, true],
    ["an address", { ssh_host: "[::1]" }, true],
    ["an option", { ssh_host: "-oProxyCommand=x" }, false],
    ["white space", { ssh_host: "a b" }, false],
    ["a line", { ssh_host: "a\nb" }, false],
    ["a command", { ssh_host: "a;id" }, false],
    ["nothing", { ssh_host: "" }, false],
    ["a user that is an option", { ssh_host: "-l@host" }, false],
    ["another client", { ssh_client: "openssh" }, true],
    ["a client that is none", { ssh_client: "putty" }, false],
    ["a place below home", { core_dir: "~/relay", spool_dir: "/scratch/é x/spool" }, true],
    ["a relative place", { core_dir: "relay" }, false],
    ["a place that goes up", { core_dir: "/a/../b" }, false],
    ["a control character", { spool_dir: "/a\u0007" }, false],
    ["a long place", { core_dir: `/${"x".repeat(1_100)}` }, false],
    ["pins", { target_identity: { hostnames: ["login1"], ssh_host_key_sha256: [`SHA256:${"a".repeat(43)}`] } }, true],
    ["a pin of hexadecimal digits", { target_identity: { ssh_host_key_sha256: ["a".repeat(64)] } }, false],
    ["a pin that is no name", { target_identity: { hostnames: ["a b"] } }, false],
    ["too many pins", { target_identity: { hostnames: Array.from({ length: 65 }, (_, i) => `n${i}`) } }, false],
    ["a pin of another kind", { target_identity: { colour: "red" } }, false],
  ])("%s", (_what, more, fits) => {
    expect(v.safeParse(ClusterEntry, { ...given, ...more }).success).toBe(fits);
  });

  test("has a route revision that only what decides about the way changes", () => {
    const revision = routeRevision(far);
    // Written down, for it must be the same in every later version.
    expect(revision).toBe("3252a53479ebac1f4038680410e409d875ab3eae5af24c145551ba3f6a881340");
    expect(routeRevision({ ...far, env_setup: "module load x", worker_capacity: { ...DEFAULT_CAPACITY, concurrency: 9 } })).toBe(revision);
    const others: ClusterEntry[] = [
      entry("far"),
      { ...far, name: "other" },
      { ...far, ssh_host: "login2" },
      { ...far, ssh_client: "openssh" },
      { ...far, core_dir: "~/x" },
      { ...far, spool_dir: "~/x" },
      { ...far, target_identity: { ...far.target_identity, hostnames: ["a"] } },
      { ...far, target_identity: { ...far.target_identity, ssh_host_key_sha256: [`SHA256:${"a".repeat(43)}`] } },
    ];
    expect(new Set([revision, ...others.map(routeRevision)]).size).toBe(others.length + 1);
    const pinned = (...hostnames: string[]) => routeRevision({ ...far, target_identity: { ...far.target_identity, hostnames } });
    expect(pinned("a", "b")).toBe(pinned("b", "a"));
  });
});

test("a change that fails leaves the file as it was", async () => {
  const paths = files();
  await updateClusters(paths, env, () => [entry("a")]);
  const before = fs.readFileSync(paths.clustersFile);
  const change = updateClusters(paths, env, () => {
    throw new Error("no");
  });
  await expect(change).rejects.toThrow("no");
  const many = updateClusters(paths, env, () => Array.from({ length: 513 }, (_, i) => entry(`c${i}`)));
  await expect(many).rejects.toMatchObject({ code: "configuration_error" });
  await Promise.allSettled([change, many]);
  expect(fs.readFileSync(paths.clustersFile)).toEqual(before);
});

test("a cluster that is not there is refused, naming those that are", () => {
  expect(() => clusterEntry({ clusters: [] }, "x")).toThrow(
    expect.objectContaining({ hint: expect.stringMatching(/^clio-relay init .* clio-relay cluster add /) }),
  );
  expect(() => clusterEntry({ clusters: [entry("a"), entry("b")] }, "x")).toThrow(
    expect.objectContaining({ code: "cluster_not_found", hint: "clusters: a, b" }),
  );
});

describe("a file that is not what it must be is refused, with its path and the place", () => {
  test.each<[string, unknown, string]>([
    ["not JSON", "{", "is not JSON"],
    ["unknown member", { version: 1, clusters: [{ ...entry("a"), colour: "red" }] }, "clusters.0.colour"],
    ["unknown member on top", { version: 1, clusters: [], extra: 1 }, "extra"],
    ["a mode that is not known", { version: 1, clusters: [{ name: "a", mode: "carrier-pigeon" }] }, "clusters.0.mode"],
    ["a bad name", { version: 1, clusters: [{ name: "A b", mode: "local" }] }, "clusters.0.name"],
    ["a name twice", { version: 1, clusters: [entry("a"), entry("a")] }, "names a cluster twice"],
    [
      "capacity that cannot be",
      {
        version: 1,
        clusters: [{ ...entry("a"), worker_capacity: { concurrency: 2, control_query_concurrency: 2, kind_concurrency: {} } }],
      },
      "control_query_concurrency must be below concurrency",
    ],
    ["a newer version", { version: 3, clusters: {} }, "has version 3"],
    ["a way without a host", { version: 2, clusters: [{ name: "a", mode: "ssh" }] }, "clusters.0.ssh_host"],
    ["a member of another mode", { version: 2, clusters: [{ ...entry("a"), ssh_host: "x" }] }, "clusters.0.ssh_host"],
    ["a list", [], "version"],
    ["null", null, "document"],
  ])("%s", (_what, content, message) => {
    const paths = written(content);
    expect(() => readClusters(paths, env)).toThrow(
      expect.objectContaining({
        code: "configuration_error",
        message: expect.stringContaining(message),
        data: { path: paths.clustersFile },
      }),
    );
  });

  test("too large", () => {
    const paths = written(" ".repeat(4 * 1024 * 1024 + 1));
    expect(() => readClusters(paths, env)).toThrow(/holds 4194305 bytes/);
  });

  test.each(["640", "604", "660", "666"])("mode %s", (mode) => {
    const paths = written({ version: 1, clusters: [] }, Number.parseInt(mode, 8));
    expect(() => readClusters(paths, env)).toThrow(expect.objectContaining({ hint: `chmod 600 ${paths.clustersFile}` }));
  });

  test("a symbolic link, a second name, a directory, a pipe", () => {
    const target = written({ version: 1, clusters: [] }).clustersFile;
    const paths = files();
    fs.mkdirSync(path.dirname(paths.clustersFile));
    fs.symlinkSync(target, paths.clustersFile);
    expect(() => readClusters(paths, env)).toThrow(/symbolic link/);
    fs.rmSync(paths.clustersFile);
    fs.linkSync(target, paths.clustersFile);
    expect(() => readClusters(paths, env)).toThrow(/another name/);
    fs.rmSync(paths.clustersFile);
    fs.mkdirSync(paths.clustersFile);
    expect(() => readClusters(paths, env)).toThrow(/regular file/);
    fs.rmdirSync(paths.clustersFile);
    expect(Bun.spawnSync(["mkfifo", "-m", "600", paths.clustersFile]).exitCode).toBe(0);
    expect(() => readClusters(paths, env)).toThrow(/regular file/);
  });
});

describeWith("root", "a file of somebody else", () => {
  test("is refused, naming the owner", () => {
    const paths = written({ version: 1, clusters: [] });
    fs.chownSync(paths.clustersFile, 65_534, 65_534);
    expect(() => readClusters(paths, env)).toThrow(/owned by user 65534/);
  });
});

test("changes of several processes at once are all there", async () => {
  const paths = files();
  const program = path.join(import.meta.dir, "adding-process.ts");
  const children = ["a", "b", "c", "d"].map((prefix) =>
    Bun.spawn([process.execPath, program, paths.clustersFile, paths.runDir, prefix, "8"], { stdout: "ignore", stderr: "pipe" }),
  );
  const codes = await Promise.all(children.map((child) => child.exited));
  expect(codes).toEqual([0, 0, 0, 0]);
  const names = readClusters(paths, env).clusters.map(({ name }) => name);
  expect(names.toSorted()).toEqual(
    ["a", "b", "c", "d"].flatMap((prefix) => Array.from({ length: 8 }, (_, i) => `${prefix}${i}`)).toSorted(),
  );
});
