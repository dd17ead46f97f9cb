import { afterEach, describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { version } from "../../../package.json";
import { DEFAULT_CAPACITY } from "../../../src/config/cluster-entry.ts";
import { type ErrorCode, isRelayError } from "../../../src/domain/errors.ts";
import { WorkerConfigured } from "../../../src/domain/worker-configuration.ts";
import { systemClock } from "../../../src/lib/waiting/clock.ts";
import { openArtifact } from "../../../src/transport/bootstrap/artifact.ts";
import { type BootstrapOptions, bootstrap } from "../../../src/transport/bootstrap/bootstrap.ts";
import { uninstall } from "../../../src/transport/bootstrap/install.ts";
import { probeHost } from "../../../src/transport/bootstrap/probe.ts";
import { runRelay } from "../../../src/transport/bootstrap/relay-command.ts";
import { BootstrapReport } from "../../../src/transport/bootstrap/report.ts";
import { stopWorker } from "../../../src/transport/bootstrap/worker.ts";
import { makeKeyPair } from "../../../src/transport/session/key-pair.ts";
import { EXECUTABLE } from "../../runner/relay.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { eventually } from "../../runner/wait.ts";
import { program, remoteAt, root } from "./host.ts";

const signal = new AbortController().signal;
const ENV = { LANG: "C.UTF-8", CLIO_RELAY_MIN_FREE_BYTES: "0" };
const DESKTOP = makeKeyPair("a desktop").publicLine;
const homes: string[] = [];

// Before the hook that removes the directories: hooks run in the order in which they are made.
afterEach(async () => {
  for (const place of homes.splice(0)) {
    if (!fs.existsSync(path.join(root(place), "current/clio-relay"))) continue;
    await stopWorker(at(place), { cluster: "c", home: null, spool: null, signal }).catch(() => undefined);
  }
});
const directories = temporaryDirectories();

/** A home whose worker is stopped after the test. */
function home(): string {
  const made = directories();
  homes.push(made);
  return made;
}
const at = (place: string) => remoteAt(place, { env: ENV });

const options = async (change: Partial<BootstrapOptions> = {}): Promise<BootstrapOptions> => ({
  cluster: "c",
  home: null,
  spool: null,
  artifacts: [await openArtifact(EXECUTABLE)],
  expectedDigest: null,
  version,
  allowDowngrade: false,
  configuration: { env_setup: "export FROM_SETUP=yes", worker_capacity: { ...DEFAULT_CAPACITY, concurrency: 2 }, client_keys: [DESKTOP] },
  clock: systemClock,
  signal,
  ...change,
});

async function failure(work: Promise<unknown>, code: ErrorCode) {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code });
  if (!isRelayError(error)) throw new Error("not a RelayError", { cause: error });
  return error;
}

describe("bootstrap with the executable itself", () => {
  test("brings a worker up that runs jobs; the same again sends nothing and leaves it running", async () => {
    const place = home();
    const events: string[] = [];
    const first = await bootstrap(
      at(place),
      await options({ onEvent: (event) => events.push(event.type === "sent" ? "sent" : `${event.step} ${event.state}`) }),
    );
    expect(v.parse(BootstrapReport, JSON.parse(JSON.stringify(first)))).toEqual(first);
    expect(first).toMatchObject({
      sent_bytes: fs.statSync(EXECUTABLE).size,
      worker: { state: "started", supervised_by: null },
      artifact: { version },
      installation: { before: null, launcher: "made" },
    });
    expect(first.steps.map(({ step, outcome }) => `${step} ${outcome}`)).toEqual([
      "probe done",
      "choose done",
      "send done",
      "install done",
      "configure done",
      "worker done",
    ]);
    expect([...new Set(events)]).toEqual(expect.arrayContaining(["probe begin", "send begin", "sent", "worker done"]));
    expect(first.notices[0]).toContain("install-endpoint-service --cluster c");
    expect(first.configured.host_key_sha256).toMatch(/^SHA256:/);

    const again = await bootstrap(at(place), await options());
    expect(again).toMatchObject({ sent_bytes: 0, worker: { state: "kept", pid: first.worker.pid } });
    expect(again.configured.host_key).toBe(first.configured.host_key);
    expect(again.steps.filter(({ outcome }) => outcome === "done").map(({ step }) => step)).toEqual(["probe"]);
    expect(again.host.installation.nodes).toEqual([first.host.hostname]);
    expect(again.host.worker).toMatchObject({ here: true, alive: true, digest: first.artifact.digest });

    const submitted = Bun.spawnSync(
      [first.installation.executable, "job", "submit", "--cluster", "c", "--", "sh", "-c", 'echo "$FROM_SETUP $(umask)"'],
      { env: { HOME: place, PATH: "/usr/bin:/bin", ...ENV } },
    );
    const job = submitted.stdout.toString().trim();
    expect(job).toStartWith("job_");
    const waited = Bun.spawnSync([first.installation.executable, "job", "read-log", job, "--cluster", "c", "--follow"], {
      env: { HOME: place, PATH: "/usr/bin:/bin", ...ENV },
    });
    expect([waited.stdout.toString(), waited.stderr.toString()]).toEqual(["yes 0022\n", ""]);
    Bun.spawnSync([first.installation.executable, "desktop", "stop"], { env: { HOME: place, PATH: "/usr/bin:/bin", ...ENV } });
  });

  test("another version drains the worker and takes its place; a changed configuration is said", async () => {
    const place = home();
    const first = await bootstrap(at(place), await options());
    const other = path.join(directories(), "clio-relay-other");
    fs.copyFileSync(EXECUTABLE, other);
    fs.appendFileSync(other, "\n");
    const second = await bootstrap(at(place), await options({ artifacts: [await openArtifact(other)] }));
    expect(second).toMatchObject({ worker: { state: "replaced" }, installation: { before: first.artifact.digest } });
    expect(second.worker.pid).not.toBe(first.worker.pid);
    const probed = await probeHost(at(place), { cluster: "c", home: null, signal });
    expect(probed.worker).toMatchObject({ alive: true, digest: second.artifact.digest });

    const { configuration } = await options();
    const changed = await bootstrap(
      at(place),
      await options({ artifacts: [await openArtifact(other)], configuration: { ...configuration, env_setup: null } }),
    );
    expect(changed.worker.state).toBe("kept");
    expect(changed.notices.join("\n")).toContain("the configuration that it began with");
  });

  test("in a place of its own, everything lies there", async () => {
    const place = home();
    const spool = path.join(directories(), "a spool");
    const elsewhere = { home: "~/the relay", spool };
    const report = await bootstrap(at(place), await options(elsewhere));
    try {
      expect(report.configured.paths).toMatchObject({
        core_dir: path.join(place, "the relay/core/c"),
        spool_dir: path.join(spool, "c"),
      });
      expect(fs.existsSync(path.join(place, ".config"))).toBe(false);
      expect((await bootstrap(at(place), await options(elsewhere))).worker.state).toBe("kept");
    } finally {
      await stopWorker(at(place), { cluster: "c", ...elsewhere, signal });
    }
    const gone = await uninstall(at(place), { home: "~/the relay", signal }, { cluster: "c", purge: false });
    expect(gone.remains.map(({ path: one }) => path.basename(one)).sort()).toEqual(expect.arrayContaining(["config", "core"]));
  });
});

describe("what is refused before anything is changed", () => {
  const untouched = (place: string) => expect(fs.existsSync(root(place))).toBe(false);

  test("another digest than the one that was asked for", async () => {
    const place = home();
    const error = await failure(bootstrap(at(place), await options({ expectedDigest: "0".repeat(64) })), "artifact_unfit");
    expect(error.data).toMatchObject({ expected: "0".repeat(64) });
    untouched(place);
  });

  test("an executable for another platform", async () => {
    const place = home();
    const platform = { os: "linux", machine: process.arch === "arm64" ? "x64" : "arm64", libc: "glibc", baseline: null } as const;
    const error = await failure(bootstrap(at(place), await options({ artifacts: [program("1.0.0", { platform })] })), "artifact_unfit");
    expect(error.hint).toContain(`clio-relay-linux-${process.arch}`);
    untouched(place);
  });

  test("a version that is older than what is there", async () => {
    const place = home();
    const newer = program("99.0.0", { text: "exit 1" });
    const first = await bootstrap(at(place), await options({ artifacts: [newer], version: "99.0.0" })).catch((error: unknown) => error);
    expect(isRelayError(first, "script_failed")).toBe(true);
    const error = await failure(bootstrap(at(place), await options()), "version_mismatch");
    expect(error.data).toEqual({ installed: "99.0.0", version });
    expect((await bootstrap(at(place), await options({ allowDowngrade: true }))).installation.before).toBe(newer.digest);
  });

  test("a worker of another host, and one that is not of this installation", async () => {
    const place = home();
    const core = path.join(root(place), "core/c");
    fs.mkdirSync(core, { recursive: true });
    const owner = {
      endpoint_id: "e",
      since: "2026-01-01T00:00:00.000Z",
      pid: process.pid,
      start_time: 1,
      boot_id: "elsewhere",
      hostname: "login2",
    };
    fs.writeFileSync(path.join(core, "owner.json"), JSON.stringify(owner));
    expect((await failure(bootstrap(at(place), await options()), "wrong_login_node")).data).toMatchObject({ worker_hostname: "login2" });

    const { self } = await import("../../../src/lib/system/process-identity.ts");
    fs.writeFileSync(path.join(core, "owner.json"), JSON.stringify({ ...owner, ...self() }));
    const error = await failure(bootstrap(at(place), await options()), "queue_owned");
    expect(error.data).toMatchObject({ pid: process.pid, program: fs.realpathSync(process.execPath) });
    expect(fs.readdirSync(root(place))).toEqual(["core"]);
    fs.rmSync(core, { recursive: true });
  });
});

describe("worker configure", () => {
  const place = { home: null, spool: null, signal };
  const send = (host: string, document: unknown) =>
    runRelay(at(host), {
      ...place,
      args: ["worker", "configure"],
      input: typeof document === "string" ? document : JSON.stringify(document),
    });
  const document = {
    schema_version: "clio-relay.worker-configuration.v1",
    cluster: "c",
    env_setup: null,
    worker_capacity: DEFAULT_CAPACITY,
    client_keys: [DESKTOP],
  };

  test("makes one key, lets desktops in besides those that are, and says what changed", async () => {
    const host = home();
    await bootstrap(at(host), await options());
    const one = v.parse(WorkerConfigured, await send(host, document));
    expect(one.changed).toBe(true);
    const same = v.parse(WorkerConfigured, await send(host, document));
    expect(same).toEqual({ ...one, changed: false });
    const second = makeKeyPair("another").publicLine;
    expect(v.parse(WorkerConfigured, await send(host, { ...document, client_keys: [second] })).changed).toBe(true);
    const { clients } = JSON.parse(fs.readFileSync(path.join(one.paths.core_dir, "link-clients.json"), "utf8")) as { clients: unknown[] };
    const keyOf = (line: string) => line.split(" ").slice(0, 2).join(" ");
    expect(clients).toMatchObject([{ key: keyOf(DESKTOP) }, { key: keyOf(second) }]);
    expect(fs.statSync(path.join(one.paths.core_dir, "link-host-key")).mode & 0o777).toBe(0o600);

    await failure(send(host, "no JSON"), "request_validation_failed");
    await failure(send(host, { ...document, client_keys: ["ssh-rsa AAAA"] }), "request_validation_failed");
    await failure(send(host, { ...document, client_keys: ["ssh-ed25519 AAAA"] }), "configuration_error");
    await failure(runRelay(at(host), { ...place, args: ["no", "such"] }), "usage");
    fs.chmodSync(path.join(one.paths.core_dir, "link-host-key"), 0o644);
    await failure(send(host, document), "configuration_error");
  });

  test("without an installation, or with one that does not start, that is said", async () => {
    const host = home();
    await failure(send(host, document), "relay_not_installed");
    fs.mkdirSync(path.join(root(host), "current"), { recursive: true });
    fs.writeFileSync(path.join(root(host), "current/clio-relay"), "#!/no/such/interpreter\n", { mode: 0o755 });
    await failure(send(host, document), "relay_not_installed");
  });
});

test("a probe of a host with nothing on it changes nothing", async () => {
  const place = home();
  const probed = await probeHost(at(place), { cluster: "c", home: null, signal });
  expect(fs.readdirSync(place)).toEqual([]);
  expect(probed).toMatchObject({
    os: "Linux",
    machine: process.arch,
    home: place,
    worker: null,
    storage: { root: root(place), place, writable: true, starts: true, read_only: false },
    installation: { current: null, versions: [], trial: null },
  });
  expect(probed.storage.free_bytes).toBeGreaterThan(0);
  await eventually(() => probed.tools.includes("sha256sum") || probed.tools.includes("shasum"));
});
