import fs from "node:fs";
import type { AgentConfiguration } from "../../../../domain/agent.ts";
import { RelayError } from "../../../../domain/errors.ts";
import { LIMITS } from "../../../../domain/limits.ts";
import { codexServers } from "../../../../execution/agent/codex-servers.ts";
import { takes } from "../../../../execution/agent/command-line.ts";

const FILE_MAX_BYTES = LIMITS.agentFileBytes;
/** The longest argument that Linux takes, its NUL included (MAX_ARG_STRLEN, execve(2)). */
const ARGUMENT_MAX_BYTES = 128 * 1024;

const { O_RDONLY, O_NONBLOCK } = fs.constants;
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** What is wrong with the run of an agent. */
export const agentRefused = (cause: string, message: string): RelayError => new RelayError("agent_submission_refused", message, { cause });

/**
 * The text of a file on the cluster that an agent gets, off the event loop: it may lie on any file system.
 *
 * @param asArgument whether the text is going to be an argument
 * @throws RelayError agent_submission_refused
 */
export async function agentFile(cause: "prompt" | "mcp_config", file: string, asArgument: boolean): Promise<string> {
  const refuse = (why: string): RelayError => agentRefused(cause, `${file}: ${why}`.slice(0, 2_000));
  let bytes: Buffer | null;
  try {
    bytes = await bounded(file);
  } catch (error) {
    throw refuse((error as Error).message);
  }
  if (bytes === null) throw refuse("no regular file");
  if (bytes.length > FILE_MAX_BYTES) throw refuse(`larger than ${FILE_MAX_BYTES} bytes`);
  if (asArgument && bytes.length >= ARGUMENT_MAX_BYTES)
    throw refuse(`its text is an argument, which takes less than ${ARGUMENT_MAX_BYTES} bytes; {prompt_path} has no such bound`);
  if (asArgument && bytes.includes(0)) throw refuse("its text is an argument, and has a NUL");
  try {
    return strict.decode(bytes);
  } catch {
    throw refuse("not UTF-8");
  }
}

/**
 * Check an MCP configuration.
 *
 * @returns options that codex gets for it, where no argument names the file
 * @throws RelayError agent_submission_refused
 */
export async function mcpConfiguration(file: string, { adapter, args }: Pick<AgentConfiguration, "adapter" | "args">): Promise<string[]> {
  const text = await agentFile("mcp_config", file, false);
  if (adapter !== "codex" || takes(args, "mcp_config_path")) return [];
  try {
    return codexServers(text);
  } catch (error) {
    throw agentRefused("mcp_config", `${file}: ${(error as Error).message}`.slice(0, 2_000));
  }
}

/** Up to one byte more than a file may have; null for what is no regular file. */
async function bounded(file: string): Promise<Buffer | null> {
  const handle = await fs.promises.open(file, O_RDONLY | O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) return null;
    const bytes = Buffer.alloc(FILE_MAX_BYTES + 1);
    let length = 0;
    for (let count = -1; count !== 0 && length < bytes.length; length += count)
      count = (await handle.read(bytes, length, bytes.length - length, length)).bytesRead;
    return bytes.subarray(0, length);
  } finally {
    await handle.close();
  }
}
