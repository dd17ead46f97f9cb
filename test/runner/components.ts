import { describe, test } from "bun:test";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { noArm64 } from "../rigs/arm64.ts";
import { fastMcp } from "../rigs/fastmcp/client.ts";
import { buildFrp, noFrp } from "../rigs/frp/programs.ts";
import { noJarvis } from "../rigs/jarvis/real.ts";
import { mcpPrograms } from "../rigs/mcp-programs/programs.ts";
import { noMusl } from "../rigs/musl.ts";
import { generator } from "../rigs/openapi-typescript/generator.ts";
import { prometheusClient } from "../rigs/prometheus-client/parser.ts";
import { crateValidator } from "../rigs/ro-crate/validator.ts";
import { schemathesis } from "../rigs/schemathesis/program.ts";
import { noMemoryBound } from "../rigs/slurm.ts";
import type { SkipRecord } from "./verdict.ts";

/** Something that a machine may lack and a test may need. */
export interface Component {
  /** Why it is not there, in a few words; null when it is. */
  readonly probe: () => string | null;
  /** Debian packages that bring it. The runner installs them where it may. */
  readonly packages?: readonly string[];
  /** Makes it where there are no packages of it; resolves to whether it did. */
  readonly make?: () => Promise<boolean>;
}

const program =
  (name: string, ...args: string[]) =>
  (): string | null => {
    const result = spawnSync(name, args, { stdio: "ignore", timeout: 10_000 });
    if (result.error !== undefined) return `${name} is not installed`;
    return result.status === 0 ? null : `${name} does not work here`;
  };

const isRoot = (): string | null => (process.getuid?.() === 0 ? null : "needs root");

function tmpfs(): string | null {
  if (process.platform !== "linux") return "needs Linux";
  const needsRoot = isRoot();
  if (needsRoot !== null) return needsRoot;
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-probe-"));
  try {
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", directory], { stdio: "ignore" }).status === 0;
    return mounted && spawnSync("umount", [directory], { stdio: "ignore" }).status === 0 ? null : "mounting is not allowed here";
  } finally {
    fs.rmdirSync(directory);
  }
}

/** Whether this process may make a cgroup (version 2) below its own. */
function cgroup(): string | null {
  try {
    const mount = fs
      .readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .find((line) => line.includes(" - cgroup2 "));
    const own = /^0::(.*)$/m.exec(fs.readFileSync("/proc/self/cgroup", "utf8"));
    if (mount === undefined || own === null) return "there is no cgroup hierarchy of version 2";
    const directory = path.join(mount.split(" ")[4]!, own[1]!, `clio-relay-probe-${process.pid}`);
    fs.mkdirSync(directory);
    fs.rmdirSync(directory);
    return null;
  } catch {
    return "this process may not make cgroups";
  }
}

function systemd(): string | null {
  if (!fs.existsSync("/run/systemd/system")) return "this machine was not started by systemd";
  return program("systemd-run", "--quiet", "--scope", "true")();
}

/** What rigs/systemd-overlay needs to boot a systemd of its own. */
function nspawn(): string | null {
  const needsRoot = isRoot();
  if (needsRoot !== null) return needsRoot;
  return program("systemd-nspawn", "--version")() ?? (fs.existsSync("/usr/bin/dbus-daemon") ? null : "dbus-user-session is not installed");
}

/** A server of OpenSSH that tests may start with users of their own. */
function sshd(): string | null {
  const needsRoot = isRoot();
  if (needsRoot !== null) return needsRoot;
  if (!fs.existsSync("/usr/sbin/sshd")) return "sshd is not installed";
  return program("ssh-keygen", "-L", "-f", "/dev/null")() === "ssh-keygen is not installed" ? "ssh-keygen is not installed" : null;
}

/** One-time codes through PAM. */
function secondFactor(): string | null {
  const missing = sshd() ?? program("oathtool", "--version")();
  if (missing !== null) return missing;
  const modules = ["/usr/lib", "/lib"].flatMap((root) => [
    ...new Bun.Glob("*/security/pam_google_authenticator.so").scanSync({ cwd: root }),
  ]);
  return modules.length > 0 ? null : "pam_google_authenticator is not installed";
}

function networkNamespace(): string | null {
  const needsRoot = isRoot();
  if (needsRoot !== null) return needsRoot;
  const name = `relay-probe-${process.pid}`;
  if (spawnSync("ip", ["netns", "add", name], { stdio: "ignore" }).status !== 0) return "network namespaces cannot be made here";
  spawnSync("ip", ["netns", "delete", name], { stdio: "ignore" });
  return null;
}

/** The daemons of a scheduler that tests may start. */
const daemons =
  (...names: readonly string[]) =>
  (): string | null => {
    const needsRoot = isRoot();
    if (needsRoot !== null) return needsRoot;
    const missing = names.find(
      (name) => Bun.which(name, { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" }) === null,
    );
    return missing === undefined ? null : `${missing} is not installed`;
  };

/** To add one: an entry here, and its name in .ci/run where a bare Debian machine can have it. */
export const COMPONENTS = {
  linux: { probe: () => (process.platform === "linux" ? null : "needs Linux") },
  root: { probe: isRoot },
  apt: { probe: program("apt-get", "--version") },
  tmpfs: { probe: tmpfs },
  cgroup: { probe: cgroup },
  systemd: { probe: systemd },
  nspawn: { probe: nspawn, packages: ["systemd-container", "dbus-user-session", "procps"] },
  tcsh: { probe: program("tcsh", "-c", "true"), packages: ["tcsh"] },
  fish: { probe: program("fish", "-c", "true"), packages: ["fish"] },
  zsh: { probe: program("zsh", "-c", "true"), packages: ["zsh"] },
  "bash-completion": {
    probe: () => (fs.existsSync("/usr/share/bash-completion/bash_completion") ? null : "bash-completion is not installed"),
    packages: ["bash-completion"],
  },
  mandoc: { probe: () => (fs.existsSync("/usr/bin/mandoc") ? null : "mandoc is not installed"), packages: ["mandoc"] },
  ksh: { probe: program("ksh", "-c", "true"), packages: ["ksh"] },
  mksh: { probe: program("mksh", "-c", "true"), packages: ["mksh"] },
  busybox: { probe: program("busybox", "true"), packages: ["busybox"] },
  cron: { probe: () => (fs.existsSync("/usr/bin/crontab") ? null : "crontab is not installed"), packages: ["cron"] },
  shellcheck: { probe: program("shellcheck", "--version"), packages: ["shellcheck"] },
  ssh: { probe: program("ssh", "-V"), packages: ["openssh-client"] },
  sshd: { probe: sshd, packages: ["openssh-server", "openssh-client"] },
  "sshd-2fa": { probe: secondFactor, packages: ["openssh-server", "openssh-client", "libpam-google-authenticator", "oathtool"] },
  nginx: { probe: program("nginx", "-v"), packages: ["nginx-light"] },
  netns: { probe: networkNamespace, packages: ["iproute2"] },
  openssl: { probe: program("openssl", "version"), packages: ["openssl"] },
  curl: { probe: program("curl", "--version"), packages: ["curl"] },
  jq: { probe: program("jq", "--version"), packages: ["jq"] },
  wget: { probe: program("wget", "--version"), packages: ["wget"] },
  wine: { probe: program("wine", "--version"), packages: ["wine", "wine64"] },
  "qemu-arm64": { probe: noArm64, packages: ["qemu-user-static", "libc6-arm64-cross", "libstdc++6-arm64-cross"] },
  musl: { probe: noMusl },
  frp: { probe: noFrp, make: buildFrp },
  node: { probe: program("node", "--version") },
  jarvis: { probe: noJarvis },
  python3: { probe: program("python3", "--version"), packages: ["python3"] },
  schemathesis: { probe: schemathesis.missing, packages: ["python3", "python3-venv"], make: schemathesis.make },
  fastmcp: { probe: fastMcp.missing, packages: ["python3", "python3-venv"], make: fastMcp.make },
  "mcp-programs": { probe: mcpPrograms.missing, make: mcpPrograms.make },
  "openapi-typescript": { probe: generator.missing, make: generator.make },
  "ro-crate": { probe: crateValidator.missing, packages: ["python3", "python3-venv"], make: crateValidator.make },
  "prometheus-client": { probe: prometheusClient.missing, packages: ["python3", "python3-venv"], make: prometheusClient.make },
  promtool: { probe: program("promtool", "--version") },
  slurm: {
    probe: daemons("slurmctld", "slurmd", "sbatch", "munged", "slurmdbd", "mariadbd"),
    packages: ["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge", "slurmdbd", "mariadb-server"],
  },
  "slurm-memory": { probe: noMemoryBound },
  gridengine: {
    probe: daemons("sge_qmaster", "sge_execd", "qsub"),
    packages: ["gridengine-master", "gridengine-exec", "gridengine-client"],
  },
  faketime: { probe: program("faketime", "-f", "+0", "true"), packages: ["faketime"] },
} as const satisfies Record<string, Component>;

export type ComponentName = keyof typeof COMPONENTS;

export type Availability = { readonly available: true } | { readonly available: false; readonly reason: string };

export const isComponent = (name: string): name is ComponentName => Object.hasOwn(COMPONENTS, name);

/** The components whose absence is a failure: CLIO_RELAY_TEST_REQUIRE, a comma list. A name that is none is an error. */
export function requiredComponents(list: string | undefined = process.env["CLIO_RELAY_TEST_REQUIRE"]): ComponentName[] {
  const names = (list ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  return names.map((name) => {
    if (!isComponent(name)) throw new Error(`CLIO_RELAY_TEST_REQUIRE names "${name}"; there are ${Object.keys(COMPONENTS).join(", ")}`);
    return name;
  });
}

const probed = new Map<ComponentName, Availability>();

/** Whether a component is there. Probed once per process. */
export function component(name: ComponentName): Availability {
  let availability = probed.get(name);
  if (availability === undefined) {
    const reason = (COMPONENTS[name] as Component).probe();
    availability = reason === null ? { available: true } : { available: false, reason };
    probed.set(name, availability);
  }
  return availability;
}

/** What is to become of tests that need some components. */
export type Decision =
  | { readonly run: true }
  | { readonly run: false; readonly component: string; readonly reason: string; readonly required: boolean };

/** Run the tests, skip them for the first component that is missing, or fail them where that one is required. */
export function decide(
  names: readonly ComponentName[],
  look: (name: ComponentName) => Availability = component,
  required: readonly ComponentName[] = requiredComponents(),
): Decision {
  for (const name of names) {
    const availability = look(name);
    if (!availability.available) return { run: false, component: name, reason: availability.reason, required: required.includes(name) };
  }
  return { run: true };
}

/** The test file that is asking, from the stack; the runner wants to know who skipped. */
function callingFile(): string {
  const frame = /[( ]((?:\/|[A-Za-z]:\\)[^():]*\.test\.ts):\d+/.exec(new Error().stack ?? "");
  return path.relative(process.cwd(), frame?.[1] ?? "unknown").replaceAll(path.sep, "/");
}

function reportSkip(skip: SkipRecord): void {
  console.error(`skipped: ${skip.component}: ${skip.reason}`);
  const file = process.env["CLIO_RELAY_TEST_SKIPS"];
  if (file !== undefined) fs.appendFileSync(file, `${JSON.stringify(skip)}\n`);
}

/**
 * Whether a component is there, for `test.skipIf(!requireComponent("tmpfs"))`. Where it is not, says so and why; throws where
 * CLIO_RELAY_TEST_REQUIRE names it. Call it while the file is loaded.
 */
export function requireComponent(name: ComponentName): boolean {
  const decision = decide([name]);
  if (decision.run) return true;
  if (decision.required) throw new Error(`${decision.component} is required and missing: ${decision.reason}`);
  reportSkip({ component: decision.component, reason: decision.reason, file: callingFile() });
  return false;
}

/** `describe` for tests that need components: skipped with a printed reason, or failed where they are required. */
export function describeWith(names: ComponentName | readonly ComponentName[], title: string, body: () => void): void {
  const decision = decide(typeof names === "string" ? [names] : names);
  if (decision.run) {
    describe(title, body);
  } else if (decision.required) {
    describe(title, () => {
      test(`needs ${decision.component}`, () => {
        throw new Error(`${decision.component} is required and missing: ${decision.reason}`);
      });
    });
  } else {
    reportSkip({ component: decision.component, reason: decision.reason, file: callingFile() });
    describe.skip(title, body);
  }
}
