import path from "node:path";
import { ALLOWED_HOST, ALLOWED_ORIGIN, API_PORT, LISTEN_HOST } from "../../config/api-listener.ts";
import { takeApiToken } from "../../config/api-token.ts";
import { EXIT, RelayError } from "../../domain/errors.ts";
import { type Reader, text, whole } from "../values.ts";
import { defineVerb, ignored, list, option, optionOr, toggle } from "../verb.ts";
import { printListener } from "./listener-text.ts";

const matching = (label: string, form: string, pattern: RegExp): Reader<string> => ({
  label,
  form,
  read: (given) => (pattern.test(given) ? given : undefined),
});
const hostText = matching("HOST", "an address in digits, without brackets, or a name", LISTEN_HOST);
const allowedHost: Reader<string> = {
  label: "NAME[:PORT]",
  form: "what stands in a Host field: relay.example.edu, relay.example.edu:8443, [2001:db8::1]",
  read: (given) => (ALLOWED_HOST.test(given.toLowerCase()) ? given.toLowerCase() : undefined),
};
const origin = matching("ORIGIN", "an origin, in lower case and without a path: https://app.example.edu", ALLOWED_ORIGIN);

export const verb = defineVerb({
  summary: "Serve the API on TCP, from now on and after each start of the daemon",
  details:
    "Every request needs the token, which lies in a private file and is made where there is none; CLIO_RELAY_API_TOKEN becomes its content. Off loopback there is TLS, or --behind-proxy. " +
    "A listener with other options takes the place of the one that is there.",
  positionals: {},
  flags: {
    port: optionOr(whole(0, 65_535), API_PORT, "Port; 0 for one that is free, which is kept"),
    host: optionOr(hostText, "127.0.0.1", "Address to listen on"),
    "token-file": option(text("FILE"), "Private file with the token"),
    "tls-cert": option(text("FILE"), "Certificate chain in PEM"),
    "tls-key": option(text("FILE"), "Its private key in PEM"),
    "behind-proxy": toggle("Something before it speaks TLS, and nobody else comes to this port"),
    "allow-host": list(allowedHost, "What else may stand in a Host field"),
    "allow-origin": list(origin, "Whose pages may use the API"),
    "require-token": ignored("a token is always required", false),
  },
  examples: [
    ["api start", "on 127.0.0.1:8765"],
    ["api start --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --allow-host relay.example.edu", "for other machines"],
    ["api start --allow-origin https://app.example.edu", "for the pages of an application, too"],
  ],
  async run({ flags, io, json, relay }) {
    const file = (name: string | undefined): string | null => (name === undefined ? null : path.resolve(io.env.cwd, name));
    const [cert_file, key_file] = [file(flags["tls-cert"]), file(flags["tls-key"])];
    if ((cert_file === null) !== (key_file === null)) throw new RelayError("usage", "--tls-cert and --tls-key come together");
    const token_file = file(flags["token-file"]);
    takeApiToken(token_file ?? relay.paths.apiTokenFile, io.env);
    const status = await relay.desktop.startListener({
      host: flags.host,
      port: flags.port,
      token_file,
      tls: cert_file === null || key_file === null ? null : { cert_file, key_file },
      behind_proxy: flags["behind-proxy"],
      allow_hosts: [...flags["allow-host"]],
      allow_origins: [...flags["allow-origin"]],
    });
    await printListener(io, status, json);
    return EXIT.ok;
  },
});
