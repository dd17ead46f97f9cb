import { version } from "../../package.json";

/** Replaced by build.ts; not there when the program runs from source. */
declare const CLIO_RELAY_COMMIT: string | undefined;

/** Version of this program, as semver. Also sent with every HTTP answer and written into records. */
export const VERSION: string = version;

/** The source that the executable was built from: a git commit, with `+changes` where the tree had some, or `unknown`. */
export const COMMIT: string = typeof CLIO_RELAY_COMMIT === "string" ? CLIO_RELAY_COMMIT : "source";
