import * as v from "valibot";
import { Sha256 } from "../../domain/primitives.ts";

/** Where a listener on loopback proves who it is; asked without a token. */
export const IDENTITY_PATH = "/identity";

const SCHEMA = "clio-relay.desktop-identity.v1";

/** 256 random bits of the client's, as 64 hexadecimal digits. */
const Nonce = Sha256;

export const IdentityQuery = v.strictObject({ nonce: Nonce });
export const Identity = v.strictObject({ schema_version: v.literal(SCHEMA), nonce: Nonce, hmac_sha256: Sha256 });
export type Identity = v.InferOutput<typeof Identity>;

/** What proves that somebody has a token. */
export interface Secret {
  readonly token: string;
  /** Where the listener is, as `address:port`: a proof that was had from another port is of no use. */
  readonly host: string;
}

/** The answer to a nonce: HMAC-SHA256 (RFC 2104) with the token as its key, over schema, host and nonce, a line each. */
export const identityOf = ({ token, host }: Secret, nonce: string): Identity => ({
  schema_version: SCHEMA,
  nonce,
  hmac_sha256: new Bun.CryptoHasher("sha256", token).update(`${SCHEMA}\n${host}\n${nonce}\n`).digest("hex"),
});
