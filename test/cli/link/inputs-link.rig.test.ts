import { cutAtTheEnd } from "../cut-input.ts";

cutAtTheEnd(48 * 2 ** 20);
