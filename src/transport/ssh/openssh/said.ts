import type { ErrorCode } from "../../../domain/errors.ts";
import type { Prompt } from "../prompt.ts";

/**
 * What ssh(1) says. All its own failures have one exit status, 255, and it tells an SSH_ASKPASS program of the kind of a question only where nothing is to be typed
 * (SSH_ASKPASS_PROMPT): these texts are the one place where it says more. They are fixed in the source of OpenSSH that stands beside each, the same from 7.4 to 10.0,
 * and not translated. Servers and other programs can say the same; no more than the name of a failure follows from it.
 */
const FAILURES: readonly (readonly [said: RegExp, code: ErrorCode])[] = [
  // sshconnect.c, warn_changed_key
  [/^@ +WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! +@$/m, "host_key_changed"],
  // sshconnect.c, check_host_key
  [/^@ +WARNING: REVOKED HOST KEY DETECTED! +@$/m, "host_key_refused"],
  // sshconnect.c, ssh_login and verify_host_key: whatever the reason
  [/^Host key verification failed\.$/m, "host_key_refused"],
  // sshconnect2.c, ssh_userauth2: user@host and the methods that the server takes
  [/^\S+: Permission denied \(\S*\)\.$/m, "authentication_failed"],
  // auth.c of the server, auth_maxtries_exceeded, as packet.c shows it
  [/^Received disconnect from .*: Too many authentication failures$/m, "authentication_failed"],
  // sshconnect.c, ssh_connect_direct
  [/^ssh: connect to host .+ port .+: /m, "host_unreachable"],
  // ssh.c, resolve_host
  [/^ssh: Could not resolve hostname .+: /m, "host_unreachable"],
];

const QUESTIONS: readonly (readonly [asked: RegExp, kind: Prompt["kind"]])[] = [
  // sshconnect2.c, load_identity_file
  [/^Enter passphrase for key '/, "passphrase"],
  // sshconnect.c, check_host_key and confirm
  [/\(yes\/no(?:\/\[fingerprint\])?\)\? $|^Please type 'yes'/, "host_key"],
  // sshconnect2.c, userauth_passwd
  [/^\S+'s password: $/, "password"],
];

/** Why ssh ended; null where it does not say so. @param stderr with line feeds */
export const failureSaid = (stderr: string): ErrorCode | null => FAILURES.find(([said]) => said.test(stderr))?.[1] ?? null;

/** What kind of question it is. One that a server asks may look like another. */
export const questionKind = (prompt: string): Prompt["kind"] =>
  QUESTIONS.find(([asked]) => asked.test(prompt))?.[1] ?? "keyboard_interactive";
