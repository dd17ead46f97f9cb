import { ProtocolError } from "@modelcontextprotocol/server";
import { problemOf } from "../api/problem.ts";
import { errorRule } from "../domain/errors.ts";
import { asRelayError } from "./answer.ts";

/** A failure as an error of JSON-RPC: the code that the table of errors has for it, and its problem document as data. */
export function protocolError(error: unknown): ProtocolError {
  if (error instanceof ProtocolError) return error;
  const failure = asRelayError(error);
  const { type: _type, title: _title, status: _status, detail, ...data } = problemOf(failure);
  return new ProtocolError(errorRule(failure.code).mcp, detail, data);
}
