import path from "node:path";
import { relayHostTokens } from "../../config/relay-host-tokens.ts";
import type { Settings } from "../../config/settings.ts";
import { EXIT } from "../../domain/errors.ts";
import { journal } from "../../roles/relay-host/journal.ts";
import type { MeetingLimits } from "../../roles/relay-host/limits.ts";
import { RelayHost } from "../../roles/relay-host/relay-host.ts";
import { text } from "../values.ts";
import { defineVerb, option } from "../verb.ts";
import { entrances, LISTEN } from "./listen-options.ts";

export const verb = defineVerb({
  summary: "Join workers and desktops that dial out",
  details:
    "Stays in the foreground until TERM or Ctrl-C; then it sends away who waits, and ends what it joined when it is quiet, within 10 s. Nothing is written to disk, and nothing " +
    "of what it joins can be read by it. Whoever comes needs a token: CLIO_RELAY_HOST_TOKEN, or --token-file. The log goes to standard error, one JSON object a line. " +
    "/healthz and /metrics (with the token) are on the ports of --listen and --listen-ws.",
  positionals: {},
  flags: {
    ...LISTEN,
    "token-file": option(text("FILE"), "Private file with the tokens that are taken, one a line; two while one follows the other"),
  },
  examples: [
    [
      "relay-host serve --listen :443 --tls-cert cert.pem --tls-key key.pem --token-file token",
      "wss and tls, for everybody who has the token",
    ],
    [
      "relay-host serve --listen-ws 127.0.0.1:8080 --edge-address-header X-Forwarded-For --token-file token",
      "behind an HTTPS edge on this machine",
    ],
    ["relay-host serve --listen-tcp :7000 --token-file token", "where there is no TLS: the token is proven, and not sent"],
  ],
  async run({ flags, io, json, relay }) {
    const file = flags["token-file"];
    const tokens = relayHostTokens(io.env, file === undefined ? null : path.resolve(io.env.cwd, file));
    const wanted = entrances(flags, io.env.cwd);
    const stop = Promise.withResolvers<void>();
    const off = [io.onSignal("SIGTERM", stop.resolve), io.onSignal("SIGINT", stop.resolve)];
    const host = new RelayHost({
      tokens,
      names: flags.name,
      limits: limitsOf(relay.settings),
      edgeAddressHeader: flags["edge-address-header"] ?? null,
      clock: io.clock,
      journal: journal(io.clock, (line, omittedLine) => io.stderr.log(line, omittedLine)),
    });
    try {
      const listening = wanted.map((entrance) => ({ kind: entrance.kind, ...host.open(entrance) }));
      if (json) await io.stdout.write(`${JSON.stringify({ listening })}\n`);
      await stop.promise;
      await host.drain();
    } finally {
      host.close();
      for (const remove of off) remove();
    }
    return EXIT.ok;
  },
});

const limitsOf = (settings: Settings): MeetingLimits => ({
  connections: settings.relay_host_connections,
  connectionsPerAddress: settings.relay_host_connections_per_address,
  openingsPerAddress: settings.relay_host_openings_per_address,
  openingsPerKey: settings.relay_host_openings_per_key,
  workersPerToken: settings.relay_host_workers_per_token,
  workersPerAddress: settings.relay_host_workers_per_address,
  joinsPerAddress: settings.relay_host_joins_per_address,
  joinsPerToken: settings.relay_host_joins_per_token,
  joinsPerRoom: settings.relay_host_joins_per_room,
  joinsPerKey: settings.relay_host_joins_per_key,
});
