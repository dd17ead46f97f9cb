import path from "node:path";
import { ownKey } from "../own-key.ts";

/** This installation's private key, by which workers know it in sessions of their own; made at first use. @throws RelayError configuration_error */
export const desktopKey = (configDir: string): string => ownKey(path.join(configDir, "desktop-key"), "clio-relay desktop");
