import fs from "node:fs";
import type { McpCallSpec } from "../../domain/specs.ts";
import type { Identity } from "../../lib/system/process-identity.ts";

/** Names in an attempt's directory; docs/spool.md has their meaning. */
export const CALL_FILES = {
  request: "mcp-request.json",
  result: "mcp-result.json",
  content: "mcp-tool-result.json",
  answers: "mcp-answers.json",
} as const;

const VERSION = 1;

/** `mcp-request.json`: what one call is. */
export interface McpRequest {
  readonly record_version: number;
  readonly spec: McpCallSpec;
  readonly execution_fingerprint: string;
  /** Whose variables the server is to have. */
  readonly worker: Identity;
}

export const requestText = (request: Omit<McpRequest, "record_version">): string => JSON.stringify({ record_version: VERSION, ...request });

/** @throws where it is none of this version: whoever wrote it is another relay */
export function readRequest(file: string): McpRequest {
  const request = JSON.parse(fs.readFileSync(file, "utf8")) as McpRequest;
  if (request.record_version !== VERSION) throw new Error(`${file} has version ${request.record_version}, not ${VERSION}`);
  return request;
}
