import type { Environment } from "../../src/config/environment.ts";

/** An environment with nothing in it but what a test says. */
export const environment = (variables: Record<string, string> = {}, rest: Partial<Environment> = {}): Environment => ({
  variables,
  home: "/home/somebody",
  uid: process.getuid?.() ?? -1,
  platform: "linux",
  cwd: "/",
  temporary: "/tmp",
  ...rest,
});
