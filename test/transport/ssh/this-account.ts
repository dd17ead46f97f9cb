import os from "node:os";
import { account } from "../../../src/execution/account.ts";
import type { Account } from "../../../src/transport/ssh/config/target.ts";

/** The account that the tests run under, as ssh sees it. */
export function thisAccount(): Account {
  const uid = process.getuid!();
  const { name, home } = account(uid);
  return { name, home, uid, hostname: os.hostname() };
}
