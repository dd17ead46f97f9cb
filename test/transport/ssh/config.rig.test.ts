import { expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { RelayError } from "../../../src/domain/errors.ts";
import { type ConfigContext, resolveTarget } from "../../../src/transport/ssh/config/resolve.ts";
import type { Target } from "../../../src/transport/ssh/config/target.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { thisAccount } from "./this-account.ts";

const account = thisAccount();
const variables = { PATH: process.env["PATH"], HOME: account.home, RELAY_DIR: "/srv/keys" };

const hosts = ["login", "login.example.org", "Node7", "a-b", "10.0.0.7"];
const pattern = fc.constantFrom("*", "login", "login*", "!login", "*.org", "node?", "Node?", "10.*", "!*.example.org", "a-b", "??????");
const value = fc.constantFrom("one", "two", "three");
const quoted = (text: string): fc.Arbitrary<string> => fc.constantFrom(text, `"${text}"`);
const file = fc
  .constantFrom(
    "~/.ssh/key",
    "%d/keys/%h",
    "/k/%n-%p-%r",
    "${RELAY_DIR}/%u",
    "/k/%%x",
    "~/%k/%l",
    "/k/%L-%i",
    "/k/%C",
    "/with\\ space/key",
    "none",
  )
  .chain((text) => (text.includes("\\") ? fc.constant(text) : quoted(text)));

const directive = fc.oneof(
  fc.tuple(fc.constantFrom("HostName", "hostname"), fc.constantFrom("%h.example.org", "Other.example.ORG", "10.1.2.3", "%%h", "%h")),
  fc.tuple(fc.constant("Port"), fc.constantFrom("22", "2222", "65535")),
  fc.tuple(fc.constantFrom("User", "USER"), value.chain(quoted)),
  fc.tuple(fc.constantFrom("IdentityFile", "identityfile"), file),
  fc.tuple(
    fc.constant("UserKnownHostsFile"),
    fc
      .array(
        file.filter((text) => !/\\|none/.test(text)),
        { minLength: 1, maxLength: 3 },
      )
      .map((list) => list.join(" ")),
  ),
  fc.tuple(fc.constant("GlobalKnownHostsFile"), fc.constantFrom("/etc/kh", "/etc/kh /etc/kh2")),
  fc.tuple(
    fc.constantFrom("IdentitiesOnly", "HashKnownHosts", "BatchMode", "PasswordAuthentication"),
    fc.constantFrom("yes", "no", "true", "false", "YES"),
  ),
  fc.tuple(fc.constantFrom("KbdInteractiveAuthentication", "ChallengeResponseAuthentication"), fc.constantFrom("yes", "no")),
  fc.tuple(fc.constant("PubkeyAuthentication"), fc.constantFrom("yes", "no", "unbound")),
  fc.tuple(fc.constant("IdentityAgent"), fc.constantFrom("none", "SSH_AUTH_SOCK", "$RELAY_DIR", "~/agent", "${RELAY_DIR}/%h.sock")),
  fc.tuple(fc.constant("StrictHostKeyChecking"), fc.constantFrom("yes", "no", "ask", "off", "accept-new")),
  fc.tuple(fc.constant("HostKeyAlias"), fc.constantFrom("Alias", "other")),
  fc.tuple(fc.constant("ProxyJump"), fc.constantFrom("none", "j1", "me@j1:2222,j2", "ssh://me@j3:22")),
  fc.tuple(fc.constant("ProxyCommand"), fc.constantFrom("none", "nc %h %p", 'exec nc "%h" %p # %r@%n', "nc -X '%%' %h")),
  fc.tuple(fc.constant("ConnectTimeout"), fc.constantFrom("none", "5", "1m30", "90s")),
  fc.tuple(fc.constant("AddressFamily"), fc.constantFrom("any", "inet", "inet6")),
  fc.tuple(fc.constant("BindAddress"), fc.constantFrom("127.0.0.1", "::1")),
  fc.tuple(
    fc.constant("PreferredAuthentications"),
    fc.constantFrom("password,publickey", "keyboard-interactive", "gssapi-with-mic,password"),
  ),
  fc.tuple(fc.constant("NumberOfPasswordPrompts"), fc.constantFrom("1", "5")),
  fc.tuple(fc.constantFrom("ControlMaster", "Compression", "ForwardAgent"), fc.constantFrom("yes", "no")),
  fc.tuple(fc.constant("RequestTTY"), fc.constant("force")),
  fc.tuple(fc.constant("LocalForward"), fc.constant("8080 localhost:80")),
);
const setting = fc
  .tuple(directive, fc.constantFrom(" ", "=", " = ", "\t"), fc.constantFrom("", "  "), fc.constantFrom("", "  # a remark"))
  .map(([[name, text], between, before, after]) => `${before}${name}${between}${text}${name.startsWith("Proxy") ? "" : after}`);
const criterion = fc.oneof(
  fc.tuple(fc.constantFrom("host", "originalhost", "!host", "Host"), fc.constantFrom("login", "*.org,!login*", "LOGIN*", '"node?"')),
  fc.tuple(fc.constantFrom("user", "!user", "localuser"), fc.constantFrom("root", "one,two", "*")),
);
const block = fc.oneof(
  { weight: 3, arbitrary: fc.array(pattern, { minLength: 1, maxLength: 3 }).map((list) => `Host ${list.join(" ")}`) },
  {
    weight: 2,
    arbitrary: fc.array(criterion, { minLength: 1, maxLength: 2 }).map((list) => `Match ${list.map((pair) => pair.join(" ")).join(" ")}`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "Match all",
      "Match final",
      "Match final host *.org",
      "Match !final",
      "Match canonical all",
      "match originalhost=login",
    ),
  },
);
const line = fc.oneof(
  { weight: 8, arbitrary: setting },
  { weight: 3, arbitrary: block },
  { weight: 1, arbitrary: fc.constantFrom("", "# remark", "IgnoreUnknown Odd*", "OddOne 5") },
);
const lines = fc.array(line, { maxLength: 14 });

/** What both ways give, comparable: the outcome, or the code of the failure. */
async function outcome(host: string, context: ConfigContext): Promise<Target | string> {
  try {
    return await resolveTarget({ host }, context);
  } catch (error) {
    if (error instanceof RelayError) return error.code;
    throw error;
  }
}

describeWith("ssh", "the configuration as ssh -G has it, and as it is read here", () => {
  test("come to the same", async () => {
    using directory = temporaryDirectory();
    const config = path.join(directory.path, "config");
    const included = ["x.conf", "y.conf"].map((name) => path.join(directory.path, name));
    let usable = 0;
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...hosts), lines, lines, lines, fc.nat(14), fc.boolean(), async (host, main, x, y, at, glob) => {
        const include = `Include ${glob ? `${directory.path}/*.conf` : included.map((name) => `"${name}"`).join(" ")}`;
        fs.writeFileSync(config, [...main.slice(0, at), include, ...main.slice(at), ""].join("\n"), { mode: 0o600 });
        fs.writeFileSync(included[0]!, x.join("\n"), { mode: 0o600 });
        fs.writeFileSync(included[1]!, y.join("\n"), { mode: 0o600 });
        const context = { account, configFile: config, variables, directory: directory.path };
        const theirs = await outcome(host, { ...context, sshProgram: "ssh" });
        const ours = await outcome(host, { ...context, sshProgram: null });
        if (typeof theirs !== "string") usable++;
        expect(ours, fs.readFileSync(config, "utf8")).toEqual(theirs);
      }),
      { numRuns: 300 },
    );
    // A corpus that both refuse would compare nothing.
    expect(usable).toBeGreaterThan(100);
  });
});
