/** The text is in a variable, and no argument: others on the host can read arguments. */
const TEXT = "CLIO_RELAY_ENV_SETUP";
const BEHIND = `s=$${TEXT}; unset ${TEXT}; eval "$s"; exec "$@"`;

/** A command and its environment, for /bin/sh to run behind a cluster's setup text, whose output comes before the command's. */
export const behindSetup = (
  setup: string,
  argv: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
): { readonly argv: readonly [string, ...string[]]; readonly environment: Readonly<Record<string, string>> } => ({
  argv: ["/bin/sh", "-c", BEHIND, "sh", ...argv],
  environment: { ...environment, [TEXT]: setup },
});
