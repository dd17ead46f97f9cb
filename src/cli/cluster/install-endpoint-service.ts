import { EXIT, isRelayError, RelayError } from "../../domain/errors.ts";
import type { ServiceStatus } from "../../transport/service/status.ts";
import { printFields, printJson } from "../print/table.ts";
import { oneOf } from "../values.ts";
import { defineVerb, optionOr, refused, toggle } from "../verb.ts";
import { CAPACITY, capacityOf } from "../worker/capacity-options.ts";
import { withLoginNode } from "./login-node.ts";
import { NAMED, nameOf } from "./named.ts";
import { onHost } from "./on-host.ts";
import { serviceRows } from "./service-text.ts";

interface ServiceDone {
  readonly outcome: "ready" | "in-progress" | "not-started";
  readonly status: ServiceStatus;
  readonly notices: readonly string[];
}

/** What a script says of a host where users lack what the launcher needs. */
const LACKS: ReadonlySet<unknown> = new Set(["no_manager", "no_cron", "cron"]);

/** Where users have no service manager, or no cron, the whole line that does without. */
function withCommand(
  error: unknown,
  name: string,
  flags: {
    readonly concurrency: number | undefined;
    readonly "control-query-concurrency": number | undefined;
    readonly "kind-concurrency": readonly (readonly [kind: string, limit: number])[];
    readonly "clear-kind-concurrency": boolean;
    readonly "no-start": boolean;
  },
): unknown {
  if (!isRelayError(error) || !LACKS.has(error.data["refused"])) return error;
  const { concurrency, "control-query-concurrency": control, "kind-concurrency": kinds } = flags;
  const options = [
    ...(concurrency === undefined ? [] : [`--concurrency ${concurrency}`]),
    ...(control === undefined ? [] : [`--control-query-concurrency ${control}`]),
    ...(flags["clear-kind-concurrency"] ? ["--clear-kind-concurrency"] : []),
    ...kinds.map(([kind, limit]) => `--kind-concurrency ${kind}=${limit}`),
    ...(flags["no-start"] ? ["--no-start"] : []),
  ];
  const line = ["clio-relay cluster install-endpoint-service", name, ...options, "--launcher setsid"].join(" ");
  return new RelayError(error.code, error.message, error.data, line, { cause: error });
}

export const verb = defineVerb({
  summary: "Have a service keep a cluster's worker running",
  details:
    "A unit of the user's systemd, which stays when nobody is logged in only where the user lingers (loginctl enable-linger): without that nothing is written. " +
    "Where users have no systemd, --launcher setsid starts the worker again until the next boot, --launcher cron after it, too, where a cron runs. Another launcher comes after cluster remove-endpoint-service. A worker that runs without the " +
    "service is drained and replaced; its jobs go on. Capacity that is given becomes part of the cluster's entry.",
  positionals: NAMED.positionals,
  flags: {
    ...NAMED.flags,
    ...CAPACITY,
    "clear-kind-concurrency": toggle("No limits by kind any more"),
    start: toggle("Start it now, as without this option"),
    "no-start": toggle("Do not start it now"),
    enable: toggle("Start it with the machine, as without this option"),
    "no-enable": toggle("Do not start it with the machine"),
    launcher: optionOr(oneOf("systemd", "setsid", "cron"), "systemd" as const, "What keeps it running"),
    "require-persistent": toggle("Only where the user lingers, as without this option"),
    "allow-login-scoped": toggle("Also where it ends with the user's last session"),
    "ssh-host": refused("it is part of the cluster's entry"),
  },
  examples: [
    [
      "cluster install-endpoint-service my-cluster --concurrency 4 --kind-concurrency command=2",
      "three jobs at a time (one slot is for control queries), two of them commands",
    ],
    ["cluster install-endpoint-service my-cluster --launcher cron", "on a host whose users have no systemd"],
  ],
  async run(call) {
    const { flags, args, io, json, relay } = call;
    const name = nameOf(args, flags);
    for (const [one, other] of [
      ["start", "no-start"],
      ["enable", "no-enable"],
      ["require-persistent", "allow-login-scoped"],
    ] as const) {
      if (flags[one] && flags[other]) throw new RelayError("usage", `--${one} and --${other} exclude each other`);
    }
    await relay.clusterEntry(name);
    const { before: entry, after } = await relay.desktop.changeCluster(name, (known) => {
      const reached = withLoginNode(name, known);
      const before = reached.worker_capacity;
      const capacity = flags["clear-kind-concurrency"] ? { ...before, kind_concurrency: {} } : before;
      return { ...reached, worker_capacity: capacityOf(capacity, flags) };
    });
    const done = await onHost<"service-install", ServiceDone>(call, name, {
      task: "service-install",
      command: "cluster install-endpoint-service",
      options: {
        launcher: flags.launcher,
        start: !flags["no-start"],
        enable: !flags["no-enable"],
        allow_login_scoped: flags["allow-login-scoped"],
      },
    }).catch(async (error: unknown) => {
      // What was asked for belongs to the service that did not come about.
      await relay.desktop.changeCluster(name, (known) => {
        if (known === null || entry === null) throw error;
        const same = Bun.deepEquals(known.worker_capacity, after.worker_capacity);
        return same ? { ...known, worker_capacity: entry.worker_capacity } : known;
      });
      throw withCommand(error, name, flags);
    });
    if (json) await printJson(io.stdout, done);
    else await printFields(io.stdout, serviceRows(done.status));
    if (done.status.persistence === "login-scoped") {
      await io.stderr.write(`warning: the worker of ${name} ends with the user's last session on ${done.status.hostname}\n`);
    } else if (!json) {
      for (const notice of done.notices) await io.stderr.write(`notice: ${notice}\n`);
    }
    return done.outcome === "in-progress" ? EXIT.notFinished : EXIT.ok;
  },
});
