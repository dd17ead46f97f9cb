import { type ParseArgsConfig, parseArgs } from "node:util";

/** What parseArgs reads from this process's arguments; whatever they have that is not declared ends the process with 2, and is said in one line. */
export function optionsOf<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    if (!(error instanceof TypeError && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS_"))) throw error;
    console.error(`${error.message}\n--help lists what there is`);
    process.exit(2);
  }
}
