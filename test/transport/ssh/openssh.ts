import { expect } from "bun:test";
import fs from "node:fs";
import path from "node:path";
import type { RelayError } from "../../../src/domain/errors.ts";
import type { HeldConnection } from "../../../src/transport/ssh/held.ts";
import { connectOpenSsh } from "../../../src/transport/ssh/openssh/connect.ts";
import type { Prompter } from "../../../src/transport/ssh/prompt.ts";
import type { SshRequest } from "../../../src/transport/ssh/request.ts";
import type { Sshd } from "../../rigs/sshd.ts";
import { type Desk, output } from "./desk.ts";

const ASKPASS = [process.execPath, path.join(import.meta.dir, "../../../src/main.ts"), "__askpass"];

/** A connection of this desk, held by one ssh process. */
export function start(desk: Desk, prompter: Prompter, more: Partial<SshRequest> = {}): Promise<HeldConnection> {
  return connectOpenSsh(desk.request(prompter, more), { askpass: ASKPASS, privateDirectory: desk.directory });
}

/** Who it is there. */
export async function whoIs(connection: HeldConnection): Promise<string> {
  return (await output(connection, 'echo "$(id -un) $(tty)"')).trim();
}

/** Start, ask who it is there, end. */
export async function exchange(desk: Desk, prompter: Prompter, more: Partial<SshRequest> = {}): Promise<string> {
  const connection = await start(desk, prompter, more);
  try {
    return await whoIs(connection);
  } finally {
    await end(connection);
  }
}

/** Close it, and have it closed in order. */
export async function end({ session }: HeldConnection): Promise<void> {
  session.close();
  expect(await session.closed).toBeNull();
}

/** The code that the work fails with, or `done`. */
export const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "done",
    (error: RelayError) => error.code,
  );

/** What is left of private files once everything is over. */
export const leftovers = (desk: Desk): string[] => fs.readdirSync(desk.directory).filter((name) => name.startsWith("ssh-"));

/** The lines of an ssh configuration by which `login` is the sshd, for a user of this name. */
export const hostLines = (sshd: Sshd, name: string, ...lines: string[]): string[] => [
  "Host login",
  `  HostName ${sshd.host}`,
  `  Port ${sshd.port}`,
  `  User ${name}`,
  ...lines.map((line) => `  ${line}`),
];
