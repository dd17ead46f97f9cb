import { OpenSSHAgent, type ParsedKey } from "ssh2";

const WITHIN_MS = 10_000;

/**
 * The public keys that an agent has, in its order, in the format of RFC 4253, section 6.6; types that are not supported are left out.
 *
 * @throws Error when the agent does not answer
 */
export function agentKeys(socket: string): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer within ${WITHIN_MS} ms`)), WITHIN_MS);
    new OpenSSHAgent(socket).getIdentities((error, keys) => {
      clearTimeout(timer);
      if (error) reject(error);
      else resolve(((keys ?? []) as ParsedKey[]).map((key) => Buffer.from(key.getPublicSSH())));
    });
  });
}
