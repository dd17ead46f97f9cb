import path from "node:path";
import { RelayError } from "../../../domain/errors.ts";
import type { Account } from "./target.ts";

/** What the tokens of ssh_config(5), TOKENS, stand for. */
export interface TokenValues {
  /** %n: the host as it was named. */
  readonly named: string;
  /** %h: the host's name after HostName. */
  readonly hostName: string;
  readonly port: number;
  /** %r */
  readonly user: string;
  /** %k: HostKeyAlias, or %n. */
  readonly keyAlias: string;
  readonly account: Account;
}

const sha1 = (text: string): string => new Bun.CryptoHasher("sha1").update(text).digest("hex");

function tokenValue(token: string, of: TokenValues): string | undefined {
  const { account } = of;
  switch (token) {
    case "%":
      return "%";
    case "h":
      return of.hostName;
    case "n":
      return of.named;
    case "p":
      return String(of.port);
    case "r":
      return of.user;
    case "k":
      return of.keyAlias;
    case "u":
      return account.name;
    case "d":
      return account.home;
    case "i":
      return String(account.uid);
    case "l":
      return account.hostname;
    case "L":
      return account.hostname.split(".", 1)[0]!;
    case "C":
      return sha1(`${account.hostname}${of.hostName}${of.port}${of.user}`);
    default:
      return undefined;
  }
}

const invalid = (text: string, why: string): RelayError =>
  new RelayError("configuration_error", `the ssh configuration has ${JSON.stringify(text.slice(0, 200))}, but ${why}`);

/**
 * Replace percent tokens, those in `allowed` only.
 *
 * @throws RelayError configuration_error for any other token
 */
export function expandTokens(text: string, values: TokenValues, allowed = "%hnprkudilLC"): string {
  return text.replace(/%(.?)/g, (whole, token: string) => {
    const value = allowed.includes(token) && token !== "" ? tokenValue(token, values) : undefined;
    if (value === undefined) throw invalid(text, `${whole} means nothing there`);
    return value;
  });
}

/** Replace `${NAME}` by variables. @throws RelayError configuration_error for one that is not set */
export function expandVariables(text: string, variables: Readonly<Record<string, string | undefined>>): string {
  return text.replace(/\$\{([^}]*)\}/g, (_whole, name: string) => {
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (value === undefined || value === "") throw invalid(text, `the variable ${name.slice(0, 100)} is not set`);
    return value;
  });
}

/** `~` and `~/…` become the home directory; `~name` is left for the caller to refuse. */
export function expandHome(text: string, account: Account): string {
  if (text === "~") return account.home;
  if (text.startsWith("~/")) return path.join(account.home, text.slice(2));
  if (text === `~${account.name}` || text.startsWith(`~${account.name}/`))
    return path.join(account.home, text.slice(account.name.length + 2));
  if (text.startsWith("~")) throw invalid(text, "the homes of other users are not looked up");
  return text;
}
