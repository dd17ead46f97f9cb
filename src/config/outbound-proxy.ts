import type { Environment } from "./environment.ts";
import type { Settings } from "./settings.ts";

/** An environment in which the usual variables name the proxy of the setting, where there is one. Not for children: it may hold a password. */
export function withOutboundProxy(env: Environment, { outbound_proxy }: Pick<Settings, "outbound_proxy">): Environment {
  if (outbound_proxy === null) return env;
  const own = Object.fromEntries(["HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"].map((name) => [name, outbound_proxy]));
  return { ...env, variables: { ...env.variables, ...own } };
}
