/** What a server has said so far about who may come in (RFC 4252, section 5.1). */
export interface AuthenticationState {
  /** Methods that can continue, in the server's words; null before the server was asked. */
  readonly methods: readonly string[] | null;
  /** Whether the last method was accepted and another one is needed besides. */
  readonly partialSuccess: boolean;
}

/** One round of questions of a server (RFC 4256, section 3.2). Texts are the server's own and may hold control characters. */
export interface Questions {
  readonly name: string;
  readonly instructions: string;
  readonly prompts: readonly {
    readonly text: string;
    /** Whether the answer may be shown while it is typed. */
    readonly echo: boolean;
  }[];
}

/** Somebody who signs with a key that this process does not have. */
export interface Signer {
  /** The public key in the format of RFC 4253, section 6.6. */
  readonly publicKey: Buffer;
  /** The signature over `data` as the key type has it: raw for ed25519, ASN.1 for ECDSA, PKCS #1 for RSA. Null: pass this key over. */
  sign(data: Buffer, hash: "sha256" | "sha512" | undefined): Promise<Buffer | null>;
}

/** One attempt at authentication. */
export type AuthenticationStep =
  /** Ask which methods there are; succeeds where none is needed. */
  | { readonly method: "none" }
  /** Every key of the agent at a socket, or those of `only`, public keys in the format of RFC 4253, section 6.6. */
  | { readonly method: "publickey"; readonly agent: string; readonly only?: readonly Buffer[] }
  /** A private key in any format that ssh-keygen(1) writes. */
  | { readonly method: "publickey"; readonly key: string; readonly passphrase?: string }
  | { readonly method: "publickey"; readonly signer: Signer }
  /** One answer per prompt, or null to give up. A server may ask several rounds. */
  | { readonly method: "keyboard-interactive"; readonly answer: (questions: Questions) => Promise<readonly string[] | null> }
  | { readonly method: "password"; readonly password: string };

/**
 * Asked before the first attempt and after each that did not let us in: the next attempt, or null when there is nothing left to try.
 * What it rejects with ends the session with that error.
 */
export type Authenticate = (state: AuthenticationState) => AuthenticationStep | null | Promise<AuthenticationStep | null>;

/**
 * Decides over a server's public key, in the format of RFC 4253, section 6.6. It returns true or false, or returns undefined and calls
 * `answer` later, with a reason where it refuses. Nothing but exactly true accepts: not a Promise, not another truthy value. When it throws, that is
 * a refusal, and a RelayError thrown is the reason.
 */
export type VerifyHostKey = (key: Buffer, answer: (accepted: boolean, reason?: Error) => void) => boolean | undefined;
