import * as v from "valibot";
import { LinkStatus } from "../../api/desktop/link-views.ts";
import { DesktopStatus } from "../../api/desktop/views.ts";
import { SETTINGS } from "../../config/settings.ts";
import { Count, Id, looseText, recordOf, text } from "../../domain/primitives.ts";
import { InstalledFrp } from "../../transport/frp/programs.ts";

const Path = text(4_096);
const Pid = v.nullable(Count);

export const Version = v.strictObject({ version: text(128), commit: text(128), queue_schema: Count });
export const CompletionScript = v.strictObject({ shell: v.picklist(["bash", "zsh", "fish"]), script: text(64 * 1024) });

export const Initialized = v.strictObject({
  core: Path,
  spool: Path,
  /** Where the registry is kept. */
  clusters: Path,
  cluster_names: v.array(Id),
  /** Whether anything was made. */
  changed: v.boolean(),
  settings: recordOf(v.picklist(Object.keys(SETTINGS)), v.nullable(v.union([v.string(), v.number(), v.boolean()]))),
});

export const FrpInstalled = v.strictObject({
  ...InstalledFrp.entries,
  state: v.picklist(["installed", "kept"]),
  paths: v.strictObject({ frpc: Path, frps: v.nullable(Path) }),
  /** What was put besides into the directory that was named. */
  copies: v.array(Path),
});

export const DesktopStarted = v.strictObject({
  ...DesktopStatus.entries,
  /** Whether it was this command that started it. */
  started: v.boolean(),
});
export const DesktopStopped = v.strictObject({ state: v.picklist(["stopped", "not_running"]), pid: Pid });
export const DesktopWithLinks = v.strictObject({ ...DesktopStatus.entries, links: v.array(LinkStatus) });
/** A line that is not of the log's form is a message alone. */
export const LogLine = v.union([
  v.strictObject({ time: text(64), level: v.picklist(["info", "warn", "error"]), message: v.string() }),
  v.strictObject({ message: v.string() }),
]);

/** Of this machine, or of the host of a cluster elsewhere. */
export const WorkerStarted = v.union([
  v.strictObject({ cluster: Id, state: v.picklist(["started", "already_running"]), pid: Pid, log: Path }),
  v.strictObject({
    cluster: Id,
    /** `starting`: its service has it on its way. */
    state: v.picklist(["started", "starting", "already_running"]),
    pid: Pid,
    host: text(1_024),
    supervised_by: v.nullable(v.picklist(["systemd", "setsid", "cron"])),
  }),
]);
export const WorkerStopped = v.union([
  v.strictObject({ cluster: Id, state: v.picklist(["stopped", "not_running"]), pid: Pid }),
  v.strictObject({
    cluster: Id,
    state: v.picklist(["stopped", "not_running"]),
    pid: Pid,
    host: text(1_024),
    /** Services that would start it again, and are stopped with it. */
    stopped: v.array(looseText(1_024)),
  }),
]);

/** The file that frpc reads besides, on the machine where it runs: who vouches for the server; absent without TLS. */
const AUTHORITIES = { authorities: v.exactOptional(text(4_096)) } as const;

export const FrpConfiguration = v.union([
  /** Holds secrets. */
  v.strictObject({ configuration: v.string(), ...AUTHORITIES }),
  v.strictObject({ file: Path, ...AUTHORITIES }),
]);

const Step = v.strictObject({ step: text(64), ok: v.boolean(), took_ms: Count, detail: v.nullable(looseText(8_192)) });
const Milliseconds = v.pipe(v.number(), v.minValue(0));
export const TransportTest = v.strictObject({
  schema_version: v.literal("clio-relay.transport-test.v1"),
  cluster: text(128),
  transport: text(64),
  ok: v.boolean(),
  tried: v.array(Step),
  round_trip_ms: v.nullable(v.strictObject({ least: Milliseconds, median: Milliseconds, most: Milliseconds, count: Count })),
  throughput: v.nullable(v.strictObject({ bytes: Count, seconds: Milliseconds, bytes_per_second: Count })),
  failure: v.nullable(v.strictObject({ layer: text(64), reason: text(64), detail: looseText(8_192), fix: v.nullable(looseText(8_192)) })),
});

/** Where a relay-host listens. */
export const Listening = v.strictObject({
  listening: v.array(v.strictObject({ kind: v.picklist(["tls", "ws", "tcp"]), host: v.nullable(text(256)), port: Count })),
});
/** What was done, or with --dry-run would be written. */
export const RelayHostInstalled = v.union([
  v.strictObject({
    unit: text(128),
    unit_file: Path,
    token_file: Path,
    token: v.picklist(["kept", "written", "made"]),
    changed: v.boolean(),
    active: v.boolean(),
  }),
  v.strictObject({ unit_file: Path, token_file: Path, text: v.string() }),
]);
export const RelayHostUninstalled = v.strictObject({ unit: text(128), removed: v.array(Path), kept: v.array(Path) });
