import { afterAll, beforeAll, expect, test } from "bun:test";
import { freePort } from "../../rigs/free-port.ts";
import { makeKey } from "../../rigs/sshd.ts";
import { describeWith } from "../../runner/components.ts";
import { temporaryDirectory } from "../../runner/temporary.ts";
import { FarSite, type SshDeskOptions } from "../ssh-desk.ts";

/** Who is not let in, or does not get that far, is told what to do about it. */
describeWith(["sshd", "ssh"], "a login that fails", () => {
  const files = temporaryDirectory();
  let site: FarSite;

  beforeAll(async () => {
    site = await FarSite.start();
  });
  afterAll(async () => {
    await site[Symbol.asyncDispose]();
    files[Symbol.dispose]();
  });

  /** What a command that needs the host says. */
  async function told(client: string, options: Partial<SshDeskOptions>) {
    await using relay = await site.desk(options);
    await relay.ok("cluster", "add", "--name", "far", "--ssh-client", client);
    const { code, stderr } = await relay.run(["connect", "far", "--no-input"]);
    const [, message = "", reason = "", hint = ""] = /^error: (.*) \[(\w+)\]\nhint: (.*)\n$/m.exec(stderr) ?? ["", stderr];
    return { code, reason, hint, message, config: relay.environment["CLIO_RELAY_SSH_CONFIG"] };
  }

  test.each(["builtin", "openssh"])("for want of the right key, or of anybody there; with the client %s", async (client) => {
    const refused = await told(client, { key: makeKey(files.path) });
    expect([refused.code, refused.reason]).toEqual([4, "authentication_failed"]);
    expect(refused.hint).toBe(
      client === "builtin"
        ? `ssh -F ${refused.config} login shows whether OpenSSH is let in; where it is: clio-relay cluster add far --ssh-client openssh`
        : `ssh -v -F ${refused.config} login shows what OpenSSH tries; the account may want another key, user, password or code`,
    );
    const { host } = site.sshd;
    const nobody = await told(client, { sshd: { host, port: await freePort(), knownLine: () => site.sshd.knownLine() } });
    expect([nobody.code, nobody.reason]).toEqual([5, "host_unreachable"]);
    expect(nobody.hint).toStartWith(`ssh -F ${nobody.config} login shows whether ssh reaches it: `);
  });

  test("for a directive that cannot be honoured, or a certificate authority: the other client is named by its command", async () => {
    const certificate = await told("builtin", { more: ["CertificateFile /none-cert.pub"] });
    expect([certificate.code, certificate.reason]).toEqual([1, "ssh_config_unsupported"]);
    expect(certificate.message).toEndWith(", line 1, sets certificatefile: certificates of users are not supported");
    const other = "clio-relay cluster add far --ssh-client openssh, where ssh is installed; or ";
    expect(certificate.hint).toBe(`${other}leave it out for this host`);
    const authority = await told("builtin", { known: `@cert-authority ${site.sshd.knownLine()}` });
    expect([authority.code, authority.reason]).toEqual([1, "ssh_config_unsupported"]);
    expect(authority.hint).toBe(`${other}add the host's own key to known_hosts`);
  });

  test("for what ssh makes of its configuration: its words are in one line", async () => {
    const unknown = await told("builtin", { more: ["NoSuchOption 1", "NorThis 2"] });
    expect([unknown.code, unknown.reason, unknown.message]).toEqual([
      2,
      "configuration_error",
      expect.stringMatching(/: line 1: .*; .*: line 2: .*; .*2 bad configuration options$/),
    ]);
    expect(unknown.hint).toBe(
      `correct it there: ssh -G -F ${unknown.config} login shows what ssh makes of it; CLIO_RELAY_SSH_CONFIG=FILE has another one read`,
    );
    const variable = await told("openssh", { key: "$" + "{CLIO_RELAY_NOT_SET}/key" });
    expect([variable.code, variable.reason]).toEqual([5, "link_bringup_failed"]);
    expect(variable.message).not.toContain("\\");
    expect(variable.hint).toBe(`ssh -v -F ${variable.config} login shows what OpenSSH tries`);
  });
});
