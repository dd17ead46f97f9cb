import { describe, expect, test } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import * as v from "valibot";
import { ClusterEntry, type SshEntry } from "../../../src/config/cluster-entry.ts";
import { RelayError } from "../../../src/domain/errors.ts";
import { DIRECTIVES } from "../../../src/transport/ssh/config/directives.ts";
import { parseJump } from "../../../src/transport/ssh/config/jump.ts";
import { type ConfigContext, resolveRoute, resolveTarget } from "../../../src/transport/ssh/config/resolve.ts";
import { entryOf } from "../../../src/transport/ssh/request.ts";
import { requireComponent } from "../../runner/components.ts";
import { temporaryDirectories } from "../../runner/temporary.ts";
import { thisAccount } from "./this-account.ts";

const directory = temporaryDirectories();
const account = thisAccount();

/** A configuration in a directory of its own, read here; or by OpenSSH. */
function context(text: string, sshProgram: string | null = null): ConfigContext {
  const home = directory();
  const configFile = path.join(home, "config");
  fs.writeFileSync(configFile, text, { mode: 0o600 });
  return { account: { ...account, home }, sshProgram, configFile, variables: { PATH: process.env["PATH"] }, directory: home };
}

async function refusal(text: string, sshProgram: string | null = null, host = "login"): Promise<RelayError> {
  try {
    await resolveRoute({ host }, context(text, sshProgram));
  } catch (error) {
    if (error instanceof RelayError) return error;
    throw error;
  }
  throw new Error("it was taken");
}

describe("a demand that cannot be met is refused by name, file and line", () => {
  const demands: [string, string][] = [
    ["KnownHostsCommand /usr/bin/keys", "knownhostscommand"],
    ["RevokedHostKeys /etc/ssh/revoked", "revokedhostkeys"],
    ["VerifyHostKeyDNS yes", "verifyhostkeydns"],
    ["PKCS11Provider /usr/lib/p11.so", "pkcs11provider"],
    ["SecurityKeyProvider /usr/lib/sk.so", "securitykeyprovider"],
    ["CertificateFile ~/.ssh/cert.pub", "certificatefile"],
    ["BindInterface lo", "bindinterface"],
    ["ProxyUseFdpass yes", "proxyusefdpass"],
    ["Ciphers aes128-ctr", "ciphers"],
    ["KexAlgorithms sntrup761x25519-sha512@openssh.com", "kexalgorithms"],
    ["HostKeyAlgorithms ssh-ed25519-cert-v01@openssh.com", "hostkeyalgorithms"],
    ["PubkeyAcceptedAlgorithms sk-ssh-ed25519@openssh.com", "pubkeyacceptedalgorithms"],
  ];
  const readers = requireComponent("ssh") ? [null, "ssh"] : [null];
  test.each(readers.flatMap((reader) => demands.map(([line, directive]) => [reader ?? "here", line, directive, reader] as const)))(
    "read by %s: %s",
    async (_who, line, directive, reader) => {
      const error = await refusal(`Host login\n  Port 22\n  ${line}\n`, reader);
      expect(error.code).toBe("ssh_config_unsupported");
      expect(error.data["directive"]).toBe(directive);
      // OpenSSH itself says which value applies, but not from where; our own reading adds the line as far as it goes.
      expect(error.message).toContain("config, line 3");
      expect((await resolveTarget({ host: "other" }, context(`Host login\n  ${line}\n`, reader))).host).toBe("other");
    },
  );

  test("CanonicalizeHostname and Match exec need OpenSSH", async () => {
    expect((await refusal("CanonicalizeHostname yes\n")).code).toBe("ssh_config_unsupported");
    const exec = await refusal('Match exec "true"\n  Port 23\n');
    expect(exec.code).toBe("ssh_config_unsupported");
    expect(exec.data).toMatchObject({ directive: "match", line: 1 });
    // What stands before it has decided.
    const target = await resolveTarget({ host: "login" }, context('Match originalhost other exec "false"\n  Port 23\nHost *\n  Port 24\n'));
    expect(target.port).toBe(24);
  });

  test.if(requireComponent("ssh"))("Match exec is decided by OpenSSH where it is there", async () => {
    const target = await resolveTarget({ host: "login" }, context('Match exec "test -d /"\n  Port 23\n', "ssh"));
    expect(target.port).toBe(23);
  });

  test.if(requireComponent("ssh"))("a Match exec that hangs ends with its request", async () => {
    const controller = new AbortController();
    const asked = resolveTarget({ host: "login" }, { ...context('Match exec "sleep 300"\n  Port 23\n', "ssh"), signal: controller.signal });
    controller.abort(new Error("gone"));
    expect(await asked.catch((error: Error) => error.message)).toBe("gone");
  });
});

describe("what ssh would refuse is refused", () => {
  test.each<[string, string, string]>([
    ["an unknown directive", "Host login\nFrobnicate yes\n", "line 2"],
    ["an open quote", 'User "me\n', "line 1"],
    ["no argument", "Port\n", "line 1"],
    ["too many arguments", "Port 22 23\n", "line 1"],
    ["a port that is none", "Port 70000\n", "line 1"],
    ["a flag that is none", "BatchMode maybe\n", "line 1"],
    ["a token that is none", "IdentityFile ~/%z\n", "%z"],
    ["a variable that is not set", "IdentityFile ${NOT_SET_HERE}/key\n", "NOT_SET_HERE"],
    ["a Match without criteria", "Match\n", "line 1"],
    ["an unknown criterion's argument", "Match host\n", "line 1"],
  ])("%s", async (_what, text, part) => {
    const error = await refusal(text);
    expect(error.code).toBe("configuration_error");
    expect(error.message).toContain(part);
  });

  test("files that include themselves, are too large, or belong to others", async () => {
    const own = context("Host *\n");
    fs.writeFileSync(own.configFile!, `Include ${own.configFile}\n`);
    const looped = await resolveTarget({ host: "login" }, own).catch((error: RelayError) => error);
    expect(looped).toMatchObject({ code: "configuration_error" });
    fs.writeFileSync(own.configFile!, `#${"x".repeat(1024 * 1024)}\n`);
    expect(await resolveTarget({ host: "login" }, own).catch((error: RelayError) => error)).toMatchObject({ code: "configuration_error" });
    fs.writeFileSync(own.configFile!, "Port 23\n");
    fs.chmodSync(own.configFile!, 0o666);
    const open = await resolveTarget({ host: "login" }, own).catch((error: RelayError) => error);
    expect(open).toMatchObject({ code: "configuration_error", message: expect.stringContaining("written by others") });
  });

  test.each(["-oProxyCommand=x", "", "a b", "a;b", "$(x)", "a\nb", "x".repeat(300)])("a host called %j", async (host) => {
    for (const reader of [null, "ssh"]) expect((await refusal("", reader, host)).code).toBe("configuration_error");
  });
});

test("includes are found relative to ~/.ssh, by patterns and in order, and only where their block applies", async () => {
  const own = context("Host login\n  Include parts/*.conf\nHost other\n  Include parts/z.conf\nHost *\n  Port 24\n");
  const parts = path.join(own.account.home, ".ssh", "parts");
  fs.mkdirSync(parts, { recursive: true });
  fs.writeFileSync(path.join(parts, "b.conf"), "Port 25\nUser second\n");
  fs.writeFileSync(path.join(parts, "a.conf"), "User first\n");
  fs.writeFileSync(path.join(parts, ".hidden.conf"), "User hidden\n");
  expect(await resolveTarget({ host: "login" }, own)).toMatchObject({ user: "first", port: 25 });
  expect(await resolveTarget({ host: "else" }, own)).toMatchObject({ user: account.name, port: 24 });
});

test("a jump list is gone through as ssh does it: only its first host may have a jump of its own", async () => {
  const text = "Host a\n  ProxyJump z\nHost b\n  ProxyJump z\nHost login\n  ProxyJump me@a:33,b\nHost z\n  Port 99\n";
  const route = await resolveRoute({ host: "login" }, context(text));
  expect(route.map(({ host, port }) => `${host}:${port}`)).toEqual(["z:99", "a:33", "b:22", "login:22"]);
  expect(route[1]!.user).toBe("me");
});

test.each<[string, ReturnType<typeof parseJump>]>([
  ["host", { host: "host" }],
  ["me@host:22", { user: "me", host: "host", port: 22 }],
  ["me@realm@host", { user: "me@realm", host: "host" }],
  ["[::1]:2222", { host: "::1", port: 2222 }],
  ["ssh://me@host:33/", { user: "me", host: "host", port: 33 }],
])("a jump host %s", (text, named) => {
  expect(parseJump(text)).toEqual(named);
});

test.each<[string, { host: string; user?: string }]>([
  ["login.example.org", { host: "login.example.org" }],
  ["me@login", { host: "login", user: "me" }],
  ["me@realm.example@login", { host: "login", user: "me@realm.example" }],
  ["me@[fd00::1]", { host: "fd00::1", user: "me" }],
])("an entry for %s", (sshHost, named) => {
  const entry = v.parse(ClusterEntry, { name: "c", mode: "ssh", ssh_host: sshHost });
  expect(entryOf(entry as SshEntry)).toEqual({ cluster: "c", hostKeyPins: [], ...named });
});

test("every directive has one treatment, and ignored and refused ones have their reason", () => {
  expect(DIRECTIVES.size).toBeGreaterThan(100);
  for (const [name, treatment] of DIRECTIVES) {
    expect(name).toBe(name.toLowerCase());
    if (treatment.as === "ignored" || treatment.as === "refused") expect(treatment.because).not.toBe("");
  }
});
