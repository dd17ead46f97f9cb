import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { makeUser, must, type RigUser, removeUser, type Sshd, type SshdOptions, startSshd, userFile } from "./sshd.ts";

/** An sshd that asks for a password and then for a one-time code (RFC 6238) through PAM, at every connection. */
export class SecondFactorSshd implements AsyncDisposable {
  private constructor(
    readonly sshd: Sshd,
    readonly user: RigUser,
    readonly password: string,
    private readonly secret: string,
    private readonly remove: () => void,
  ) {}

  static async start(options: SshdOptions = {}): Promise<SecondFactorSshd> {
    const password = `pw-${crypto.randomUUID()}`;
    const user = makeUser({ password });
    const secret = base32(crypto.getRandomValues(new Uint8Array(20)));
    // Codes may be used again within their window, so that tests need not wait 30 s between two logins.
    userFile(user, ".google_authenticator", `${secret}\n" WINDOW_SIZE 5\n" TOTP_AUTH\n`, 0o400);
    // PAM's service is called like the program.
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), "clio-relay-2fa-"));
    const service = `clio-relay-rig-${user.name}`;
    const program = path.join(directory, service);
    fs.copyFileSync("/usr/sbin/sshd", program);
    fs.chmodSync(program, 0o755);
    const pam = `/etc/pam.d/${service}`;
    fs.writeFileSync(
      pam,
      [
        "auth required pam_unix.so",
        "auth required pam_google_authenticator.so",
        "account required pam_permit.so",
        "session required pam_permit.so",
        "",
      ].join("\n"),
    );
    const remove = (): void => {
      removeUser(user);
      fs.rmSync(pam, { force: true });
      fs.rmSync(directory, { recursive: true, force: true });
    };
    try {
      const config = [
        "UsePAM yes",
        "KbdInteractiveAuthentication yes",
        "PubkeyAuthentication no",
        "AuthenticationMethods keyboard-interactive",
      ];
      const sshd = await startSshd({ ...options, program, config: [...(options.config ?? []), ...config] });
      return new SecondFactorSshd(sshd, user, password, secret, remove);
    } catch (error) {
      remove();
      throw error;
    }
  }

  /** The one-time code of now. */
  code(): string {
    return must("oathtool", "--totp", "-b", this.secret).trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sshd[Symbol.asyncDispose]();
    this.remove();
  }
}

/** RFC 4648, section 6, without padding. */
function base32(bytes: Uint8Array): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return (bits.match(/.{5}/g) ?? []).map((five) => alphabet[Number.parseInt(five, 2)]).join("");
}
