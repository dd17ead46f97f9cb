import { clusterName } from "./values.ts";
import { option } from "./verb.ts";

/** `--cluster`, where a verb works on one. */
export const CLUSTER = option(clusterName, "The cluster; needed only where there are several, and no id tells which", "c");
