import { cutAtTheEnd } from "../cli/cut-input.ts";
import { scaled } from "../runner/soak.ts";

/** All of it is 2 GiB. */
cutAtTheEnd(scaled(2_048, 64) * 2 ** 20, console.log);
