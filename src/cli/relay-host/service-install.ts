import path from "node:path";
import { relayHostTokens } from "../../config/relay-host-tokens.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { type InstallOptions, installRelayHost, TOKEN_FILE, UNIT_FILE, unitText } from "../../roles/relay-host/service.ts";
import type { ListenAddress } from "../../roles/sockets/listener.ts";
import { printFields, printJson } from "../print/table.ts";
import { text } from "../values.ts";
import { defineVerb, type FlagValues, option, toggle } from "../verb.ts";
import { entrances, LISTEN } from "./listen-options.ts";
import { commandsOf } from "./run-command.ts";

const FLAGS = {
  ...LISTEN,
  "token-file": option(text("FILE"), "Private file with the tokens that are taken, one a line; they are copied"),
  "dry-run": toggle("Print the unit, and change nothing"),
};

export const verb = defineVerb({
  summary: "Have this machine's systemd keep a relay-host running",
  details:
    `Needs root. Writes ${UNIT_FILE}, whose service has a user made for it, may write nowhere, and gets token and key as credentials, and ${TOKEN_FILE} (mode 0600): with the tokens of ` +
    "--token-file, or that of CLIO_RELAY_HOST_TOKEN, else it stays as it is, or one is made. Options are those of relay-host serve. After a certificate has been " +
    `renewed: systemctl restart clio-relay-relay-host.`,
  positionals: {},
  flags: FLAGS,
  examples: [
    [
      "relay-host service install --listen :443 --tls-cert /etc/ssl/relay.pem --tls-key /etc/ssl/private/relay.key",
      "wss and tls, from boot on",
    ],
    ["relay-host service install --listen-ws 127.0.0.1:8080 --dry-run", "what would be written"],
  ],
  async run({ flags, io, json }) {
    const options = unitOptions(flags, io.env.cwd, io.self, tokensOf(flags["token-file"], io.env));
    if (flags["dry-run"]) {
      const unit = unitText(options);
      if (json) await printJson(io.stdout, { unit_file: UNIT_FILE, token_file: TOKEN_FILE, text: unit });
      else await io.stdout.write(unit);
      return EXIT.ok;
    }
    if (io.env.uid !== 0)
      throw new RelayError(
        "usage",
        "a unit of the machine is root's to write; --dry-run prints it",
        {},
        "sudo clio-relay relay-host service install …",
      );
    const done = await installRelayHost(options, commandsOf(io.env));
    if (json) await printJson(io.stdout, done);
    else {
      await printFields(io.stdout, [
        ["unit", done.unit_file],
        ["token", `${done.token_file} (${done.token})`],
        ["state", done.active ? "active" : "not active yet: journalctl -u clio-relay-relay-host"],
      ]);
    }
    return done.active ? EXIT.ok : EXIT.failed;
  },
});

/** The tokens that are given; null where none are. */
function tokensOf(file: string | undefined, env: Parameters<typeof relayHostTokens>[0]): string[] | null {
  if (file === undefined && (env.variables["CLIO_RELAY_HOST_TOKEN"] ?? "") === "") return null;
  return relayHostTokens(env, file === undefined ? null : path.resolve(env.cwd, file));
}

function unitOptions(flags: FlagValues<typeof FLAGS>, cwd: string, self: readonly string[], tokens: string[] | null): InstallOptions {
  // What serve would refuse is refused here.
  entrances(flags, cwd);
  const [executable] = self;
  if (self.length !== 1 || executable === undefined) {
    throw new RelayError(
      "configuration_error",
      "a service runs the executable, and this is a program of the runtime",
      {},
      "npm run build, then dist/clio-relay",
    );
  }
  const { listen, "listen-ws": ws, "listen-tcp": tcp, name, "edge-address-header": header } = flags;
  const [cert, key] = [flags["tls-cert"], flags["tls-key"]];
  const words = (option: string, addresses: readonly ListenAddress[]): string[] =>
    addresses.flatMap((address) => [option, spelled(address)]);
  return {
    executable,
    listen: [
      ...words("--listen", listen),
      ...words("--listen-ws", ws),
      ...words("--listen-tcp", tcp),
      ...name.flatMap((one) => ["--name", one]),
      ...(header === undefined ? [] : ["--edge-address-header", header]),
    ],
    tls: cert === undefined || key === undefined ? null : { cert: path.resolve(cwd, cert), key: path.resolve(cwd, key) },
    lowPort: [...listen, ...ws, ...tcp].some(({ port }) => port < 1024),
    tokens,
  };
}

const spelled = ({ host, port }: ListenAddress): string => `${host === null ? "" : host.includes(":") ? `[${host}]` : host}:${port}`;
