import { RelayError } from "../../domain/errors.ts";
import { shellWord } from "../script/shell-word.ts";
import type { VerifyHostKey } from "../session/authentication.ts";
import { fingerprintOf, typeOf } from "../session/keys.ts";
import type { Target } from "./config/target.ts";
import type { KnownKey } from "./known-hosts/file.ts";
import { type HostNames, judge } from "./known-hosts/judge.ts";
import { rememberKey } from "./known-hosts/remember.ts";
import { ask, type Prompter } from "./prompt.ts";
import { rsaBits } from "./public-key.ts";

export interface HostKeyCheck {
  readonly target: Target;
  readonly prompter: Prompter;
  /** `SHA256:…` of the keys that the cluster's entry pins; where there is one, known_hosts is not asked. */
  readonly pins: readonly string[];
  /** Told what somebody should know and what stops nothing. */
  readonly notice: (text: string) => void;
}

/** How often an answer that is neither yes nor no is asked for again. */
const TRIES = 3;

/** Where a hop's keys are looked up. */
export function hostNames(target: Target): HostNames {
  const bare = target.hostKeyAlias === null && target.port !== 22 ? target.hostName : null;
  return { name: target.hostKeyName, bare, files: [...target.userKnownHostsFiles, ...target.globalKnownHostsFiles] };
}

/**
 * The verifier of one hop. It refuses with RelayError host_key_changed (a known key of that type, or a pin, says otherwise), host_key_refused
 * (revoked, unknown where that is not enough, or declined), ssh_config_unsupported (only a certificate authority is known), or what the prompter
 * throws.
 */
export function hostKeyVerifier(check: HostKeyCheck): VerifyHostKey {
  return (key, answer) => {
    decide(key, check).then(
      () => answer(true),
      (error: Error) => answer(false, error),
    );
    return undefined;
  };
}

async function decide(key: Buffer, check: HostKeyCheck): Promise<void> {
  const { target, pins } = check;
  const type = typeOf(key);
  const print = fingerprintOf(key);
  const data = { host: target.host, name: target.hostKeyName, key_type: type, fingerprint: print };
  if (type === "") throw new RelayError("host_key_refused", `${target.host} shows a key that is none`, data);
  const bits = type === "ssh-rsa" ? rsaBits(key) : null;
  if (bits !== null && bits < target.minRsaBits) {
    throw new RelayError(
      "host_key_refused",
      `${target.host} shows an RSA key of ${bits} bits; at least ${target.minRsaBits} are wanted`,
      data,
    );
  }
  if (pins.length > 0) {
    if (pins.includes(print)) return;
    throw new RelayError(
      "host_key_changed",
      `the key of ${target.host} is ${print}, and the cluster's entry pins ${pins.join(" or ")}`,
      { ...data, expected: pins },
      "ask the site whether its key has changed; then clio-relay cluster pin-target --ssh-host-key-sha256 …",
    );
  }
  const judgement = judge(key, hostNames(target));
  switch (judgement.kind) {
    case "known":
      return;
    case "revoked":
      throw new RelayError("host_key_refused", `the key ${print} of ${target.host} is marked as revoked in ${place(judgement.by)}`, data);
    case "changed":
      throw changed(target, type, print, judgement.by);
    case "certified":
      throw new RelayError(
        "ssh_config_unsupported",
        `${place(judgement.by)} trusts a certificate authority for ${target.host}; certificates of hosts are not supported`,
        { ...data, directive: "@cert-authority" },
      );
    case "new":
      await acceptNew(key, type, check);
  }
}

const place = ({ file, line }: KnownKey): string => `${file}, line ${line}`;
/** An argument for a shell, as it is meant, in a line that somebody may copy. */
export const quoted = (text: string): string => (/^[A-Za-z0-9_./:@%+=~-]+$/.test(text) ? text : shellWord(text));

function changed(target: Target, type: string, print: string, by: KnownKey): RelayError {
  const known = fingerprintOf(by.key);
  const command = `ssh-keygen -R ${quoted(target.hostKeyName)} -f ${quoted(by.file)}`;
  return new RelayError(
    "host_key_changed",
    `the ${type} key of ${target.host} is ${print}, and ${place(by)}, has ${by.type} ${known}: the server was set up anew, or this is another machine`,
    {
      host: target.host,
      name: target.hostKeyName,
      key_type: type,
      fingerprint: print,
      expected: [known],
      path: by.file,
      line: by.line,
      command,
    },
    `ask the site whether its key has changed; then ${command}`,
  );
}

async function acceptNew(key: Buffer, type: string, check: HostKeyCheck): Promise<void> {
  const { target, notice } = check;
  const print = fingerprintOf(key);
  const data = { host: target.host, name: target.hostKeyName, key_type: type, fingerprint: print };
  if (target.strictHostKeyChecking === "yes") {
    throw new RelayError("host_key_refused", `no key of ${target.host} is known, and StrictHostKeyChecking says that one must be`, data);
  }
  if (target.strictHostKeyChecking === "ask") await confirm(type, print, check);
  const file = target.userKnownHostsFiles[0];
  if (file === undefined || file === "/dev/null") return;
  try {
    await rememberKey(file, target.hostKeyName, type, key, target.hashKnownHosts);
  } catch (error) {
    notice(`the key of ${target.host} could not be added to ${file}: ${(error as Error).message}`);
  }
}

async function confirm(type: string, print: string, { target, prompter }: HostKeyCheck): Promise<void> {
  const where = target.hostName === target.host ? target.hostKeyName : `${target.host} (${target.hostKeyName})`;
  const message = `The key of ${where} is not known.\n${type} ${print}\n`;
  for (let left = TRIES; left > 0; left--) {
    const again = left === TRIES ? "" : "Please type yes, no, or the fingerprint.\n";
    const answer = await ask(prompter, {
      kind: "host_key",
      message: `${again}${message}Is it the right one (yes, no, or its fingerprint)? `,
      echo: true,
      host: `${target.user}@${target.host}`,
    });
    const said = answer.trim();
    if (said.toLowerCase() === "yes" || said === print) return;
    if (said.toLowerCase() === "no" || said.startsWith("SHA256:")) break;
  }
  throw new RelayError("host_key_refused", `the key ${print} of ${target.host} was not accepted`, {
    host: target.host,
    name: target.hostKeyName,
    key_type: type,
    fingerprint: print,
  });
}
