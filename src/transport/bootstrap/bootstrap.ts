import { RelayError } from "../../domain/errors.ts";
import type { WorkerConfiguration } from "../../domain/worker-configuration.ts";
import type { Clock } from "../../lib/waiting/clock.ts";
import { deliverJarvis, type JarvisInstalled } from "../jarvis/deliver.ts";
import type { Payload } from "../jarvis/source.ts";
import type { Remote } from "../script/remote.ts";
import { serviceStatus } from "../service/status.ts";
import type { Artifact } from "./artifact.ts";
import { chooseArtifact, compareVersions, refuseUnfit } from "./choose.ts";
import { deliver, type Installed } from "./install.ts";
import { type HostProbe, probeHost } from "./probe.ts";
import type { Whereabouts } from "./relay-command.ts";
import type { BootstrapEvent, BootstrapReport, Step } from "./report.ts";
import { configureWorker, ensureWorker, refuseOwned, type WorkerOutcome } from "./worker.ts";

export interface BootstrapOptions extends Whereabouts {
  readonly cluster: string;
  /** Executables that may be sent, the one to be preferred first. */
  readonly artifacts: readonly Artifact[];
  /** The SHA-256 that the executable has to have; null: whatever fits. */
  readonly expectedDigest: string | null;
  /** Version of the executables, where it is known before they run; a newer one there is then not replaced. */
  readonly version: string | null;
  readonly allowDowngrade: boolean;
  /** As WorkerWanted has it. */
  readonly isSilent?: () => Promise<boolean>;
  readonly configuration: Omit<WorkerConfiguration, "schema_version" | "cluster">;
  /** A JARVIS-CD that the worker is to run pipelines with, and what goes with it; left out: as the configuration says. */
  readonly jarvis?: readonly [Payload, ...Payload[]];
  readonly clock: Clock;
  /** The request that it belongs to. */
  readonly signal: AbortSignal;
  readonly onEvent?: (event: BootstrapEvent) => void;
}

/** Everything together may take no longer; a slow upload included. */
const WITHIN_MS = 30 * 60_000;

/**
 * Bring clio-relay onto a host, and its worker up, over a connection that is there: probe, choose, send, install, configure, worker. Each step looks at what is
 * there already; a run that was cut anywhere is taken up by the next, and one that finds everything done changes nothing. Refusals that can be known come before
 * the first change.
 *
 * @throws RelayError host_unfit, artifact_unfit, queue_owned, wrong_login_node, version_mismatch, storage_admission_refused, script_failed, state_conflict,
 *   relay_not_installed, service_failed, observation_timeout; channel_refused and link_down as the connection has them; the signal's reason
 */
export async function bootstrap(remote: Remote, options: BootstrapOptions): Promise<BootstrapReport> {
  const limit = AbortSignal.timeout(WITHIN_MS);
  try {
    return await allSteps(remote, options, AbortSignal.any([options.signal, limit]));
  } catch (error) {
    if (!limit.aborted || options.signal.aborted) throw error;
    throw new RelayError("observation_timeout", "the bootstrap took more than 30 minutes; run again, it goes on where it stopped");
  }
}

async function allSteps(remote: Remote, options: BootstrapOptions, signal: AbortSignal): Promise<BootstrapReport> {
  const place = { home: options.home, spool: options.spool, signal };
  const { cluster, clock, onEvent = () => undefined } = options;
  const steps = new Steps(clock, onEvent);

  const host = await steps.take("probe", async () => {
    const probe = await probeHost(remote, { ...place, cluster });
    return {
      result: probe,
      changed: true,
      detail: `${probe.os} on ${probe.machine_name}, ${probe.libc} ${probe.libc_version ?? ""}`.trim(),
    };
  });
  const artifact = await steps.take("choose", async () => {
    const chosen = choose(host, options);
    return { result: chosen, changed: host.installation.current !== chosen.digest, detail: chosen.file };
  });
  const installed = await deliverInSteps(remote, artifact, place, steps, clock, onEvent);
  const jarvis = await jarvisInStep(remote, options, place, steps);
  const configured = await steps.take("configure", async () => {
    const result = await configureWorker(remote, place, {
      schema_version: "clio-relay.worker-configuration.v1",
      cluster,
      ...options.configuration,
      ...(jarvis === null ? {} : { jarvis_bin: jarvis.program }),
    });
    return { result, changed: result.changed, detail: result.host_key_sha256 };
  });
  const worker = await steps.take("worker", async () => {
    const result = await ensureWorker(remote, host.worker, {
      ...place,
      cluster,
      digest: artifact.digest,
      clock,
      restart: configured.restart,
      ...(options.isSilent === undefined ? {} : { isSilent: options.isSilent }),
    });
    return { result, changed: result.state !== "kept", detail: `process ${result.pid ?? "unknown"}` };
  });
  return {
    schema_version: "clio-relay.bootstrap-report.v1",
    cluster,
    host,
    artifact: { digest: artifact.digest, size: artifact.size, version: installed.version, file: artifact.file.slice(0, 1_024) },
    steps: steps.taken,
    sent_bytes: installed.sent,
    installation: {
      root: installed.root,
      executable: installed.executable,
      current: artifact.digest,
      before: installed.before === artifact.digest ? null : installed.before,
      removed: [...installed.removed],
      launcher: installed.launcher,
    },
    ...(jarvis === null ? {} : { jarvis }),
    configured,
    worker: { ...worker, hostname: host.hostname },
    notices: noticesOf(host, installed, worker, configured.changed, {
      cluster,
      // What there is to keep it running is for the host to say.
      command: worker.supervised_by === null ? (await serviceStatus(remote, { ...place, cluster })).operator_action : null,
    }),
  };
}

/** @throws RelayError host_unfit, artifact_unfit, queue_owned, wrong_login_node, version_mismatch */
function choose(host: HostProbe, { artifacts, expectedDigest, version, allowDowngrade }: BootstrapOptions): Artifact {
  refuseUnfit(host);
  refuseOwned(host);
  const artifact = chooseArtifact(host, artifacts);
  if (expectedDigest !== null && artifact.digest !== expectedDigest) {
    throw new RelayError(
      "artifact_unfit",
      `${artifact.file} has the SHA-256 ${artifact.digest}, not ${expectedDigest}`,
      { digest: artifact.digest, expected: expectedDigest },
      "--artifact FILE with the one that is meant; SHA256SUMS of a release has the digest of each",
    );
  }
  const { current, versions } = host.installation;
  const there = versions.find(({ digest }) => digest === current)?.version ?? null;
  const older = version !== null && there !== null && (compareVersions(version, there) ?? 0) < 0;
  if (older && current !== artifact.digest && !allowDowngrade) {
    throw new RelayError(
      "version_mismatch",
      `that host has version ${there}, which is newer than ${version}`,
      { installed: there, version },
      "upgrade this clio-relay, or --allow-downgrade; a queue that a newer version has opened may refuse an older one",
    );
  }
  return artifact;
}

async function deliverInSteps(
  remote: Remote,
  artifact: Artifact,
  place: { readonly home: string | null; readonly signal: AbortSignal },
  steps: Steps,
  clock: Clock,
  onEvent: (event: BootstrapEvent) => void,
): Promise<Installed & { readonly sent: number }> {
  const send = steps.begin("send", artifact.file);
  let install: ReturnType<Steps["begin"]> | null = null;
  const done = await deliver(remote, artifact, place, clock, {
    onSent: (bytes) => onEvent({ type: "sent", bytes, total: artifact.size }),
    onThere: (sent) => {
      if (install === null) send(sent > 0, `${sent} bytes`);
      install ??= steps.begin("install", artifact.digest);
    },
  });
  (install ?? steps.begin("install", artifact.digest))(done.placed || done.before !== artifact.digest, done.version);
  return done;
}

async function jarvisInStep(
  remote: Remote,
  { jarvis, configuration, onEvent }: BootstrapOptions,
  { home, signal }: { readonly home: string | null; readonly signal: AbortSignal },
  steps: Steps,
): Promise<JarvisInstalled | null> {
  if (jarvis === undefined) return null;
  return steps.take("jarvis", async () => {
    const onSent = (bytes: number, total: number) => onEvent?.({ type: "sent", bytes, total });
    const result = await deliverJarvis(remote, jarvis, { home, envSetup: configuration.env_setup, signal, onSent });
    return { result, changed: result.sent_bytes > 0 || result.initialized === "made", detail: result.program };
  });
}

function noticesOf(
  host: HostProbe,
  installed: Installed,
  worker: WorkerOutcome,
  reconfigured: boolean,
  { cluster, command }: { readonly cluster: string; readonly command: string | null },
): string[] {
  const notices: string[] = [];
  if (worker.supervised_by === null) {
    notices.push(`nobody starts the worker again when it ends or ${host.hostname} boots${command === null ? "" : `: ${command}`}`);
  }
  if (worker.state === "kept" && reconfigured) {
    notices.push(
      `the worker runs with the configuration that it began with: clio-relay cluster restart-endpoint-service --cluster ${cluster}, or worker stop and start there`,
    );
  }
  if (installed.launcher === "other") notices.push("~/.local/bin/clio-relay is something else, and was left alone");
  if (installed.launcher === "failed") notices.push("~/.local/bin/clio-relay could not be made");
  if (host.storage.network) {
    notices.push(
      `${host.storage.root} lies on a network file system (${host.storage.file_system}): the worker stays on ${host.hostname}, whichever login node answers`,
    );
  }
  return notices;
}

interface Taken<T> {
  readonly result: T;
  readonly changed: boolean;
  readonly detail: string;
}

/** Tells of each step, and keeps what it took. */
class Steps {
  readonly taken: BootstrapReport["steps"] = [];

  constructor(
    private readonly clock: Clock,
    private readonly onEvent: (event: BootstrapEvent) => void,
  ) {}

  begin(step: Step, detail: string): (changed: boolean, detail: string) => void {
    const began = this.clock.monotonic();
    this.onEvent({ type: "step", step, state: "begin", detail });
    return (changed, what) => {
      const outcome = changed ? "done" : "unchanged";
      this.taken.push({ step, outcome, took_ms: Math.round(this.clock.monotonic() - began), detail: what.slice(0, 1_024) });
      this.onEvent({ type: "step", step, state: outcome, detail: what });
    };
  }

  async take<T>(step: Step, work: () => Promise<Taken<T>>): Promise<T> {
    const end = this.begin(step, "");
    const { result, changed, detail } = await work();
    end(changed, detail);
    return result;
  }
}
